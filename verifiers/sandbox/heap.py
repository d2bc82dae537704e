"""Arranges the fork-server's memory so that a run touches, and therefore copies, few of its pages.

None of this changes what a program does. It relies on the memory layout of CPython and glibc; with another layout it
only saves less.
"""

from __future__ import annotations

import ctypes
import gc
import os
from typing import Any

_LARGE = 512 << 10
_POOL_HEADER = 48  # bytes before the first block of a pool
_POOL = 16384  # bytes of a pool
_BLOCKS = range(48, 513, 16)  # sizes of pymalloc's blocks that a bytes object can have
_BYTES_OVERHEAD = 33
_MOST = 5000  # blocks of one size, a bound for pools that are not laid out as expected


def keep_text_mapped(procfs: int, own: str) -> None:
    """Makes a fork copy the page table entries of the large libraries' code, so that they need not be faulted in.

    The kernel copies them for a mapping that has a private page, so one byte of each is overwritten with itself.

    Args:
        procfs: a descriptor of the machine's /proc.
        own: this process's name in it.
    """
    try:
        with (
            open(os.open(f"{own}/maps", os.O_RDONLY, dir_fd=procfs), encoding="ascii", errors="replace") as maps,
            open(os.open(f"{own}/mem", os.O_RDWR, dir_fd=procfs), "r+b", 0) as memory,
        ):
            for line in maps:
                addresses, permissions, *_, name = line.split()
                first, last = (int(part, 16) for part in addresses.split("-"))
                if name.startswith("/") and permissions in ("r-xp", "r--p") and last - first >= _LARGE:
                    memory.seek(first)
                    byte = memory.read(1)
                    memory.seek(first)
                    memory.write(byte)
    except OSError:  # a kernel that refuses it: runs are slower, but nothing else changes
        return


def settle() -> list[Any]:
    """Collects garbage, gives free memory back, and fills the gaps between objects.

    New objects of a run then lie together in fresh pools instead of being spread over half-empty ones. The caller must
    keep the result, because these objects fill the gaps.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    filling: list[Any] = []
    for size in _BLOCKS:
        for _ in range(_MOST):
            filling.append(bytes(size - _BYTES_OVERHEAD))
            if id(filling[-1]) % _POOL == _POOL_HEADER:
                break
    for _ in range(_MOST):
        filling.append(object())
        if id(filling[-1]) % _POOL == _POOL_HEADER:
            break
    for number in range(_MOST):
        filling.append(number * 0.5)
        if id(filling[-1]) % _POOL == _POOL_HEADER:
            break
    gc.freeze()
    gc.disable()
    return filling
