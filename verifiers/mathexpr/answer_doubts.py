"""Writes an extracted answer as its gold is written, and finds words in it that make it no single value."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.extract import hedge, turned
from verifiers.extract.operands import total_of
from verifiers.extract.wordings import says_no_solution
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.mathexpr.clean import clean
from verifiers.mathexpr.forms import plain_words, said_first
from verifiers.mathexpr.golds import RATIO_IN_WORDS, Gold
from verifiers.mathexpr.halves import quantity_with_half
from verifiers.units.words import respelled

_ASSIGNED = lazy_pattern(r"[\s$]*([A-Za-z])\s*=([^=<>]{1,200})")
_NAMED_POINT = lazy_pattern(  # "V(3, 2)", "S(2\\mid 5)"
    r"[\s$]*+[A-Z]?\s*+=?\s*+(?:\\left)?\(\s*+([-−]?[\d./]+)\s*+(?:[,;|]|\\mid\b)\s*+([-−]?[\d./]+)\s*+(?:\\right)?\)[\s$.]*+"
)
_PREFIXED = lazy_pattern(  # "0xFF"
    r"[\s$]*(?:\\(?:texttt|mathtt|text|mathrm)\s*\{\s*)?0([xXbBoO])([0-9A-Fa-f]{1,60})[\s$}]*"
)
_PREFIXES = {"x": 16, "b": 2, "o": 8}
_OPENING_ANGLES = ("⟨", "〈", "\\langle")
_ANGLED = lazy_pattern(r"[⟨⟩〈〉]|\\[lr]angle(?![A-Za-z])")
_UNITS = lazy_pattern(r"[€£₽₺%$]|[^\W\d_]{2,8}|\s")
_AMOUNT = r"[$€£]?\d{1,9}(?:[.,]\d{1,2})?\s?(?:[€£₽₺%]|[^\W\d_]{2,8})?"
_TOTAL = lazy_pattern(rf"\s*({_AMOUNT}(?:\s?[-+−–*·×/:÷]\s?{_AMOUNT}){{1,6}})\s?=\s*({_AMOUNT})")
_RATIO = lazy_pattern(r"\s*\$?\d+(?:\s*:\s*\d+){1,3}\$?\s*")
_NEXT_DAY = any_case(
    r",?\s*\(?\s*(?:on |of )?(?:the )?(?:next|following) (?:day|morning|afternoon|evening)\)?"
    r"|,?\s*\(?(?:am (?:nächsten|folgenden) (?:tag|morgen)|le lendemain(?: matin)?|(?:al|el|del) día siguiente"
    r"|(?:do|no) dia seguinte|(?:il|del) giorno (?:dopo|successivo)|на следующий день|次の日の?|翌日の?|第二天)\)?"
)
_ONE_NOT_THE_OTHER = lazy_pattern(
    r"\(?([A-J])\)?(?:\s*[,，]\s*|\s*)(?:而?不是|而非|(?<=[\s,)])not)\s*\(?([A-J])\)?[\s.。]*"
)  # "B不是A", "B, not A"  # "B不是A", "B, not A"
_CHOSEN_OR_MATHS = lazy_pattern(r"[\d\\^=<>$]|^\W*[A-HJ]\b")
_IN_TEXT = lazy_pattern(r"\s*\$?\\text\s*\{([^{}]{1,80})\}[\s$.]*")
_ORDINAL = lazy_pattern(r"\d(?:st|nd|rd|th)\s+[a-z]{2}")


def as_gold_is_written(answer: str, gold: Gold) -> str:
    """Returns the answer without what its kind of gold never has: the name of a point, a calculation, a denied option.

    Other answers are unchanged.
    """
    point = _NAMED_POINT.fullmatch(answer) if gold.answer.kind in ("tuple", "list") else None
    answer = f"({point[1]}, {point[2]})" if point else answer
    answer = _total(answer) or answer
    if gold.answer.kind == "region":  # "⟨3; +∞)" in Polish and Czech
        answer = _ANGLED.sub(lambda match: "[" if match[0] in _OPENING_ANGLES else "]", answer)
    prefixed = _PREFIXED.fullmatch(answer) if gold.answer.node is not None and gold.answer.node.op == "base" else None
    answer = f"{prefixed[2].upper()}_{{{_PREFIXES[prefixed[1].lower()]}}}" if prefixed else answer
    ratio = RATIO_IN_WORDS.fullmatch(plain_words(answer.replace("$", ""))) if _RATIO.fullmatch(gold.text) else None
    answer = ":".join(re.findall(r"\d+", ratio[0])) if ratio else answer
    answer = _NEXT_DAY.sub("", answer) if gold.answer.kind == "clock" else answer
    contrast = _ONE_NOT_THE_OTHER.fullmatch(answer) if gold.answer.kind == "choice" else None
    answer = contrast[1] if contrast and contrast[1] != contrast[2] else answer
    if gold.answer.kind != "truth":
        return answer
    words = _IN_TEXT.fullmatch(answer)
    return said_first(words[1] if words else answer) or said_first(plain_words(answer)) or answer


def doubt_of(answer: str, gold: Gold, source: str) -> tuple[str, str] | None:
    """Returns why an answer is no single value that can be compared, as (reason, detail), or None if it is one."""
    doubted = hedge(answer) if source != "whole" or _CHOSEN_OR_MATHS.search(answer) else None
    if doubted and not hedge(gold.text) and not says_no_solution(plain_words(answer)):
        return "hedged", f"{doubted!r} in the answer"
    if _ORDINAL.search(answer) and gold.answer.kind != "date" and not _ORDINAL.search(gold.text):
        return "type_clash", "an ordinal number"
    changed = turned(answer) and not turned(gold.text) and turned(respelled(answer))
    if changed and not quantity_with_half(plain_words(clean(answer))):
        return "type_clash", "words that negate or change the value"
    if _refers_to_itself(answer) and "=" not in gold.text:
        return "type_clash", "an equation that defines a name in terms of itself"
    return None


def _total(answer: str) -> str:
    """Returns the result of a calculation with units that comes out right ("60 € − 12 € = 48 €"), or ""."""
    found = _TOTAL.fullmatch(answer)
    left, right = (_UNITS.sub("", part).replace(",", ".") for part in found.groups()) if found else ("", "")
    measured = found is not None and _UNITS.search(found[1]) is not None
    return found[2] if found and measured and total_of(left.replace(":", "/")) == Fraction(right.strip(" .")) else ""


def _refers_to_itself(answer: str) -> bool:
    """Returns whether the answer defines a name in terms of itself, as in "x = x"."""
    match = _ASSIGNED.fullmatch(answer)
    return match is not None and re.search(rf"(?<![A-Za-z\\]){match[1]}(?![A-Za-z_({{])", match[2]) is not None
