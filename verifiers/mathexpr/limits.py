"""Caps and the work budget that bound every check by construction, without clocks or signals."""

from __future__ import annotations

MAX_ANSWER_CHARS = 3000  # a longer final answer is refused before it is read
MAX_TOKENS = 1500
MAX_DEPTH = 40  # nesting of brackets, fractions, powers and function calls
MAX_DIGITS = 1000  # of one literal number
MAX_ITEMS = 128  # of one list, set, tuple
MAX_CELLS = 256  # of one matrix
MAX_BITS = 20_000  # of an exact rational; larger values are compared modulo primes or by structure
MAX_TERMS = 400  # of a sum or product that is written out
BUDGET = 9_000  # units of work a check; one unit is about 2 microseconds


class Unreadable(Exception):
    """The text is no answer this package understands; the message says where reading stopped."""


class TooHard(Exception):
    """Deciding would cost more than the budget allows."""


class Budget:
    """Counts units of work in one check; deterministic, so a verdict depends on nothing but its input."""

    __slots__ = ("left", "rung", "trace")

    def __init__(self, units: int = BUDGET) -> None:
        self.left = units
        self.rung = "type"  # the last rung that decided something
        self.trace: list[tuple[str, str]] | None = None  # (rung, what it found), kept only when asked for

    def spend(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise TooHard("the budget of work is spent")

    def decided(self, rung: str, found: bool, what: str = "") -> bool:
        """Notes that `rung` settled a comparison, and hands its finding through."""
        self.rung = rung
        if self.trace is not None:
            self.trace.append((rung, f"{'equal' if found else 'different'} {what}".rstrip()))
        return found
