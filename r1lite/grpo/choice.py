"""Selection of the problems that a step samples: by epochs, as refills, or by the rate at which they are solved.

The selection depends only on the seed, the step and, for the curriculum, on measurements, so there is no position to
save.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Collection, Sequence
from typing import Any

from r1lite.types import Group, Prompt

_FORGET = 0.5  # factor on the weight of earlier visits, because the policy has changed since
_FLOOR = 0.02  # lowest weight of a problem, so that a solved problem is sampled again now and then


def by_epochs(prompts: Sequence[Prompt], step: int, count: int, seed: int) -> list[Prompt]:
    """The prompts of a step. Each epoch goes through all prompts in its own order."""
    chosen: list[Prompt] = []
    position = step * count
    while len(chosen) < count:
        epoch, offset = divmod(position + len(chosen), len(prompts))
        order = epoch_order(f"{seed}-{epoch}", len(prompts))
        chosen += [prompts[i] for i in order[offset : offset + count - len(chosen)]]
    return chosen


@functools.lru_cache(maxsize=2)
def epoch_order(key: str, count: int) -> list[int]:
    """The order of 0 to `count` - 1 in an epoch, which `key` determines."""
    order = list(range(count))
    random.Random(key).shuffle(order)
    return order


def refill(
    prompts: Sequence[Prompt], used: Collection[str], step: int, turn: int, count: int, seed: int
) -> list[Prompt]:
    """Further prompts for a step, in an order of their own, so that refills do not shift the epochs.

    Args:
        used: ids of problems that the step has sampled already; they repeat only if no other problems are left.
        turn: number of this refill within the step.
    """
    order = list(prompts)
    random.Random(f"{seed}-refill-{step}-{turn}").shuffle(order)
    order.sort(key=lambda prompt: prompt.problem.id in used)  # stable
    return [order[i % len(order)] for i in range(count)]


class Retired:
    """Leaves out problems that a group has solved at this rate (no-positive-resampling: ScaleRL, arXiv:2510.13786).

    The epochs are unchanged; a solved problem is replaced by an unsolved one. If all are solved, all are sampled.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.solved: set[str] = set()  # ids

    def choose(self, prompts: Sequence[Prompt], step: int, count: int, seed: int) -> list[Prompt]:
        """The prompts of a step."""
        chosen = by_epochs(prompts, step, count, seed)
        kept = [prompt for prompt in chosen if prompt.problem.id not in self.solved]
        used = self.solved | {prompt.problem.id for prompt in kept}
        return kept + refill(prompts, used, step, 0, count - len(kept), seed)

    def observe(self, groups: Sequence[Group]) -> None:
        """Records the verdicts of a step; completions without the task's verdict don't count."""
        for group in groups:
            verdicts = [rollout.correct for rollout in group.rollouts if rollout.correct is not None]
            if verdicts and sum(verdicts) >= self.rate * len(verdicts):
                self.solved.add(group.problem.id)

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"solved": sorted(self.solved)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        self.solved = set(state["solved"])


class Curriculum:
    """Draws problems in proportion to p (1 - p), where p is the measured rate at which the policy solves them.

    p (1 - p) is the variance of right and wrong in a group, and so the size of the learning signal (arXiv:2502.12272).
    A problem that was never sampled counts as p = 1/2, and later visits count more. No weight falls below a small
    floor, so every problem comes back.
    """

    def __init__(self) -> None:
        self.visits: dict[str, tuple[float, float]] = {}  # problem id -> (solved, completions), discounted

    def rate(self, problem_id: str) -> float:
        """p, smoothed towards 1/2 by one additional solved and one additional failed completion."""
        solved, completions = self.visits.get(problem_id, (0.0, 0.0))
        return (solved + 1) / (completions + 2)

    def choose(self, prompts: Sequence[Prompt], purpose: str, step: int, count: int, seed: int) -> list[Prompt]:
        """Draws without replacement while there are enough prompts."""
        rng = random.Random(f"{seed}-{purpose}-{step}")
        keys = []
        for i, prompt in enumerate(prompts):
            p = self.rate(prompt.problem.id)
            # Efraimidis and Spirakis 2006: the largest u^(1/w) are a weighted sample.
            keys.append((math.log(1.0 - rng.random()) / max(p * (1 - p), _FLOOR), i))
        keys.sort(reverse=True)
        return [prompts[keys[n % len(keys)][1]] for n in range(count)]

    def observe(self, groups: Sequence[Group]) -> None:
        """Records the verdicts of a step; completions without the task's verdict don't count."""
        for group in groups:
            verdicts = [rollout.correct for rollout in group.rollouts if rollout.correct is not None]
            if verdicts:
                solved, completions = self.visits.get(group.problem.id, (0.0, 0.0))
                self.visits[group.problem.id] = (
                    _FORGET * solved + sum(verdicts),
                    _FORGET * completions + len(verdicts),
                )

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"visits": {name: list(counts) for name, counts in self.visits.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        self.visits = {name: (solved, completions) for name, (solved, completions) in state["visits"].items()}
