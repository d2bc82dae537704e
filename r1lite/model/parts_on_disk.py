"""Sharded tensors as files, by torch.distributed.checkpoint: each rank writes and reads only its own parts.

The files are safetensors, so reading one executes no code. Their content does not depend on the reader: any
number of ranks can read them, or one process that assembles the tensors.
"""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from r1lite.errors import RunError
from r1lite.model.sharding import is_part, part_like

_FILE_BYTES = 4 << 30  # of whole tensors; each rank writes its parts of them into one file
_MARK = "in parts"  # the only key of the dict that replaces a sharded tensor in a state


class TensorOnDisk:
    """A tensor that is read in the form that its user holds: whole, or the part of this rank.

    Args:
        files: a reader of all parts in the folder.
        name: the tensor's name.
    """

    def __init__(self, files: Any, name: str) -> None:
        self._files, self._name = files, name
        known = files.read_metadata().state_dict_metadata[name]
        self.shape, self.dtype, self.ndim = known.size, known.properties.dtype, len(known.size)

    def like(self, target: Tensor) -> Tensor:
        """The tensor, sharded as `target` is, or whole. Needs no communication.

        Raises:
            RuntimeError: a part is missing, or damaged.
        """
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.api import CheckpointException

        if is_part(target):
            tensor = part_like(target, torch.empty_like(target.to_local()))  # type: ignore[attr-defined]
        else:
            tensor = torch.empty(self.shape, dtype=self.dtype)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)  # in one process
            try:
                dcp.load({self._name: tensor}, storage_reader=self._files, no_dist=True)
            except CheckpointException as error:  # derives from BaseException, so it would end the process
                raise RuntimeError(f"{self._name}: {_cause(error)}") from error
        return tensor


def taken_out(state: Any) -> tuple[Any, dict[str, Tensor]]:
    """Splits a state of dicts and lists into the state without its sharded tensors, and these by name (tied: one)."""
    names: dict[tuple[int, int], str] = {}  # by the memory address of this rank's part, which may be empty
    parts: dict[str, Tensor] = {}

    def out(value: Any, name: str) -> Any:
        if is_part(value):
            own = value.to_local()
            known = names.setdefault((own.untyped_storage()._cdata, own.storage_offset()), name)
            parts.setdefault(known, value)
            return {_MARK: known}
        if isinstance(value, dict):
            return {key: out(one, f"{name}/{key}") for key, one in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(out(one, f"{name}/{i}") for i, one in enumerate(value))
        return value

    return out(state, ""), parts


def put_back(state: Any, folder: Path) -> Any:
    """Inserts a `TensorOnDisk` for every mark that `taken_out` left; returns the state unchanged without a folder."""
    if not folder.is_dir():
        return state
    from torch.distributed.checkpoint import HuggingFaceStorageReader

    class Reader(HuggingFaceStorageReader):
        """Reads the files' headers once instead of once per tensor."""

        known: Any = None

        def read_metadata(self) -> Any:
            if self.known is None:
                self.known = super().read_metadata()
            return self.known

    files = Reader(str(folder))

    def back(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {_MARK}:
                return TensorOnDisk(files, value[_MARK])
            return {key: back(one) for key, one in value.items()}
        return type(value)(map(back, value)) if isinstance(value, list | tuple) else value

    return back(state)


def write_parts(parts: dict[str, Tensor], folder: Path) -> None:
    """Writes each rank's parts into its own files. Every rank calls this; a file's content is in memory twice.

    Raises:
        RunError: on every rank, if any rank can't write.
    """
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.api import CheckpointException

    sizes = itertools.accumulate((part.nbytes for part in parts.values()), initial=0)  # of whole tensors, on every rank
    files = {name: 1 + before // _FILE_BYTES for name, before in zip(parts, sizes, strict=False)}
    writer = HuggingFaceStorageWriter(str(folder), fqn_to_index_mapping=files, save_distributed=True)
    try:
        dcp.save(dict(parts), storage_writer=writer)
    except CheckpointException as error:
        raise RunError(f"parts of the state can't be written to {folder}: {_cause(error)}") from error


def _cause(error: Any) -> str:
    """The failure of the first rank that failed."""
    rank, (cause, _) = min(error.failures.items())
    return f"rank {rank}: {cause}" if len(error.failures) == 1 else str(cause)
