"""Tensors in parts as files, by torch.distributed.checkpoint: each rank writes what it holds and reads what it will.

The files are safetensors: reading one runs nothing, whoever wrote it. What they hold does not depend on who reads: any
number of ranks, or one process that puts the tensors together.
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

_FILE_BYTES = 4 << 30  # of whole tensors, whose parts each rank writes into a file
_MARK = "in parts"  # the one key of what stands in a state for a tensor in parts


class TensorOnDisk:
    """A tensor that is read as its user will hold it: whole, or the part of this rank.

    Args:
        files: a reader of all parts of the folder.
        name: the tensor's.
    """

    def __init__(self, files: Any, name: str) -> None:
        self._files, self._name = files, name
        known = files.read_metadata().state_dict_metadata[name]
        self.shape, self.dtype, self.ndim = known.size, known.properties.dtype, len(known.size)

    def like(self, target: Tensor) -> Tensor:
        """The tensor, in parts as `target` is, or whole. Without communication.

        Raises:
            RuntimeError: a part is missing, or damaged.
        """
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.api import CheckpointException

        if is_part(target):
            found = part_like(target, torch.empty_like(target.to_local()))  # type: ignore[attr-defined]
        else:
            found = torch.empty(self.shape, dtype=self.dtype)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)  # in one process
            try:
                dcp.load({self._name: found}, storage_reader=self._files, no_dist=True)
            except CheckpointException as error:  # no Exception: it would end the process
                raise RuntimeError(f"{self._name}: {_cause(error)}") from error
        return found


def taken_out(state: Any) -> tuple[Any, dict[str, Tensor]]:
    """A state of dictionaries and lists without its tensors in parts, and these by name; tied ones under one name."""
    names: dict[tuple[int, int], str] = {}  # by where this rank's part lies, which may be empty
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
            return type(value)(out(one, f"{name}/{place}") for place, one in enumerate(value))
        return value

    return out(state, ""), parts


def put_back(state: Any, folder: Path) -> Any:
    """The state with a `TensorOnDisk` wherever `taken_out` has left a mark; as it is if there is no such folder."""
    if not folder.is_dir():
        return state
    from torch.distributed.checkpoint import HuggingFaceStorageReader

    class Reader(HuggingFaceStorageReader):
        """Reads the files' headers once, and not once a tensor."""

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
    """Writes each rank's parts into files of its own. Every rank calls this; a file's content is in memory twice.

    Raises:
        RunError: on every rank, if one of them can't write.
    """
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.api import CheckpointException

    sizes = itertools.accumulate((part.nbytes for part in parts.values()), initial=0)  # of the whole, on every rank
    files = {name: 1 + before // _FILE_BYTES for name, before in zip(parts, sizes, strict=False)}
    writer = HuggingFaceStorageWriter(str(folder), fqn_to_index_mapping=files, save_distributed=True)
    try:
        dcp.save(dict(parts), storage_writer=writer)
    except CheckpointException as error:
        raise RunError(f"parts of the state can't be written to {folder}: {_cause(error)}") from error


def _cause(error: Any) -> str:
    """The first rank's failure of many."""
    rank, (cause, _) = min(error.failures.items())
    return f"rank {rank}: {cause}" if len(error.failures) == 1 else str(cause)
