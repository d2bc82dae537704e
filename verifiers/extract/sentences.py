"""Where sentences end, and what maths and numbers look like in running text."""

from __future__ import annotations

import re

from verifiers.extract.spans import Span
from verifiers.lazy_pattern import lazy_pattern

MATHS = lazy_pattern(
    r"\$\$([^$]+)\$\$|(?<!\\)\$((?:[^$\n\\]|\\[^\n])+)\$|\\\[(.+?)\\\]|\\\((.+?)\\\)"
    r"|\\begin\{(?:equation|align|gather|displaymath|math|eqnarray|multline)\*?\}(.+?)\\end\{(?:equation"
    r"|align|gather|displaymath|math|eqnarray|multline)\*?\}",
    re.DOTALL,
)
# Letters of scripts that put spaces between words may not touch a number; Chinese, Japanese, Korean and Thai do.
_LETTERS = "A-Za-z_\u00aa-\u024f\u0370-\u052f\u05d0-\u05ea\u0621-\u064a\u0671-\u06d3\u0904-\u0939"
NUMBER = lazy_pattern(
    rf"(?<![{_LETTERS}\d.^\\{{/])[-+−]?[$€£]?(?:\d{{1,3}}(?:,\d{{3}})+(?![\d,])"
    rf"|\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}})+(?!\d|[ \u00a0\u202f]\d)"
    rf"|\d+)(?:\.\d+)?(?:\s*/\s*\d+)?(?:\s?%)?(?![{_LETTERS}\d^])"
)
_STOPS = r"(?=[*_`]*(?:\s|$))(?<!\b[A-Z].)(?<!\bi\.e\.)(?<!\be\.g\.)"
# Every alternative begins with a literal: the search then skips what none begins with.
_ASCII_END = rf"\.{_STOPS}|!{_STOPS}|\?{_STOPS}|\n|;(?=\s)"
_ASCII_ENDS = lazy_pattern(_ASCII_END)
_ENDS = lazy_pattern(
    _ASCII_END
    + r"|。|！|？|؟|।|です|でしょう|ます(?=[。\s]|$)|입니다|합니다|됩니다|습니다|이에요|예요|이다|であ|है(?=[\s।]|$)"
)
BEFORE_AND = lazy_pattern(
    r"\s*(?:,|，|、|;|\b(?:and|or|und|oder|et|ou|y|o|e|и|или|và|hoặc|i|lub|en|of|och|eller|ve|veya|dan|atau)\b|和|或|及|以及|と|와|과|و|,?\s*(?:and|or)\b)\s*"
)


def sentence_ends(text: str) -> re.Pattern[str]:
    """What ends a sentence of this text; ASCII needs far fewer signs."""
    return _ASCII_ENDS if text.isascii() else _ENDS


def sentence_start(text: str, position: int, start: int) -> int:
    low = max(start, position - 200)
    last = low
    for match in sentence_ends(text).finditer(text, low, position):
        last = match.end()
    return last


def last_sentence(text: str, low: int, end: int) -> Span:
    """The last sentence that holds a digit or maths."""
    found = sentence_ends(text).finditer(text, low, end)
    ends = [
        low,
        *(match.end() for match in found if not (match[0] == ";" and _in_maths(text, low, match.start()))),
        end,
    ]
    for first, last in zip(reversed(ends[:-1]), reversed(ends), strict=False):
        part = text[first:last]
        if any(char.isdigit() for char in part) or "$" in part or "\\" in part:
            return first, last
    return low, end


def _in_maths(text: str, low: int, position: int) -> bool:
    """Does a formula between dollar signs go on at the place? ("$\\{1; 2\\}$")"""
    return text.count("$", low, position) % 2 == 1
