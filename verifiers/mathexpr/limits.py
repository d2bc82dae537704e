"""Caps and the work budget, which bound every check by construction, without clocks or signals."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verifiers.mathexpr.nodes import Node

MAX_ANSWER_CHARS = 3000  # a longer final answer is refused before it is read
MAX_TOKENS = 1500
MAX_DEPTH = 40  # nesting of brackets, fractions, powers and function calls
MAX_MARKS = 16  # signs after one factor: powers, primes, factorials, degrees
MAX_HEIGHT = 120  # of an expression tree
MAX_NODES = 10_000  # of an expression tree
MAX_DIGITS = 1000  # of one literal number
MAX_ITEMS = 128  # of one list, set, tuple
MAX_CELLS = 256  # of one matrix
MAX_BITS = 20_000  # of an exact rational; larger values are compared modulo primes or by structure
MAX_TERMS = 400  # of a sum or product that is written out
BUDGET = 6_000  # units of work per check; a unit takes 2 to 5 microseconds, and common answers need fewer than 100
GUARD_BUDGET = 4 * BUDGET  # to check whether every number of a gold matters


class Unreadable(Exception):
    """The text is not an answer that this package understands; the message says where reading stopped."""


class TooHard(Exception):
    """Deciding would cost more than the budget allows."""


class Budget:
    """Counts units of work in one check. Deterministic, so a verdict depends on its input alone.

    Within `with Budget() as budget:`, reading, rewriting and comparing all spend from this budget.

    Args:
        evaluated: the values of the gold's integrals and the like, for comparisons to look up.
    """

    __slots__ = ("_outer", "evaluated", "left", "rung", "trace")

    def __init__(self, units: int = BUDGET, evaluated: Mapping[Node, Node] | None = None) -> None:
        self.left = units
        self.evaluated = evaluated or {}
        self.rung = "type"  # the last rung that decided something
        self.trace: list[tuple[str, str]] | None = None  # (rung, finding); None: not recorded

    def spend(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise TooHard("the budget of work is spent")

    def decided(self, rung: str, equal: bool, note: str = "") -> bool:
        """Records that `rung` decided a comparison, and returns `equal`."""
        self.rung = rung
        if self.trace is not None:
            self.trace.append((rung, f"{'equal' if equal else 'different'} {note}".rstrip()))
        return equal

    def __enter__(self) -> Budget:
        self._outer = _CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._outer)


_CURRENT: contextvars.ContextVar[Budget | None] = contextvars.ContextVar("budget", default=None)


def current() -> Budget:
    """Returns the budget of the current check, or a new one outside of any check."""
    return _CURRENT.get() or Budget()


def spend(units: int) -> None:
    """Spends from the budget of the current check. Raises TooHard."""
    budget = _CURRENT.get()
    if budget is not None:
        budget.spend(units)
