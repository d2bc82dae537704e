"""Weights as files for engines in other processes, in shared memory if there is any."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from r1lite.errors import UserError
from r1lite.model.lora import Adapter
from r1lite.rollout import EngineError
from r1lite.rollout.weight_memory import Snapshot

_SHARED_MEMORY = Path("/dev/shm")
_NAME = "r1lite-weights-"
_HOST = re.sub(r"\W", "_", platform.node())
_LOCK = ".lock"  # in a folder of weights: locked by its process


@dataclass(frozen=True, slots=True)
class Weights:
    """The location and identity of weights, read and replaced together."""

    folder: Path  # of files; not used if the weights are a snapshot
    label: str  # unique to each time that weights are given
    version: int
    adapter: Path | None = None  # over those weights; identified by its folder's name
    snapshot: Snapshot | None = None  # in memory, for servers that get weights over a connection


class WeightFiles:
    """A folder that holds one version of the weights at a time.

    Args:
        parent: a folder shared with the servers; None = shared memory, or the temporary folder if there is none.
        parameters: number of the model's parameters; two versions of its weights exist for a moment.

    Raises: UserError if there is not enough space.
    """

    def __init__(self, parent: Path | None, dtype: torch.dtype, *, parameters: int = 0) -> None:
        self.dtype, self.written = dtype, 0  # bytes
        parent = parent or shared_memory()
        _sweep(parent)
        needed, free = 2 * parameters * dtype.itemsize, shutil.disk_usage(parent).free
        if needed > free:
            raise UserError(
                f"{parent}: two versions of the weights for the servers need {needed / 2**30:.1f} GiB, and "
                f"{free / 2**30:.1f} GiB are free. Name another folder with --engine-weights-dir, or give a container "
                "more shared memory (docker run --shm-size)"
            )
        made = Path(tempfile.mkdtemp(prefix=f".{_NAME}{os.getpid()}-{_HOST}-", dir=parent))
        made.chmod(0o755)  # a server may run as another user
        (made / _LOCK).touch()
        self._lock = _locked(made)
        self.folder = made.rename(parent / made.name[1:])  # only now, because a sweep removes what it can lock

    def write(self, weights: Iterable[tuple[str, Tensor]], name: str) -> Path:
        """Writes weights, tied ones under each of their names, into a folder with this name.

        Raises:
            EngineError: the weights can't be written.
        """
        return self._write(weights, self.folder / name, "model.safetensors")

    def write_adapter(self, adapter: Adapter, name: str) -> Path:
        """Writes an adapter in peft's format into a folder with this name. Raises EngineError as write() does."""
        return self._write(
            adapter.in_files().items(), self.folder / name, "adapter_model.safetensors", adapter.settings()
        )

    def _write(
        self, weights: Iterable[tuple[str, Tensor]], target: Path, file: str, settings: dict[str, Any] | None = None
    ) -> Path:
        # Each tensor is copied: safetensors refuses tensors that share memory, as tied ones do.
        tensors = {name: weight.detach().to("cpu", self.dtype, copy=True).contiguous() for name, weight in weights}
        try:
            target.mkdir(exist_ok=True)
            save_file(tensors, target / file, metadata={"format": "pt"})
            if settings is not None:
                (target / "adapter_config.json").write_text(json.dumps(settings), encoding="utf-8")
            self.written += sum(tensor.nbytes for tensor in tensors.values())
        except (OSError, SafetensorError) as error:
            size = sum(tensor.nbytes for tensor in tensors.values()) / (1 << 20)
            raise EngineError(
                f"{target}: {size:.0f} MiB of weights for the servers can't be written: "
                f"{getattr(error, 'strerror', None) or error}. Name another folder with --engine-weights-dir"
            ) from error
        return target

    def keep_only(self, *newest: Path) -> None:
        """Removes the older versions: every server has the newest, or gets it before it serves again."""
        with contextlib.suppress(FileNotFoundError):  # another thread may have closed this meanwhile
            for path in self.folder.iterdir():
                if path not in (*newest, self.folder / _LOCK):
                    shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Removes all files."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


def shared_memory() -> Path:
    """The folder of weights for servers on this machine: shared memory, or the temporary folder if there is none."""
    return _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())


def _sweep(parent: Path) -> None:
    """Removes the folders of killed processes, because shared memory is not freed by itself.

    Machines may share a folder but not its locks, so only this machine's folders are removed outside of its memory.
    """
    for folder in parent.glob(f"{_NAME}*" if parent == _SHARED_MEMORY else f"{_NAME}*-{_HOST}-*"):
        if (lock := _locked(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """Locks a folder until the returned handle is closed; None: another process holds it, or there are no locks."""
    handle = None
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if handle is not None:
            os.close(handle)
        return None
    return handle
