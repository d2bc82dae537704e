"""Detects out-of-memory errors, and repeats an update with smaller micro-batches."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import torch

from r1lite.distributed.together import hands
from r1lite.distributed.world import ALONE, World
from r1lite.errors import RunError

# Messages of the CPU's allocator, of cuBLAS, and of CUDA where memory is taken without the GPU's allocator, as for
# kernels and pinned memory ("CUDA error: ...", "CUDA driver error: ..."); only that allocator has its own exception.
_WORDS = ("DefaultCPUAllocator", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED", "rror: out of memory")


def is_out_of_memory(error: BaseException) -> bool:
    """True if this exception reports that memory ran out."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _WORDS)


def free_what_is_unused() -> None:
    """Frees what the failed attempt left: reference cycles of its graph, and the GPU allocator's cache."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


class AnyMicroBatch(Protocol):
    """A micro-batch."""

    @property
    def num_rows(self) -> int:
        """Number of rows that can be separated."""

    @property
    def cost(self) -> int:
        """Number of tokens, padding included."""


P = TypeVar("P", bound=AnyMicroBatch)


class MicroBatchBudget:
    """The largest number of tokens in a micro-batch: the configured one, or less once memory ran out.

    Args:
        tokens: the configured maximum.
        row: the name of a row in messages.
        advice: what to change if a single row does not fit.
        world: the ranks that share the micro-batches.
        in_step: the model is sharded, so a forward pass needs all ranks.
    """

    def __init__(self, tokens: int, *, row: str, advice: str, world: World = ALONE, in_step: bool = False) -> None:
        self.asked = self.tokens = tokens
        self._row, self._advice, self._world, self._in_step = row, advice, world, in_step

    def state_dict(self) -> dict[str, int]:
        """Returns the present maximum and the configured one."""
        return {"micro_batch_tokens": self.tokens, "asked_micro_batch_tokens": self.asked}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the maximum that fitted into memory, unless another one is configured now."""
        if state.get("asked_micro_batch_tokens", self.asked) == self.asked:  # earlier versions stored the first only
            self.tokens = min(state["micro_batch_tokens"], self.asked)

    def go_through(
        self,
        cut: Callable[[int], Sequence[P]],
        add: Callable[[int, P], None],
        restart: Callable[[], None],
        *,
        step: int,
        idle: Callable[[P], None],
    ) -> int:
        """Adds up the gradients of this rank's micro-batches. If memory runs out on any rank, all ranks start again
        with half the tokens per micro-batch.

        Args:
            cut: splits the rows into micro-batches of at most this many tokens; the same on every rank.
            add: makes a micro-batch's forward and backward pass; first argument: its number among all ranks' ones.
            restart: discards everything added so far, including the partial gradient of a micro-batch.
            idle: makes as many model passes as `add`, without effect: for a rank without work while others still
                have some, if the model is sharded.

        Returns: how often memory ran out.

        Raises:
            RunError: memory ran out with one row per micro-batch, or with a sharded model.
        """
        times = 0
        while True:
            micro_batches, mine, rounds = self._dealt(cut)
            ran_out = False
            try:
                for number in mine:
                    add(number, micro_batches[number])
                for _ in range(rounds - len(mine) if self._in_step else 0):
                    idle(min(micro_batches, key=lambda one: one.cost))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if self._in_step:
                    raise RunError(
                        f"step {step + 1}: out of memory with micro-batches of up to {self.tokens} tokens. Ranks with "
                        "a sharded model can't repeat a pass: continue with a lower --micro-batch-tokens"
                    ) from error
                ran_out = True
            if not self._world.max(ran_out):
                return times
            # Outside the except clause, because the exception holds references to the graph.
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
        """All micro-batches, the numbers of this rank's ones, and the largest number that any rank has."""
        micro_batches, size = cut(self.tokens), self._world.size
        if size > 1:  # small enough to give each rank some work
            share = -(-sum(one.cost for one in micro_batches) // size)
            micro_batches = cut(max(1, min(self.tokens, share)))
        dealt = hands([one.cost for one in micro_batches], size)
        return micro_batches, dealt[self._world.rank], max(map(len, dealt))
