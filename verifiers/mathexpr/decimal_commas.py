"""Reads "3,5" as a decimal and "86.400" as a thousand where the gold or the language writes numbers so."""

from __future__ import annotations

import functools
import re

from verifiers.extract.numerals import language_of
from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.golds import Gold, read_gold
from verifiers.mathexpr.local import grouped_by_points

_ONE_VALUE = lazy_pattern(
    r"[\s$]*-?(?:\d{1,9}\s?/\s?\d{1,9}|\\[dt]?frac\{\d{1,9}\}\{\d{1,9}\})[\s$.]*"
)  # a fraction, no list  # a fraction, no list
_LIST_OR_DECIMAL = lazy_pattern(r"-?\d{1,9},\d{1,9}")
_WITH_DECIMAL_COMMA = frozenset("de fr es pt it nl sv pl ru tr vi id".split())
_WITH_POINTS = frozenset("de es pt it nl tr vi id".split())
_GROUPED = lazy_pattern(r"[\s$*]*+[-+−]?[1-9]\d{0,2}(?:\.\d{3}){1,5}(?![\d.,]*\d)", re.ASCII)
_PRICE = lazy_pattern(  # "€ 57,60", "85,00 €"
    r"\s*([€£₽₺]\s?|R\$\s?)?(\d{1,9}),(\d\d)(\s?(?:[€£₽₺]|EUR|[Ee]uros?|kr|zł|TL|PLN))?\s*", re.ASCII
)
_DECIMAL_COMMA = lazy_pattern(
    r"\s*\$?([-+−]?\d{1,9})(?:\{,\}|,(?=\d{1,9}(?:\s?[^\W\d]|\s?(?:[€£₹₽₺%°]|\\%)"
    r"|\s?\\text)))(\d{1,9})(\s?[^,;]{0,30})",
    re.ASCII,
)
_ASSIGNED_COMMA = lazy_pattern(
    r"([\s$]*(?:\\?[A-Za-zα-ω]{1,6}(?:_\w)?)\s*[=≈]\s*[-+−]?\d{1,9})(?:\{,\}|,)(\d\d?"
    r"|\d{4,9})(?![\d,])(\s?[^,;]{0,30})",
    re.ASCII,
)
_MONEY = lazy_pattern(r"[\s~{]*(?:\\text\{\s?)?(?:[€£₹₽₺%]|\\%|EUR|[Ee]uros?\b|PLN|zł)")
_POINT_DECIMAL = lazy_pattern(r"[\s$]*-?\d{1,9}\.\d{1,9}[\s$.]*")
_OF_POINTS = lazy_pattern(r"(?<![\d.,])(?:\d{1,9},\d{1,2}|[1-9]\d{0,2}(?:\.\d{3})*\.\d00)(?![\d,]|\.\d)")
_SHORT_DECIMAL = lazy_pattern(r"\d\.\d{1,2}(?!\d)")  # in a question that writes decimals as in English


def in_points(gold: Gold, answer: str, prompt: str, original: str, context: str) -> tuple[Gold, str]:
    """Returns gold and answer with decimal points and ungrouped thousands.

    `original`: the gold as the problem gives it; `context`: the question and the completion, which show the language.
    """
    if gold.type == "decimal" and prompt:
        gold = _grouped_gold(gold, prompt)
    answer = _without_points(gold, answer, context, grouped=grouped_by_points(original) != original)
    return _with_decimal_comma(gold, answer, context)


def _without_points(gold: Gold, answer: str, context: str, *, grouped: bool) -> str:
    """Reads "86.400" as 86400, if the gold has a thousand or more and digits are grouped by points.

    They are if the gold's text does so (`grouped`), or if question and completion (`context`) are in such a language.
    """
    value = rational(gold.answer.node) if gold.answer.kind == "scalar" and gold.answer.node is not None else None
    match = _GROUPED.match(answer) if value is not None and value.denominator == 1 and abs(value) >= 1000 else None
    if match is None or not (grouped or language_of(context) in _WITH_POINTS):
        return answer
    return answer[: match.end()].replace(".", "") + answer[match.end() :]


def _with_decimal_comma(gold: Gold, answer: str, context: str) -> tuple[Gold, str]:
    """Returns gold and answer with decimal points, if the comma of a gold such as "0,25" is a decimal comma.

    It may also separate a list. It is a decimal comma if the gold begins with "0," or the language writes decimals so,
    and the answer, such as `0{,}25` or "2,5 m", is a single value.
    """
    listed = _LIST_OR_DECIMAL.fullmatch(gold.text)
    as_decimal = functools.partial(_reread, gold, gold.text.replace(",", "."))
    price = _PRICE.fullmatch(answer)
    if price is not None and (price[1] or price[4]):
        answer = f"{price[1] or ''}{price[2]}.{price[3]}{price[4] or ''}"
        return (as_decimal() if listed else gold), answer
    one = listed or gold.answer.kind == "scalar"
    assigned = _ASSIGNED_COMMA.fullmatch(answer) if one and "," in answer else None
    if assigned and language_of(context) in _WITH_DECIMAL_COMMA:  # "x = 3,5"
        point = f"{assigned[1]}.{assigned[2]}{assigned[3]}"
        return (as_decimal() if listed else gold), point
    if not listed:
        return gold, answer
    in_language = language_of(context) in _WITH_DECIMAL_COMMA
    decimal = in_language or gold.text.lstrip("-").startswith("0,")
    if decimal and _ONE_VALUE.fullmatch(answer):
        return as_decimal(), answer
    if (in_language or (decimal and len(gold.text) > 3)) and _POINT_DECIMAL.fullmatch(answer):
        return as_decimal(), answer
    comma = _DECIMAL_COMMA.fullmatch(answer)
    same_money = comma is not None and f"{comma[1]},{comma[2]}" == gold.text and _MONEY.match(comma[3])
    if comma is None or not (decimal or same_money):
        return gold, answer
    return as_decimal(), f"{comma[1]}.{comma[2]}{comma[3]}"


def _grouped_gold(gold: Gold, prompt: str) -> Gold:
    """Reads a gold "1.500" as 1500, if the question's language groups so and the question contains such numbers."""
    if not _GROUPED.fullmatch(gold.text) or language_of(prompt) not in _WITH_POINTS:
        return gold
    shown = _OF_POINTS.search(prompt) and not _SHORT_DECIMAL.search(prompt)
    return _reread(gold, gold.text.replace(".", "")) if shown else gold


def _reread(gold: Gold, text: str) -> Gold:
    other = read_gold(text)
    return gold if isinstance(other, str) else other
