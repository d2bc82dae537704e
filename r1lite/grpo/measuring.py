"""Measurements of the models on completions before an update, shared out among the ranks."""

from __future__ import annotations

from collections.abc import Callable

from r1lite.distributed.world import World
from r1lite.grpo.minibatch import Minibatch, RolloutBatch
from r1lite.model.out_of_memory import MicroBatchBudget


def measure_all(
    minibatch: Minibatch, measure: Callable[[RolloutBatch], None], budget: MicroBatchBudget, world: World, step: int
) -> int:
    """Each rank measures its micro-batches, then all exchange results. Returns: how often memory ran out.

    Args:
        measure: sets the values of a micro-batch that are not measured yet.
    """
    mine: dict[int, RolloutBatch] = {}

    def add(number: int, micro_batch: RolloutBatch) -> None:
        measure(micro_batch)
        mine[number] = micro_batch

    times = budget.go_through(minibatch.within, add, mine.clear, step=step, idle=lambda one: measure(one.unmeasured()))
    if world.size > 1:
        for known in world.all_gather_object({number: one.measured() for number, one in mine.items()}):
            for number, values in known.items():
                minibatch.micro_batches[number].take(values)
    return times
