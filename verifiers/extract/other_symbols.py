"""Finds out whether a sentence gives the value of another symbol than the question asks for: "y = 7" for x."""

from __future__ import annotations

import functools
import re

from verifiers.extract.spans import Span
from verifiers.lazy_pattern import lazy_pattern

# Symbols of different kinds are not rivals: "Find x.", "The area is A = 7".
_KINDS = (  # the longest ones first
    r"[a-z]\([^()\s]{1,6}\)",  # f(2)
    r"[a-z]\^(?:\d{1,2}|\{\d{1,2}\})",  # x^2, the coefficient of which is asked for
    r"[A-Z]{2,3}",  # a segment, an angle
    r"[a-z](?:_?\d|_\{\d{1,2}\})?",  # x, a_1
    r"[A-Z]",
)
_LETTER = r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])"
_SYMBOL = rf"(?<![A-Za-z])(?:{'|'.join(_KINDS)})(?![A-Za-z])"
# "Find x.", "What is the value of x + y?", "the coordinates of B"
_ASKED = lazy_pattern(
    r"(?:\b(?:[Ff]ind|[Ww]hat is|[Dd]etermine|[Cc]ompute|[Cc]alculate|[Ee]valuate|[Ss]olve for|[Bb]estimme|[Bb]erechne"
    r"|[Ww]as ist|[Tt]rouve[rz]?|[Cc]alcule[rz]?|[Hh]alla|[Cc]alcula|[Tt]rova|value of|coefficient of"
    r"|coordinates of|length of|measure of)"
    r"(?:\s(?:the )?(?:value of|length of|measure of|coordinates of|angle|segment|side|point)){0,2}"
    r"|(?<!\w)(?:[Нн]айдите|[Нн]айти)|求)[\s$]*(?:\\angle\s?)?"
    rf"(?P<asked>(?:{_SYMBOL}|[\d+*^\s-])++)"
    r"\$*(?:[.?。？]|$|,?\s?(?:if|when|given|where|in|as|rounded|correct|wenn|si|se)\b)"
)
# The same beside a verb or sign: "y = 7", "The value of x is 7", "A is (2, -3)". "y = 2 + x = 7" gives y.
_SAID = lazy_pattern(
    rf"(?:^|[\s$(,;])(?<![-+*/^=]\s)(?<![-+*/^=]\$)(?:\\angle\s?)?(?P<said>{_SYMBOL})[\s$*]*(?:=|(?:is|are|equals|ist)\s)"
)
_TERM = rf"(?:{_LETTER}|[\d+*/^{{}}\s-])"
_VALUE_OF = lazy_pattern(  # "The value of x + y is 7."
    rf"\bvalue of (?:the expression )?\$?(?P<said>{_TERM}*{_LETTER}{_TERM}*?)\$?\s(?:is|equals)\s[^,;A-Za-z]*$"
)
_BETWEEN = lazy_pattern(r"[^,;A-Za-z]*")  # a sign and the value


def of_another_symbol(text: str, start: int, value: Span, asked: str) -> bool:
    """Returns whether the words at a value say that it is another symbol's than the one that is asked for.

    A sentence that also gives the symbol in question is not of another one.
    """
    wanted = asked_symbol(asked)
    if not wanted:
        return False
    expression = _VALUE_OF.search(text, start, value[0])
    if expression is not None:
        return sorted("".join(expression["said"].split())) != sorted(wanted)
    said = [*_SAID.finditer(text, start, value[1])]
    if not said or any(sorted(found["said"]) == sorted(wanted) for found in said):  # AB is BA
        return False
    symbol, sign = said[-1]["said"], said[-1].end()
    if not _BETWEEN.fullmatch(text, sign, max(sign, value[0])):
        return False
    if symbol in wanted or symbol.startswith(f"{wanted}^"):
        return True
    return any(re.fullmatch(kind, symbol) and re.fullmatch(kind, wanted) for kind in _KINDS)


@functools.lru_cache(maxsize=256)
def asked_symbol(asked: str) -> str:
    """Returns the symbol or expression that a question asks for, without spaces, or ""."""
    *_, last = None, *_ASKED.finditer(asked)
    return "" if last is None else "".join(last["asked"].split())
