"""The ranks of torch.distributed: gloo between CPUs, NCCL between GPUs; objects always go through gloo."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")

_BUCKET_BYTES = 32 << 20  # gradients are summed in buckets of this size, which are copied


class Ranks:
    """The default process group as a `World`.

    Args:
        lost: called when a collective fails because another rank is gone; reports that rank and ends the process.
    """

    def __init__(self, lost: Callable[[str], None]) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.is_main = self.rank == 0
        self._lost = lost

    def sum(self, value: float) -> float:
        return math.fsum(self.all_gather_object(value))

    def max(self, value: float) -> float:
        return max(self.all_gather_object(value))

    def all_gather_object(self, value: T) -> list[T]:
        found: list[Any] = [None] * self.size
        self._guarded(lambda: dist.all_gather_object(found, value))
        return found

    def broadcast_object(self, value: T) -> T:
        found: list[Any] = [value if self.is_main else None]
        self._guarded(lambda: dist.broadcast_object_list(found, src=0))
        return found[0]  # type: ignore[no-any-return]

    def barrier(self) -> None:
        self.all_gather_object(None)

    @torch.no_grad()
    def add_up(self, tensors: Sequence[Tensor]) -> None:
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            self._guarded(lambda flat=flat: dist.all_reduce(flat))  # type: ignore[misc]
            _spread(flat, bucket)

    @torch.no_grad()
    def copy_from_main(self, tensors: Sequence[Tensor]) -> None:
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            self._guarded(lambda flat=flat: dist.broadcast(flat, src=0))  # type: ignore[misc]
            _spread(flat, bucket)

    def _guarded(self, collective: Callable[[], Any]) -> None:
        try:
            collective()
        except RuntimeError as error:  # gloo and NCCL raise it if a peer closed its connection or timed out
            self._lost(str(error))
            raise


def _buckets(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Groups tensors of the same dtype and device, in their order, up to the size of a bucket."""
    found: list[list[Tensor]] = []
    size = 0
    for tensor in tensors:
        like = found[-1][0] if found else tensor
        fits = size + tensor.nbytes <= _BUCKET_BYTES and (like.dtype, like.device) == (tensor.dtype, tensor.device)
        if found and fits:
            found[-1].append(tensor)
            size += tensor.nbytes
        else:
            found.append([tensor])
            size = tensor.nbytes
    return found


def _spread(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
