"""Long runs of white space become short ones, so that no pattern pays for them; places are mapped back."""

from __future__ import annotations

import re

from verifiers.extract.spans import Span

_LONG = re.compile(r"\s{33,}")
_STRIDE, _LIKELY = 8, re.compile(r"\s{4}")  # of every 8th character, a run of 33 blanks holds four in a row
_KEPT = 16  # at each end of a run: what stands beside a word stays as it is

Cut = tuple[int, int]  # (place in the shortened text, characters left out there)


def squeezed(text: str) -> tuple[str, list[Cut]]:
    """The text with at most 32 blanks in a row, and what was left out where. Linear."""
    if _LIKELY.search(text[::_STRIDE]) is None or _LONG.search(text) is None:
        return text, []
    parts, cuts, position, left_out = [], [], 0, 0
    for match in _LONG.finditer(text):
        begin, end = match.start() + _KEPT, match.end() - _KEPT
        parts.append(text[position:begin])
        cuts.append((begin - left_out, end - begin))
        position, left_out = end, left_out + end - begin
    return "".join([*parts, text[position:]]), cuts


def original(span: Span, cuts: list[Cut]) -> Span:
    """The span in the text before it was squeezed."""
    start, end = span
    return (
        start + sum(size for place, size in cuts if place <= start),
        end + sum(size for place, size in cuts if place < end),
    )
