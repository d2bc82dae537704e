"""Three-digit sums with carries, for a base model that thinks in two languages: shows the effect of a language reward.

`r1lite pretrain recipes/add_carry_base.yaml` trains the base; README.md compares reward formulas on it.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from r1lite.tasks import Task
from r1lite.tasks.sources import Generated
from verifiers import Problem

_LOW, _HIGH = 100, 999
_WORDS = {"en": ("write", "carry"), "zh": ("写下", "进位")}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the written sum, from the right: a + b + carried in = 10 * carry + digit."""

    a: int
    b: int
    carried: int

    @property
    def total(self) -> int:
        return self.a + self.b + self.carried

    @property
    def expression(self) -> str:
        """`7 + 6`, or `8 + 5 + 1` with a carry."""
        return f"{self.a} + {self.b}" + (f" + {self.carried}" if self.carried else "")


@dataclass(frozen=True, slots=True)
class Addition:
    """Two numbers of three digits each."""

    a: int
    b: int

    @property
    def question(self) -> str:
        return f"What is {self.a} + {self.b}?"

    @property
    def answer(self) -> int:
        return self.a + self.b

    @property
    def columns(self) -> list[Column]:
        """The three columns: ones, tens, hundreds."""
        found, carried = [], 0
        for place in (1, 10, 100):
            found.append(Column(self.a // place % 10, self.b // place % 10, carried))
            carried = found[-1].total // 10
        return found

    @property
    def carries(self) -> int:
        """Number of columns that carry: 1 to 3."""
        return sum(column.total >= 10 for column in self.columns)

    @property
    def is_test(self) -> bool:
        """True for one sum in eight, which is never trained on in either order of its numbers."""
        text = f"{min(self.a, self.b)}+{max(self.a, self.b)}"
        return hashlib.sha256(text.encode()).digest()[0] % 8 == 0


def working(column: Column, total: int, language: str) -> str:
    """A column's calculation as text, `7 + 6 = 13 write 3 carry 1`, with English or Chinese words.

    Args:
        total: the stated sum of the column, which may be wrong.
    """
    write, carry = _WORDS[language]
    return f"{column.expression} = {total} {write} {total % 10} {carry} {total // 10}"


def sample(split: str, rng: random.Random) -> Addition:
    """A random sum of this split ("train" or "test") that carries at least once; calls only `rng.random()`."""
    while True:
        span = _HIGH - _LOW + 1
        found = Addition(_LOW + int(rng.random() * span), _LOW + int(rng.random() * span))
        if found.carries and found.is_test == (split == "test"):
            return found


def make(split: str, rng: random.Random) -> Problem:
    """A random problem. Difficulty is the number of columns that carry; the language of the thinking is English."""
    found = sample(split, rng)
    return Problem(found.question, str(found.answer), language="en", meta={"difficulty": str(found.carries)})


DATA = Generated("add_carry", make)
TASK = Task(
    name="add_carry",
    load=DATA,
    reward="math * (0.5 + 0.5*language) + 0.1*format",
    sources=("generated",),
    example=DATA.item("train", 0),
)
