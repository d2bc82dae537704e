"""Stores batches whose gradient was not finite, and ends the run when there are too many in a row."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from r1lite.errors import RunError
from r1lite.run.files import replaced_file

MAX_IN_A_ROW = 3
_MAX_KEPT = 20  # per run: the first ones are enough for a diagnosis, and more could fill the disk


class BadBatches:
    """Stores the batch of each skipped update in `folder`, and ends the run after three in a row.

    A file holds a dictionary that `torch.load(path, weights_only=True)` reads: step, update, loss, the names of
    parameters whose gradient was not finite, and under `batches` the tensors of every micro-batch. Without a folder
    nothing is stored; with several ranks only one has a folder.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder, self.in_a_row = folder, 0

    def fine(self) -> None:
        """Records that an update was made."""
        self.in_a_row = 0

    def skipped(
        self, step: int, batches: Sequence[Mapping[str, Any]], *, loss: float, parameters: Sequence[str]
    ) -> None:
        """Records a skipped update and stores its batch.

        Args:
            step: counted from 1.
            batches: content of each micro-batch: tensors, lists, numbers.
            loss: loss of the whole update; need not be finite.
            parameters: names of the parameters whose gradient is not finite.

        Raises:
            RunError: this is the third skipped update in a row.
        """
        self.in_a_row += 1
        # On the CPU, because torch.load wants the device back that a tensor was saved on.
        kept = [
            {name: value.cpu() if isinstance(value, torch.Tensor) else value for name, value in batch.items()}
            for batch in batches
        ]
        self._keep(step, {"batches": kept, "loss": loss, "parameters": list(parameters)})
        if self.in_a_row >= MAX_IN_A_ROW:
            raise RunError(
                f"step {step}: the gradient was not finite {MAX_IN_A_ROW} times in a row; those updates were "
                f"skipped, and their batches are stored in {self.folder}. Try a lower --lr or --dtype float32"
            )

    def _keep(self, step: int, content: dict[str, Any]) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(exist_ok=True)
        if len(list(self.folder.glob("step-*.pt"))) >= _MAX_KEPT:
            return
        update = 1
        while (path := self.folder / f"step-{step:06d}-{update}.pt").exists():
            update += 1
        with replaced_file(path) as aside:
            try:
                torch.save({"step": step, "update": update, **content}, aside)
            except RuntimeError as error:  # torch reports a full disk this way
                raise OSError(errno.EIO, str(error), str(path)) from error
