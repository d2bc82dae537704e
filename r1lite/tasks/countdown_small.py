"""Countdown with three numbers up to 12: small enough for the bundled base `nano-countdown`, which solves it by search.

A problem has 13 to 25 different attempts, (a o b) o c, and one or two of them are right. A first attempt is therefore
right about one time in nineteen for any model, and only further attempts after a wrong one help: longer thinking solves
more problems. For real models use the task `countdown`.
"""

from __future__ import annotations

import functools
import itertools
import operator
import random
from dataclasses import dataclass, replace

from r1lite.tasks.countdown import TASK as COUNTDOWN
from r1lite.tasks.sources import Generated, held_out
from verifiers import Problem

SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
LARGEST_NUMBER, LARGEST_VALUE = 12, 99
_SMALLEST_TARGET, _MOST_SOLUTIONS = 10, 2
Numbers = tuple[int, int, int]
_SETS: list[Numbers] = list(itertools.combinations(range(1, LARGEST_NUMBER + 1), 3))


@dataclass(frozen=True, slots=True)
class Attempt:
    """The expression `(a first b) then c`, where `first` and `then` are operators, and its value."""

    a: int
    first: str
    b: int
    then: str
    c: int
    value: int

    @property
    def expression(self) -> str:
        """`(10-3)*2`."""
        return f"({self.a}{self.first}{self.b}){self.then}{self.c}"


@dataclass(frozen=True, slots=True)
class Search:
    """Three different numbers, in the order of the question, and the target."""

    numbers: Numbers
    target: int

    @property
    def question(self) -> str:
        a, b, c = self.numbers
        return f"Use {a}, {b} and {c} to make {self.target}."

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All possible attempts: 13 to 25."""
        return attempts(_sorted(self.numbers))

    @property
    def solutions(self) -> list[Attempt]:
        """The attempts that reach the target: one or two."""
        return [attempt for attempt in self.attempts if attempt.value == self.target]


@functools.cache
def attempts(numbers: Numbers) -> tuple[Attempt, ...]:
    """Every (a o b) o c of the numbers with a > b and a value of 1 to 99."""
    found = []
    for a, b, c in itertools.permutations(numbers):
        for first, then in itertools.product(SIGNS, SIGNS):
            value = SIGNS[then](SIGNS[first](a, b), c)
            if a > b and 1 <= value <= LARGEST_VALUE:
                found.append(Attempt(a, first, b, then, c, value))
    return tuple(found)


def draw(split: str, rng: random.Random) -> Search:
    """A random problem of this split ("train" or "test"); calls only `rng.random()`.

    A tenth of all pairs (numbers, target), in any order of the numbers, is only in the test split.
    """
    while True:
        numbers = _SETS[int(rng.random() * len(_SETS))]
        possible = attempts(numbers)
        target = possible[int(rng.random() * len(possible))].value
        search = Search(_in_some_order(numbers, rng), target)
        if (
            target >= _SMALLEST_TARGET
            and len(search.solutions) <= _MOST_SOLUTIONS
            and held_out(f"{numbers} {target}") == (split == "test")
        ):
            return search


def make(split: str, rng: random.Random) -> Problem:
    """A problem; (numbers, target) fixes the order of the numbers. Difficulty: number of solutions, one in `meta`."""
    drawn = draw(split, rng)
    numbers = _sorted(drawn.numbers)
    search = Search(_in_some_order(numbers, random.Random(f"{numbers} {drawn.target}")), drawn.target)
    return Problem(
        search.question,
        answer=str(search.target),
        meta={
            "numbers": list(search.numbers),
            "solution": search.solutions[0].expression,
            "difficulty": "two solutions" if len(search.solutions) == 2 else "one solution",
        },
    )


def _in_some_order(numbers: Numbers, rng: random.Random) -> Numbers:
    a, b, c = sorted(numbers, key=lambda _: rng.random())
    return a, b, c


def _sorted(numbers: Numbers) -> Numbers:
    a, b, c = sorted(numbers)
    return a, b, c


# Of 1,550 and 180 possible problems.
DATA = Generated("countdown_small", make, {"train": 1400, "test": 175})
TASK = replace(COUNTDOWN, name="countdown_small", load=DATA, base="nano-countdown", example=DATA.item("train", 0))
