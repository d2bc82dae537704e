"""Tasks of reasoning-gym, as `--task reasoning_gym:NAME`: generated problems, scored by reasoning-gym's own scorer."""

from __future__ import annotations

import functools

from r1lite.errors import UserError
from r1lite.tasks import Problems, Source, Task

PREFIX = "reasoning_gym:"
_TRAIN, _TEST = 2000, 200
_TRAIN_SEED, _TEST_SEED = 0, 1_000_000  # far apart, because item i of seed s equals item 0 of seed s + i


def task(name: str) -> Task:
    """The task with this name (without the prefix). Loading its problems raises UserError if the name is unknown."""
    return Task(
        name=f"{PREFIX}{name}",
        load=functools.partial(_load, name),
        reward="reasoning_gym + 0.1*format",
        correct="reasoning_gym",
        vote="text",
    )


def _load(name: str, source: Source) -> Problems:
    from verifiers.adapters.reasoning_gym import problems

    try:
        train = problems(name, seed=_TRAIN_SEED, size=_TRAIN)
        asked = {problem.prompt for problem in train}
        # Small tasks repeat problems, so train problems are removed from the test.
        test = [p for p in problems(name, seed=_TEST_SEED, size=4 * _TEST) if p.prompt not in asked][:_TEST]
    except ValueError as error:
        raise UserError(f"--task {PREFIX}{name}: {error}") from error
    if not test:
        raise UserError(f"--task {PREFIX}{name}: too few different problems to hold some out for the test")
    return Problems(train, test, f"reasoning-gym's {name}, generated (--source is not used)")
