"""Weights in the main rank's memory, for servers that get them over a connection, and their latest changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r1lite.rollout.weight_delta import as_bytes, digest, encode

BUCKET_BYTES = 64 << 20  # size of one transfer


@dataclass(frozen=True, slots=True)
class Change:
    """The change from a tensor's previous value."""

    form: str  # one of the forms of `weight_delta.encode`
    payload: Tensor  # bytes, [b]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of the weights, in the engine's precision."""

    label: str
    tensors: dict[str, Tensor]  # contiguous, on the CPU
    digests: dict[str, str]  # SHA-256 of each
    base: str | None  # label of the previous version, to which `changes` apply
    changes: dict[str, Change]

    def described(self) -> dict[str, Any]:
        """Names, dtypes and shapes, as in vLLM's own updates."""
        return {
            "names": list(self.tensors),
            "dtype_names": [str(tensor.dtype).removeprefix("torch.") for tensor in self.tensors.values()],
            "shapes": [list(tensor.shape) for tensor in self.tensors.values()],
        }

    def update(self, base: str | None) -> tuple[dict[str, Any], list[Tensor]]:
        """(description for the receiver, payloads in the order of its names), for a receiver that holds `base`."""
        if base is not None and base == self.base:
            changes = list(self.changes.values())
        else:
            base = None
            changes = [Change("whole", as_bytes(tensor)) for tensor in self.tensors.values()]
        about = {
            **self.described(),
            "forms": [change.form for change in changes],
            "sizes": [change.payload.numel() for change in changes],
            "digests": [self.digests[name] for name in self.tensors],
            "label": self.label,
            "base": base,
            "bucket_bytes": BUCKET_BYTES,
        }
        return about, [change.payload for change in changes]


class WeightMemory:
    """Keeps the newest version.

    Args:
        delta: also keep the changes since the previous version.
    """

    def __init__(self, dtype: torch.dtype, *, delta: bool = True) -> None:
        self.dtype, self._delta = dtype, delta
        self._newest: Snapshot | None = None

    def keep(self, weights: Iterable[tuple[str, Tensor]], label: str) -> Snapshot:
        """Copies weights, tied ones under each of their names. Meanwhile, two versions are in memory."""
        before = self._newest if self._delta else None
        tensors, digests, changes = {}, {}, {}
        for name, weight in weights:
            tensor = weight.detach().to("cpu", self.dtype, copy=True).contiguous()
            tensors[name] = tensor
            if before is not None:
                changes[name] = Change(*encode(before.tensors.get(name), tensor))
            same = before is not None and changes[name].form == "same"
            digests[name] = before.digests[name] if before is not None and same else digest(tensor)
        self._newest = Snapshot(label, tensors, digests, before.label if before else None, changes)
        return self._newest

    def close(self) -> None:
        """Frees all weights."""
        self._newest = None
