"""A guard over golds: every number in one must matter, or part of it was not read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace as changed

from verifiers.mathexpr.answers import Answer

_DIGITS = re.compile(r"\d+|[⁰¹²³⁴-⁹₀-₉]")
# Lengths, colours, column formats and numbers of equations are no part of an answer.
_LAYOUT = re.compile(
    r"\\(?:hspace|vspace|label|tag|color|textcolor|colorbox|phantom|vphantom|hphantom)\*?\s*\{[^{}]*\}"
    r"|\\\\\s*\[[^\[\]]{1,12}\]|\\begin\{(?:array|tabular)\}\s*\{[^{}]*\}"
)
_STEPS = (1, 3)  # a list may hold the next number already: two changes tell chance from neglect
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉"


def variants(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each number of a gold, and the gold's text with that number changed in a few ways."""
    layout = [match.span() for match in _LAYOUT.finditer(text)]
    for match in _DIGITS.finditer(text):
        if not any(start <= match.start() < end for start, end in layout):
            found = match[0]
            others = [found[:-1] + _next(found[-1], step) for step in _STEPS]
            yield found, [text[: match.start()] + other + text[match.end() :] for other in others]


def _next(digit: str, step: int) -> str:
    for digits in (_RAISED, _LOWERED):
        if digit in digits:
            return digits[(digits.index(digit) + step) % 10]
    return str((int(digit) + step) % 10)


def same_but_for_values(first: Answer, second: Answer) -> bool:
    """Do the two differ in an expression and nowhere else? Equal ones are then equal by arithmetic, as 0*2 and 0*3."""
    return _bare(first) == _bare(second) and first != second


def _bare(answer: Answer) -> Answer:
    items = tuple(map(_bare, answer.items))
    return changed(answer, node=None, pieces=(), also=None, items=items)
