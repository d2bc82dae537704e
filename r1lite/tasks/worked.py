"""A task of worked problems: one function of yours makes the questions, how each is worked out, and the answers.

From it come the problems to train and test on, and the text of a small base: `r1lite pretrain --text my_task:TASK`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from r1lite.errors import UserError
from r1lite.tasks import Problems, Source, Task
from r1lite.tasks.sources import Generated, held_out
from verifiers import Problem

_TRIES = 5000  # in a row without a question of the wanted split


@dataclass(frozen=True, slots=True)
class Worked:
    """A question, how it is worked out, and its answer; all of them short, since a small model writes them."""

    question: str
    chain: str  # "9 + 50 = 59; 59 - 48 = 11": what stands between <think> and </think>
    answer: str
    difficulty: str = ""  # reported apart by `r1lite eval`


@dataclass(frozen=True, slots=True)
class WorkedProblems:
    """Loads problems out of worked ones. A tenth of all questions, chosen by a hash, is for the test alone."""

    name: str
    make: Callable[[random.Random], Worked]
    sizes: Mapping[str, int] = field(default_factory=lambda: {"train": 4000, "test": 500})

    def __call__(self, source: Source) -> Problems:
        return self._generated()(source)

    def check(self, source: Source) -> None:
        """Refuses every source but its own. Raises UserError."""
        self._generated().check(source)

    def draw(self, split: str, rng: random.Random) -> Worked:
        """A worked problem of this split ("train" or "test"). Raises UserError if `make` gives none."""
        for _ in range(_TRIES):
            found = self.make(rng)
            if not isinstance(found, Worked):
                raise UserError(f"--task {self.name}: its function returned {type(found).__name__}, not a Worked")
            if held_out(found.question) == (split == "test"):
                return found
        raise UserError(
            f"--task {self.name}: none of {_TRIES:,} questions is for the {split} split, a tenth of all by a hash: its "
            "function makes too few different ones"
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
    """The task of what `make` makes.

    Args:
        make: a worked problem; it draws from the generator that it is given, and from nothing else.
        reward: formula that training pays by.
        correct: the verifier that says whether an answer is right: "math", "exact", ...
        train: problems to train on, all different.
        test: problems to test on, none of which is trained on.
    """
    load = WorkedProblems(name, make, {"train": train, "test": test})
    return Task(name=name, load=load, reward=reward, correct=correct, sources=("generated",))
