"""Degenerate text: loops and repeated n-grams."""

from __future__ import annotations

import re

from verifiers.core import Completion, Problem, Verdict

REASONS = {
    "ok": "no more repetition than reasoning needs",
    "repeated": "too many of the n-grams occurred before",
    "loop": "the text ends in one passage that repeats over and over",
    "too_long": "the text exceeds the limit on characters",
}  # the closed set of reasons
MAX_CHARS = 1_000_000
_PIECE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]{1,40}|[^\w\s]|_")
_LOOP_PIECES = 6  # a loop covers at least this many pieces ...
_TAIL = 4000  # ... of the last ones
_RULE = re.compile(r"([-=_*#.~+|])\1{3,}")  # a line drawn across the page counts as one sign
_RUN = re.compile(r"([^\s=_*#.~+-])\1{63}")  # one character 64 times over; lines drawn across the page are no loop


class Repetition:
    """1 for text that does not repeat itself, falling to 0 as repetition increases.

    The score depends on the share of n-grams (of words, CJK characters and signs) that occurred before: up to `free`
    it is 1, from `full` on it is 0. A text that ends in the same passage at least `loops` times scores 0 (`loop`):
    this is how sampling gets stuck. Reasons: see REASONS. It never abstains: text shorter than one n-gram is `ok`. The
    time is linear in the length. Known limits: a table or a proof by cases repeats legitimately; raise `n` or `free`.

    Args:
        n: length of an n-gram. Short n-grams repeat in every calculation.
        free, full: shares of repeated n-grams between which the score falls from 1 to 0.
        loops: number of repeats at the end of the text that make a loop.
    """

    version = "2"
    kind = "style"

    def __init__(self, *, n: int = 12, free: float = 0.1, full: float = 0.6, loops: int = 4) -> None:
        if n < 1 or loops < 2:
            raise ValueError(f"n must be >= 1 and loops >= 2, got {n} and {loops}")
        if not 0 <= free < full <= 1:
            raise ValueError(f"0 <= free < full <= 1 is needed, got {free} and {full}")
        self.n, self.free, self.full, self.loops = n, free, full, loops

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        text = completion.text
        if len(text) > MAX_CHARS:
            return Verdict(0.0, "too_long", f"{len(text)} characters")
        run = _RUN.search(text)
        if run is not None:
            return Verdict(0.0, "loop", f"{run[1]!r} again and again")
        pieces = _PIECE.findall(_RULE.sub(r"\1", text))
        period = loop_period(pieces[-_TAIL:], self.loops)
        if period:
            return Verdict(0.0, "loop", f"ends in {' '.join(pieces[-period:])[:100]!r} again and again")
        total = len(pieces) - self.n + 1
        if total < 2:
            return Verdict(1.0, "ok")
        share = 1 - len({tuple(pieces[i : i + self.n]) for i in range(total)}) / total
        score = min(1.0, max(0.0, (self.full - share) / (self.full - self.free)))
        return Verdict(score, "ok" if score == 1.0 else "repeated", f"{share:.2f} of the {self.n}-grams stood before")


def loop_period(pieces: list[str], loops: int) -> int:
    """Returns the length of the passage that the pieces end in at least `loops` times; 0 if there is none.

    A passage that is cut short at the very end still counts, so the loop is searched for in the reversed text. With
    the prefix function, a prefix of length k has period k - border, and k >= loops * period is a loop.
    """
    text = pieces[::-1]
    border = [0] * len(text)
    for i in range(1, len(text)):
        k = border[i - 1]
        while k and text[i] != text[k]:
            k = border[k - 1]
        border[i] = k + 1 if text[i] == text[k] else 0
        period = i + 1 - border[i]
        if i + 1 >= max(loops * period, _LOOP_PIECES) and any(piece.isalpha() for piece in text[:period]):
            return period
    return 0
