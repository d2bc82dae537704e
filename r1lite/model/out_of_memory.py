"""Telling that memory ran out from everything else that can go wrong, and getting by with less."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import torch

from r1lite.errors import RunError

# What the CPU's allocator and cuBLAS say; only the GPU's allocator has an exception of its own.
_WORDS = ("DefaultCPUAllocator", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED")


def is_out_of_memory(error: BaseException) -> bool:
    """True if this exception reports that memory ran out."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _WORDS)


def free_what_is_unused() -> None:
    """Gives back what the failed attempt left: cycles of its graph, and the GPU allocator's reserve."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


class AnyMicroBatch(Protocol):
    """A micro-batch."""

    @property
    def num_rows(self) -> int:
        """What can be told apart in it."""

    @property
    def cost(self) -> int:
        """Tokens, padding included."""


P = TypeVar("P", bound=AnyMicroBatch)


class MicroBatchBudget:
    """How many tokens a micro-batch may have: what was asked for, or as memory has allowed so far.

    Args:
        tokens: the most.
        row: what a row is called.
        advice: for one whose single row is too much.
    """

    def __init__(self, tokens: int, *, row: str, advice: str) -> None:
        self.asked = self.tokens = tokens
        self._row, self._advice = row, advice

    def go_through(
        self, cut: Callable[[int], Sequence[P]], add: Callable[[P], None], restart: Callable[[], None], *, step: int
    ) -> int:
        """Adds up all micro-batches' gradients. Where memory runs out it begins again, with half the tokens in each.

        Args:
            cut: the same rows in micro-batches of at most so many tokens.
            add: one micro-batch's forward and backward pass.
            restart: takes back what was added, which may be a part of a micro-batch's gradient.

        Returns: how often memory ran out.

        Raises:
            RunError: it did with one row to each micro-batch.
        """
        times = 0
        while True:
            micro_batches = cut(self.tokens)
            try:
                for one in micro_batches:
                    add(one)
                return times
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
            # Out of the except clause: the error held on to the graph.
            restart()
            free_what_is_unused()
            times += 1
            shared = [one.cost for one in micro_batches if one.num_rows > 1]
            if not shared:
                longest = max(one.cost for one in micro_batches)
                raise RunError(
                    f"step {step + 1}: out of memory with a single {self._row}, of up to {longest} tokens. Try "
                    f"{self._advice}"
                )
            self.tokens = max(1, min(self.tokens, max(shared)) // 2)
