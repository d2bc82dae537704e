"""Tasks of reasoning-gym, as `--task reasoning_gym:NAME`: generated problems, scored by reasoning-gym's own scorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from r1lite.errors import UserError
from r1lite.tasks import Problems, Source, Task
from r1lite.tasks.sources import check_generated

PREFIX = "reasoning_gym:"
_TRAIN, _TEST = 2000, 200
_TRAIN_SEED, _TEST_SEED = 0, 1_000_000  # far apart, because item i of seed s equals item 0 of seed s + i


def task(name: str) -> Task:
    """The task with this name (without the prefix). Loading its problems raises UserError if the name is unknown."""
    return Task(
        name=f"{PREFIX}{name}",
        load=_ReasoningGym(name),
        reward="reasoning_gym + 0.1*format",
        correct="reasoning_gym",
        vote="text",
    )


@dataclass(frozen=True, slots=True)
class _ReasoningGym:
    """Generates the problems of one of reasoning-gym's tasks. Called with a Source; raises UserError."""

    name: str
    sources: ClassVar[tuple[str, ...]] = ("generated",)

    def check(self, source: Source) -> None:
        """Rejects every source except the generator. Raises UserError."""
        check_generated(f"{PREFIX}{self.name}", source)

    def __call__(self, source: Source) -> Problems:
        from verifiers.adapters.reasoning_gym import problems

        self.check(source)
        try:
            train = problems(self.name, seed=_TRAIN_SEED, size=_TRAIN)
            asked = {problem.prompt for problem in train}
            # Small tasks repeat problems, so train problems are removed from the test.
            test = [p for p in problems(self.name, seed=_TEST_SEED, size=4 * _TEST) if p.prompt not in asked][:_TEST]
        except ValueError as error:
            raise UserError(f"--task {PREFIX}{self.name}: {error}") from error
        if not test:
            raise UserError(f"--task {PREFIX}{self.name}: too few different problems to hold some out for the test")
        return Problems(train, test, f"reasoning-gym's {self.name}, generated")
