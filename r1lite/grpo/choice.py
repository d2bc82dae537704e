"""Which problems a step samples: by epochs, refills of it, or by how often they are solved.

Everything depends on the seed, the step and, for the curriculum, on what was measured: there is no position to save.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Collection, Sequence
from typing import Any

from r1lite.types import Group, Prompt

_FORGET = 0.5  # of earlier visits' weight: the policy has moved on
_FLOOR = 0.02  # of a problem's weight: a solved one is looked at again now and then


def by_epochs(prompts: Sequence[Prompt], step: int, count: int, seed: int) -> list[Prompt]:
    """The prompts of a step: each epoch goes through all of them in an order of its own."""
    chosen: list[Prompt] = []
    position = step * count
    while len(chosen) < count:
        epoch, offset = divmod(position + len(chosen), len(prompts))
        order = _epoch_order(seed, epoch, len(prompts))
        chosen += [prompts[i] for i in order[offset : offset + count - len(chosen)]]
    return chosen


@functools.lru_cache(maxsize=2)
def _epoch_order(seed: int, epoch: int, count: int) -> list[int]:
    order = list(range(count))
    random.Random(f"{seed}-{epoch}").shuffle(order)
    return order


def refill(
    prompts: Sequence[Prompt], used: Collection[str], step: int, turn: int, count: int, seed: int
) -> list[Prompt]:
    """Further prompts for a step, in an order of their own: epochs go on as if there were no refills.

    Args:
        used: ids of the problems that the step has sampled already; they come again only where there are no others.
        turn: which refill of the step this is.
    """
    order = list(prompts)
    random.Random(f"{seed}-refill-{step}-{turn}").shuffle(order)
    order.sort(key=lambda prompt: prompt.problem.id in used)  # stable
    return [order[i % len(order)] for i in range(count)]


class Retired:
    """Leaves out problems that a group has solved at this rate (no-positive-resampling: ScaleRL, arXiv:2510.13786).

    Epochs go on as they would; in place of a solved problem another comes that is not. Where all are solved, all come.
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
        """Takes in what a step measured; completions without the task's verdict don't count."""
        for group in groups:
            verdicts = [rollout.correct for rollout in group.rollouts if rollout.correct is not None]
            if verdicts and sum(verdicts) >= self.rate * len(verdicts):
                self.solved.add(group.problem.id)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"solved": sorted(self.solved)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        self.solved = set(state["solved"])


class Curriculum:
    """Draws problems in proportion to p (1 - p), p the measured rate at which the policy solves them.

    That is the variance of right and wrong in a group, and so what there is to learn from it (arXiv:2502.12272). A
    problem that was never sampled counts as p = 1/2; the latest visits count most; and no weight falls below a small
    floor, so that every problem comes back.
    """

    def __init__(self) -> None:
        self.visits: dict[str, tuple[float, float]] = {}  # problem id -> (solved, completions), discounted

    def rate(self, problem_id: str) -> float:
        """p, drawn towards 1/2 by one solved and one failed completion more."""
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
        """Takes in what a step measured; completions without the task's verdict don't count."""
        for group in groups:
            verdicts = [rollout.correct for rollout in group.rollouts if rollout.correct is not None]
            if verdicts:
                solved, completions = self.visits.get(group.problem.id, (0.0, 0.0))
                self.visits[group.problem.id] = (
                    _FORGET * solved + sum(verdicts),
                    _FORGET * completions + len(verdicts),
                )

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"visits": {name: list(counts) for name, counts in self.visits.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        self.visits = {name: (solved, completions) for name, (solved, completions) in state["visits"].items()}
