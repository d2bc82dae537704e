"""Weights & Biases. WANDB_MODE=offline stores a run on this machine, for a later `wandb sync`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from r1lite.run.files import TRACKERS
from r1lite.trackers import About


class WandB:
    """A run of W&B. The run directory stores its id, so that a resumed run continues it."""

    def start(self, about: About) -> int | None:
        import wandb

        folder = about.path / TRACKERS
        folder.mkdir(exist_ok=True)
        self._library = wandb
        self._run: Any = wandb.init(
            project=about.project,
            id=about.id,
            name=about.name,
            job_type=about.stage,
            config=dict(about.config),
            dir=os.fspath(folder),
            resume="allow",
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True),
        )
        # If the server knows the run, `step` is the next step; offline, only the run directory's records count.
        return self._run.step - 1 if self._run.resumed and self._run.step else None

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def table(self, step: int, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        table = self._library.Table(columns=list(columns), data=[list(row) for row in rows], allow_mixed_types=True)
        self._run.log({"completions": table}, step=step)

    def finish(self, summary: Mapping[str, float], findings: Sequence[str]) -> None:
        self._run.summary.update(
            {**{f"end/{key}": value for key, value in summary.items()}, "findings": list(findings)}
        )
        self._run.finish(exit_code=0 if summary else 1)
