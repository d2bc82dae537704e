"""Shortens long runs of white space, which would slow patterns down, and maps positions back."""

from __future__ import annotations

from verifiers.extract.spans import Span
from verifiers.lazy_pattern import lazy_pattern

_LONG = lazy_pattern(r"\s{33,}")
_STRIDE, _LIKELY = 8, lazy_pattern(r"\s{4}")  # every 8th character of 33 blanks in a row includes 4 blanks
_TO_SPACES = bytes(32 if chr(byte).isspace() else 45 for byte in range(128)).ljust(256, b"-")
_KEPT = 16  # characters at each end of a run, so that the blanks beside words stay unchanged

Cut = tuple[int, int]  # (position in the shortened text, number of characters removed there)


def squeezed(text: str) -> tuple[str, list[Cut]]:
    """Returns the text with at most 32 blanks in a row, and the cuts. The time is linear."""
    sample = text[::_STRIDE]
    if sample.isascii():  # a substring search takes a third of the time of the pattern
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
    """Returns the span in the original text for a span in the squeezed text."""
    start, end = span
    return (
        start + sum(size for place, size in cuts if place <= start),
        end + sum(size for place, size in cuts if place < end),
    )
