"""A task of worked problems: your function makes questions, their worked solutions and their answers.

It provides the problems to train and test on, and the text of a small base: `r1lite pretrain --text my_task:TASK`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from r1lite.errors import UserError
from r1lite.tasks import Problems, Source, Task, called
from r1lite.tasks.sources import Generated, held_out
from verifiers import Problem

_TRIES = 5000  # tries in a row without a question of the requested split


@dataclass(frozen=True, slots=True)
class Worked:
    """A question, its worked solution and its answer; all short, since a small model writes them."""

    question: str
    chain: str  # text between <think> and </think>, such as "9 + 50 = 59; 59 - 48 = 11"
    answer: str
    difficulty: str = ""  # `r1lite eval` reports results by difficulty


@dataclass(frozen=True, slots=True)
class WorkedProblems:
    """Loads problems from worked ones. A tenth of all questions, chosen by a hash, is only for the test."""

    name: str
    make: Callable[[random.Random], Worked]
    sizes: Mapping[str, int] = field(default_factory=lambda: {"train": 4000, "test": 500})

    def __call__(self, source: Source) -> Problems:
        return self._generated()(source)

    def check(self, source: Source) -> None:
        """Rejects every source except the task's function. Raises UserError."""
        self._generated().check(source)

    def draw(self, split: str, rng: random.Random) -> Worked:
        """A worked problem of this split ("train" or "test"). Raises UserError if `make` returns none."""
        for _ in range(_TRIES):
            found = called(f"--task {self.name}: its function", self.make, rng)
            if not isinstance(found, Worked):
                raise UserError(f"--task {self.name}: its function returned {type(found).__name__}, not a Worked")
            if held_out(found.question) == (split == "test"):
                return found
        raise UserError(
            f"--task {self.name}: none of {_TRIES:,} questions is for the {split} split, whose tenth is chosen by a "
            "hash: the task's function makes too few different questions"
        )

    def _generated(self) -> Generated:
        return Generated(self.name, self._problem, self.sizes)

    def _problem(self, split: str, rng: random.Random) -> Problem:
        found = self.draw(split, rng)
        meta = {"difficulty": found.difficulty} if found.difficulty else {}
        return Problem(found.question, found.answer, language="en", meta=meta)


def worked_task(
    name: str,
    make: Callable[[random.Random], Worked],
    *,
    reward: str = "math + 0.1*format",
    correct: str = "math",
    train: int = 4000,
    test: int = 500,
) -> Task:
    """A task with the problems that `make` returns.

    Args:
        make: returns a worked problem; its only source of randomness must be the generator that it gets.
        reward: reward formula of training.
        correct: verifier that decides whether an answer is right: "math", "exact", ...
        train: number of problems to train on, all different.
        test: number of problems to test on, disjoint from those to train on.
    """
    load = WorkedProblems(name, make, {"train": train, "test": test})
    return Task(name=name, load=load, reward=reward, correct=correct, sources=("generated",))
