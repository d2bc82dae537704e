"""Tools for writing a family of problems: numbers, people, wordings and calculated steps.

A family is a function that draws values from a `Story`, adds the question with `say` and writes the steps:

>>> @family
... def pens_for_class(story):
...     boxes, size, used = story.number(2, 9), story.number(4, 12), story.number(3, 40)
...     story.say(f"A [class|teacher] has {boxes} boxes of {size} pens.")
...     pens = story.times(boxes, size, "There are @ pens.")

Numbers are drawn freely. A step whose numbers would be too large, fractional or trivial raises `Rejected`, and the
family is called again with the same generator. So no family has to solve for valid numbers.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from r1lite.tasks.word_problems.core import MAX_FACTOR, MAX_PRODUCT, MAX_VALUE, Step, WordProblem
from r1lite.tasks.word_problems.vocabulary import PEOPLE, Person

T = TypeVar("T")
Teller = Callable[["Story"], None]
Family = Callable[[random.Random], WordProblem]

FAMILIES: dict[str, Family] = {}
_HELD_OUT: set[str] = set()

_CHOICE = re.compile(r"\[([^\[\]]*)\]")  # an innermost [this|that]
_WORDS = range(20, 51)  # allowed length of a question, in words
_STEPS = range(2, 5)
_MAX_TRIES = 10_000


class Rejected(Exception):
    """The drawn numbers don't make a valid problem; the family must be called again."""


class Story:
    """One attempt at a problem. Uses only `random()` of the generator, whose stream Python guarantees to be stable."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._sentences: list[str] = []
        self._steps: list[Step] = []

    def number(self, low: int, high: int, by: int = 1) -> int:
        """One of low, low + by, ... up to and including high."""
        return self.pick(range(low, high + 1, by))

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._rng.random() * len(options))]

    def pick_several(self, options: Sequence[T], count: int) -> list[T]:
        """`count` different options in random order."""
        rest = list(options)
        return [rest.pop(int(self._rng.random() * len(rest))) for _ in range(count)]

    def person(self) -> Person:
        return self.pick(PEOPLE)

    def people(self, count: int) -> list[Person]:
        return self.pick_several(PEOPLE, count)

    def require(self, good: bool) -> None:
        """Raises `Rejected` unless `good`."""
        if not good:
            raise Rejected

    def say(self, *wordings: str) -> None:
        """Adds one of the wordings to the question; `[a|b|]` in it is a random choice, here of a, b or nothing."""
        text = self.pick(wordings)
        while "[" in text:
            text = _CHOICE.sub(lambda match: self.pick(match[1].split("|")), text)
        self._sentences.append(text)

    def plus(self, a: int, b: int, text: str) -> int:
        return self._step(a, "+", b, a + b, text)

    def minus(self, a: int, b: int, text: str) -> int:
        self.require(a != 2 * b)  # the result would equal the subtrahend
        return self._step(a, "-", b, a - b, text)

    def times(self, a: int, b: int, text: str) -> int:
        self.require(1 not in (a, b) and min(a, b) <= MAX_FACTOR and a * b <= MAX_PRODUCT)
        return self._step(a, "*", b, a * b, text)

    def over(self, a: int, b: int, text: str) -> int:
        self.require(2 <= b <= MAX_FACTOR and a % b == 0)
        undone = self._steps and self._steps[-1].value == a and f" {b} " in f" {self._steps[-1].expression} "
        self.require(not undone)  # such as 7 boxes of 9 shared by 7, which undoes the last multiplication
        return self._step(a, "/", b, a // b, text)

    def _step(self, a: int, sign: str, b: int, value: int, text: str) -> int:
        """Writes a step; `@` in its text is replaced by the calculation. Rejects equal operands and results of 1."""
        self.require(a != b and min(a, b) >= 1 and value >= 2 and max(a, b, value) <= MAX_VALUE)
        expression = f"{a} {sign} {b}"
        self._steps.append(Step(text.replace("@", f"{expression} = {value}", 1), expression, value))
        return value

    def problem(self, name: str) -> WordProblem:
        question = " ".join(map(_tidy, self._sentences))
        self.require(len(question.split()) in _WORDS and len(self._steps) in _STEPS)
        steps = tuple(replace(step, text=_tidy(step.text)) for step in self._steps)
        return WordProblem(question, steps, steps[-1].value, name)


def family(tell: Teller) -> Teller:
    """Registers a family under its function's name."""
    name = tell.__name__
    if name in FAMILIES:
        raise ValueError(f"two families are named {name!r}")

    def make(rng: random.Random) -> WordProblem:
        for _ in range(_MAX_TRIES):
            story = Story(rng)
            try:
                tell(story)
                return story.problem(name)
            except Rejected:
                continue
        raise RuntimeError(f"family {name!r} found no valid numbers in {_MAX_TRIES} tries")

    FAMILIES[name] = make
    return tell


def held_out_family(tell: Teller) -> Teller:
    """Registers a family that neither train nor test may use."""
    _HELD_OUT.add(tell.__name__)
    return family(tell)


def held_out_names() -> frozenset[str]:
    return frozenset(_HELD_OUT)


def _tidy(text: str) -> str:
    """The text with single spaces, none before a comma or full stop, and a capital at the start of each sentence."""
    text = re.sub(r" ([,.?])", r"\1", " ".join(text.split()))
    return re.sub(r"(?:^|[.?] )[a-z]", lambda match: match[0].upper(), text)
