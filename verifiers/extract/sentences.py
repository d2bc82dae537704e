"""Patterns of maths and numbers in running text, and functions that find the ends of sentences."""

from __future__ import annotations

import re

from verifiers.extract.spans import Span
from verifiers.lazy_pattern import lazy_pattern

MATHS = lazy_pattern(
    r"\$\$([^$]+)\$\$|(?<!\\)\$(?!\d[\d,]*(?:\.\d+)?[.,;:!?)]*(?:(?:\s+[A-Za-z]+[,:]?){3}"
    r"|(?:\s+[A-Za-z]{3,})?\s+(?:so|and|is|are|was|each|per|for|in|of|the|to|on)\s))((?:[^$\n\\]|\\[^\n])+)\$"
    r"|\\\[(.+?)\\\]|\\\((.+?)\\\)"
    r"|\\begin\{(?:equation|align|gather|displaymath|math|eqnarray|multline)\*?\}(.+?)\\end\{(?:equation"
    r"|align|gather|displaymath|math|eqnarray|multline)\*?\}",
    re.DOTALL,
)
# No letter of a script with spaces between words may touch a number. Chinese, Japanese, Korean and Thai letters may.
_LETTERS = "A-Za-z_\u00aa-\u024f\u0370-\u052f\u05d0-\u05ea\u0621-\u064a\u0671-\u06d3\u0904-\u0939"
NUMBER = lazy_pattern(
    rf"(?<![{_LETTERS}\d.^\\{{/])[-+−]?[$€£]?(?:\d{{1,3}}(?:,\d{{3}})+(?![\d,])"
    rf"|\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}})+(?!\d|[ \u00a0\u202f]\d)"
    rf"|\d+)(?:\.\d+)?(?:\s*/\s*\d+)?(?:\s?%)?(?![{_LETTERS}\d^])"
)
_STOPS = r"(?=[*_`]*(?:\s|$))(?<!\b[A-Z].)(?<!\bi\.e\.)(?<!\be\.g\.)"
# Every alternative begins with a literal, so that the search skips positions where none can match.
_ASCII_END = rf"\.{_STOPS}|!{_STOPS}|\?{_STOPS}|\n|;(?=\s)"
_ASCII_ENDS = lazy_pattern(_ASCII_END)
_ENDS = lazy_pattern(
    _ASCII_END
    + r"|。|！|？|؟|।|です|でしょう|ます(?=[。\s]|$)|입니다|합니다|됩니다|습니다|이에요|예요|이다|であ|हैं?(?=[\s।]|$)"
)
BEFORE_AND = lazy_pattern(
    r"\s*+(?:,|，|、|;|\b(?:and|or|und|oder|et|ou|y|o|e|и|или|và|hoặc|i|lub|en|of|och|eller|ve|veya|dan|atau)\b|和"
    r"|或|及|以及|と|와|과|و|,?\s*(?:and|or)\b)\s*"
)


def sentence_ends(text: str) -> re.Pattern[str]:
    """Returns the pattern of sentence ends for this text. The pattern for ASCII has far fewer alternatives."""
    return _ASCII_ENDS if text.isascii() else _ENDS


def sentence_start(text: str, position: int, start: int) -> int:
    low = max(start, position - 200)
    last = low
    for match in sentence_ends(text).finditer(text, low, position):
        last = match.end()
    return last


def last_sentence(text: str, low: int, end: int) -> Span:
    """Returns the span of the last sentence that contains a digit or maths, or the whole range if none does."""
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
    """Returns whether the position is inside a formula between dollar signs ("$\\{1; 2\\}$")."""
    return text.count("$", low, position) % 2 == 1
