"""Telling that memory ran out from everything else that can go wrong, and getting by with less."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import torch

from r1lite.distributed.dealing import hands
from r1lite.distributed.world import ALONE, World
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
        world: the ranks that the micro-batches are dealt to.
        in_step: the model is sharded, so that a forward pass needs all ranks.
    """

    def __init__(self, tokens: int, *, row: str, advice: str, world: World = ALONE, in_step: bool = False) -> None:
        self.asked = self.tokens = tokens
        self._row, self._advice, self._world, self._in_step = row, advice, world, in_step

    def go_through(
        self,
        cut: Callable[[int], Sequence[P]],
        add: Callable[[int, P], None],
        restart: Callable[[], None],
        *,
        step: int,
        idle: Callable[[P], None],
    ) -> int:
        """Adds up the gradients of this rank's micro-batches. Where memory runs out on any rank, all begin again, with
        half the tokens in each.

        Args:
            cut: the same rows in micro-batches of at most so many tokens; the same on every rank.
            add: one micro-batch's forward and backward pass; its number among all ranks' micro-batches comes first.
            restart: takes back what was added, which may be a part of a micro-batch's gradient.
            idle: as many passes of the model as `add` makes, without effect: for a rank that has nothing left while
                others still have, where the model is sharded.

        Returns: how often memory ran out.

        Raises:
            RunError: it did with one row to each micro-batch, or where the model is sharded.
        """
        times = 0
        while True:
            micro_batches, mine, rounds = self._dealt(cut)
            ran_out = False
            try:
                for place in mine:
                    add(place, micro_batches[place])
                for _ in range(rounds - len(mine) if self._in_step else 0):
                    idle(min(micro_batches, key=lambda one: one.cost))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if self._in_step:
                    raise RunError(
                        f"step {step + 1}: out of memory with micro-batches of up to {self.tokens} tokens. Ranks that "
                        "hold a model in parts can't begin a pass again: continue with a lower --micro-batch-tokens"
                    ) from error
                ran_out = True
            if not self._world.max(ran_out):
                return times
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

    def _dealt(self, cut: Callable[[int], Sequence[P]]) -> tuple[Sequence[P], list[int], int]:
        """All micro-batches, the numbers of this rank's, and how many the rank with the most has."""
        micro_batches, size = cut(self.tokens), self._world.size
        if size > 1:  # small enough that each rank has something to do
            share = -(-sum(one.cost for one in micro_batches) // size)
            micro_batches = cut(max(1, min(self.tokens, share)))
        dealt = hands([one.cost for one in micro_batches], size)
        return micro_batches, dealt[self._world.rank], max(map(len, dealt))
