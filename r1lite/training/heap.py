"""Freed memory on CPUs: glibc returns it to the kernel, which clears every page again for the next tensor.

A step of training frees and allocates the same sizes over and over, and these pages took 3 % of its CPU time.
"""

from __future__ import annotations

import ctypes

_KEPT = {
    -3: 32 << 20,  # M_MMAP_THRESHOLD, bytes: smaller tensors come from the heap; glibc allows no more
    -1: 1 << 30,  # M_TRIM_THRESHOLD, bytes: free memory at the heap's end above which it is returned
}


def keep_freed_memory() -> bool:
    """Lets this process keep up to 1 GiB of freed memory for later tensors. False if its C library is not glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all([mallopt(option, size) == 1 for option, size in _KEPT.items()])
