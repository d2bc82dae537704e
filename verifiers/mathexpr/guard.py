"""Changes the numbers of a gold, to check that each of them matters; one that does not was not understood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as changed

from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.answers import Answer

_DIGITS = lazy_pattern(r"\d+|[⁰¹²³⁴-⁹₀-₉]")
# Lengths, colours, column formats and equation numbers are not part of an answer.
_LAYOUT = lazy_pattern(
    r"\\(?:hspace|vspace|label|tag|color|textcolor|colorbox|phantom|vphantom|hphantom)\*?\s*\{[^{}]*\}"
    r"|\\\\\s*\[[^\[\]]{1,12}\]|\\begin\{(?:array|tabular)\}\s*\{[^{}]*\}"
)
_STEPS = (1, 3)  # two changes, as a list may already contain the next number
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉"


def variants(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yields (number, texts): each number of a gold, and the gold with that number changed in two ways."""
    layout = [match.span() for match in _LAYOUT.finditer(text)]
    for match in _DIGITS.finditer(text):
        if not any(start <= match.start() < end for start, end in layout):
            digits = match[0]
            others = [digits[:-1] + _next(digits[-1], step) for step in _STEPS]
            yield digits, [text[: match.start()] + other + text[match.end() :] for other in others]


def _next(digit: str, step: int) -> str:
    for digits in (_RAISED, _LOWERED):
        if digit in digits:
            return digits[(digits.index(digit) + step) % 10]
    return str((int(digit) + step) % 10)


def same_but_for_values(first: Answer, second: Answer) -> bool:
    """Returns whether the two differ in expressions only. If such answers are equal, it is by arithmetic: 0*2, 0*3."""
    return _bare(first) == _bare(second) and first != second


def _bare(answer: Answer) -> Answer:
    items = tuple(map(_bare, answer.items))
    return changed(answer, node=None, pieces=(), also=None, items=items)
