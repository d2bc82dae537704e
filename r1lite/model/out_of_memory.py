"""Telling that memory ran out from everything else that can go wrong."""

from __future__ import annotations

import gc

import torch

# What the CPU's allocator and cuBLAS say; only the GPU's allocator has an exception of its own.
_WORDS = ("DefaultCPUAllocator", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED")


def is_out_of_memory(error: BaseException) -> bool:
    """True if this exception says that memory could not be had."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _WORDS)


def free_what_is_unused() -> None:
    """Gives back what the failed attempt left: cycles of its graph, and the GPU allocator's reserve."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
