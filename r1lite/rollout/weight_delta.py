"""Encodes a change of weights: a tensor's bytes, or only the values that changed.

At the learning rates of reinforcement learning most bfloat16 values stay the same in one step. A changed tensor is
sent in the smallest of three lossless forms; an unchanged tensor sends nothing:

    whole     n values
    indices   int32 indices of the c changed values in the flat tensor, then these values
    mask      one bit for each of the n values, the first in the highest bit of a byte, then the changed values
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import Tensor

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes per value
_GREATEST_INDEX = 2**31 - 1


def encode(before: Tensor | None, now: Tensor) -> tuple[str, Tensor]:
    """(form, payload of bytes [b]) that turns `before` into `now`; the payload of "same" is empty.

    Args:
        before: of the same shape and precision, contiguous, on the CPU; None = the receiver has no such tensor.
        now: contiguous, on the CPU.
    """
    if before is None or before.shape != now.shape or before.dtype != now.dtype:
        return "whole", as_bytes(now)
    new = _bits(now).numpy()
    changed = new != _bits(before).numpy()  # compares bits, because -0.0 equals 0.0 and NaN does not equal itself
    count, size = int(np.count_nonzero(changed)), now.itemsize
    if count == 0:
        return "same", torch.empty(0, dtype=torch.uint8)
    sizes = {"whole": now.nbytes, "mask": -(-now.numel() // 8) + count * size}
    if now.numel() <= _GREATEST_INDEX:
        sizes["indices"] = count * (4 + size)
    form = min(sizes, key=lambda name: sizes[name])
    if form == "whole":
        return form, as_bytes(now)
    where = np.flatnonzero(changed)
    marks = np.packbits(changed) if form == "mask" else where.astype(np.int32).view(np.uint8)
    return form, torch.from_numpy(np.concatenate([marks, new[where].view(np.uint8)]))


def decode(form: str, payload: Tensor, target: Tensor) -> None:
    """Applies a result of `encode` to a tensor, contiguous and on the CPU, that holds the former values.

    Raises:
        ValueError: an unknown form, or a payload that does not fit the tensor.
    """
    held, size = _bits(target), target.itemsize
    if form == "same" and not payload.numel():
        return
    if form == "whole" and payload.numel() == target.nbytes:
        as_bytes(target).copy_(payload)
        return
    if form == "indices" and payload.numel() % (4 + size) == 0:
        count = payload.numel() // (4 + size)
        where = payload[: 4 * count].clone().view(torch.int32).long()
        if count and not 0 <= int(where.min()) <= int(where.max()) < held.numel():
            raise ValueError("an index lies outside of its tensor")
        held[where] = payload[4 * count :].clone().view(held.dtype)
        return
    if form == "mask":
        split = -(-held.numel() // 8)
        bits = np.unpackbits(payload[:split].numpy(), count=held.numel()) if payload.numel() >= split else np.empty(0)
        if bits.size == held.numel() and int(np.count_nonzero(bits)) * size == payload.numel() - split:
            held[torch.from_numpy(np.flatnonzero(bits))] = payload[split:].clone().view(held.dtype)
            return
    raise ValueError(f"{payload.numel()} bytes of form '{form}' make no tensor of {held.numel()} values")


def as_bytes(tensor: Tensor) -> Tensor:
    """The bytes of a contiguous tensor, [b], in the same memory."""
    return tensor.view(-1).view(torch.uint8)


def digest(tensor: Tensor) -> str:
    """SHA-256 of a contiguous tensor's bytes."""
    return hashlib.sha256(as_bytes(tensor).numpy().data).hexdigest()


def _bits(tensor: Tensor) -> Tensor:
    return tensor.view(-1).view(_BITS[tensor.itemsize])
