"""What the models say about completions before anything is learnt from them, measured by the ranks together."""

from __future__ import annotations

from collections.abc import Callable

from r1lite.distributed.world import World
from r1lite.grpo.minibatch import Minibatch, RolloutBatch
from r1lite.model.out_of_memory import MicroBatchBudget


def measure_all(
    minibatch: Minibatch, measure: Callable[[RolloutBatch], None], budget: MicroBatchBudget, world: World, step: int
) -> int:
    """Each rank measures its micro-batches; all know all of it then. Returns: how often memory ran out.

    Args:
        measure: sets what is not known yet of a micro-batch.
    """
    mine: dict[int, RolloutBatch] = {}

    def add(number: int, micro_batch: RolloutBatch) -> None:
        measure(micro_batch)
        mine[number] = micro_batch

    times = budget.go_through(minibatch.within, add, mine.clear, step=step, idle=lambda one: measure(one.unmeasured()))
    if world.size > 1:
        for known in world.all_gather_object({place: one.measured() for place, one in mine.items()}):
            for place, values in known.items():
                minibatch.micro_batches[place].take(values)
    return times
