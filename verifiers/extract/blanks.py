"""Long runs of white space become short ones, so that no pattern pays for them; places are mapped back."""

from __future__ import annotations

from verifiers.extract.spans import Span
from verifiers.lazy_pattern import lazy_pattern

_LONG = lazy_pattern(r"\s{33,}")
_STRIDE, _LIKELY = 8, lazy_pattern(r"\s{4}")  # of every 8th character, a run of 33 blanks holds four in a row
_TO_SPACES = bytes(32 if chr(byte).isspace() else 45 for byte in range(128)).ljust(256, b"-")
_KEPT = 16  # at each end of a run: what stands beside a word stays as it is

Cut = tuple[int, int]  # (place in the shortened text, characters left out there)


def squeezed(text: str) -> tuple[str, list[Cut]]:
    """The text with at most 32 blanks in a row, and what was left out where. Linear."""
    sample = text[::_STRIDE]
    if sample.isascii():  # a substring search costs a third of the pattern's
        likely = b"    " in sample.encode().translate(_TO_SPACES)
    else:
        likely = _LIKELY.search(sample) is not None
    if not likely or _LONG.search(text) is None:
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
