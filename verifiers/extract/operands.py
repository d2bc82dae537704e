"""Tells the operands of a calculation from its result: "20 vanilla cones - 16 fruity ones = 4 more"."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.extract.numerals import language_of
from verifiers.extract.quantities import quantities
from verifiers.extract.sentences import sentence_ends
from verifiers.extract.spans import Extraction, Span
from verifiers.lazy_pattern import lazy_pattern

_LOOK = 200  # characters of a calculation that are read
_NAMED = r"(?:\s?/?(?<![\w'’])[^\W\d_][\w'’]*+(?:-[^\W\d_]+)*+|\s?\\?%)*+"  # the words of a quantity
_SIGN = r"\s?[-–−+*/×÷·]\s?"
_NUMBER = r"\(?[-−]?[$€£¥]?\d[\d.,]*\)?"
_AN_OPERAND = lazy_pattern(rf"{_NAMED}(?:{_SIGN}{_NUMBER}{_NAMED})+\s?=")
_THE_LAST = lazy_pattern(rf"\)?{_NAMED}\s?=")
_BEFORE_IT = lazy_pattern(rf"\d{_NAMED}{_SIGN}\(?[-−]?[$€£¥]?$")


def result_of(text: str, extraction: Extraction) -> Extraction:
    """Returns the extraction, or the result's if its value is an operand of a calculation in the same sentence."""
    if extraction.span is None:
        return extraction
    start, stop = extraction.span
    if text.find("=", stop, stop + _LOOK) < 0:
        return extraction
    end = next((match.start() for match in sentence_ends(text).finditer(text, stop, stop + _LOOK)), stop + _LOOK)
    calculated = _AN_OPERAND.match(text, stop, end)
    if calculated is None and _BEFORE_IT.search(text, max(0, start - _LOOK), start):
        calculated = _THE_LAST.match(text, stop, end)
    if calculated is None:
        return extraction
    span = _only_value(text, text.rfind("=", start, end) + 1, end)
    return Extraction(span, "statement" if span else "unsure")


# "1.5m + 4", "6x² - 4n": numbers, products with a variable and signs; one variable at least.
_POWER = r"(?:\^\{?-?\d{1,3}\}?|[²³⁴])?"
_FACTOR = (
    rf"(?:\d{{1,9}}(?:\.\d{{1,9}})?\s?[*·×]?\s?)?[A-Za-z]{_POWER}(?:[a-z]{_POWER})?(?![A-Za-z'’])"
    r"|\d{1,9}(?:\.\d{1,9})?(?![\dA-Za-z])"
)
_EXPRESSION = lazy_pattern(rf"(?<![\w.^$\\{{])(?:[-−]\s?)?(?:{_FACTOR})(?:\s?[-−+]\s?(?:{_FACTOR})){{1,6}}")
_UNKNOWN = lazy_pattern(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z'’])")
_LED = 24  # characters
_GIVES = lazy_pattern(
    r"\b(?:is|are|be|equals?|into|gives?|get|have|becomes?|obtain|simplif(?:y|ies) to|(?:down|out) to|leaves?|yields?"
    r"|ist|ergibt|wird|lautet|zu|erhält|est|donne|devient|vaut|obtient|es|da|queda|resulta|é|dá|fica|è|diventa|dà|jest|daje)\s+$"
    r"|(?:равно|получаем|получится|это|—|–|是|为|得到|は|が)\s*$",
    re.IGNORECASE,
)


def whole_expression(text: str, extraction: Extraction, prompt: str) -> Extraction:
    """Returns the extraction, or the expression's if its number is a term of one in the question's unknowns."""
    if extraction.span is None:
        return extraction
    start, stop = extraction.span
    known = set(_UNKNOWN.findall(prompt)) - {"a", "A", "I"}
    if not known:
        return extraction
    for found in _EXPRESSION.finditer(text, max(0, start - _LOOK), stop + _LOOK):
        unknowns = set(_UNKNOWN.findall(re.sub(r"\d", " ", found[0])))
        if found.start() <= start < found.end() and unknowns and unknowns <= known:
            return Extraction(found.span(), extraction.source, extraction.others)
    return extraction


def final_expression(text: str, end: int, prompt: str) -> Span | None:
    """Returns the expression in the question's unknowns that ends the text ("... turns it into 6x + 6."), or None."""
    known = set(_UNKNOWN.findall(prompt)) - {"a", "A", "I"}
    stop = len(text[:end].rstrip(" \t\n.!*_"))
    for found in _EXPRESSION.finditer(text, max(0, stop - _LOOK), stop):
        unknowns = set(_UNKNOWN.findall(re.sub(r"\d", " ", found[0])))
        led = text[max(0, found.start() - _LED) : found.start()]
        if found.end() == stop and unknowns and unknowns <= known and _GIVES.search(led):
            return found.span()
    return None


def _only_value(text: str, start: int, end: int) -> Span | None:
    found = quantities(text, start, end, language_of(text))
    return found[0].span if len(found) == 1 else None


def total_of(calculation: str) -> Fraction | None:
    """Returns the value of numbers with operators between them, products first, or None for a division by 0."""
    total = Fraction(0)
    for sign, product in re.findall(r"(^|[-+−–])([^-+−–]+)", calculation.replace(" ", "")):
        factors = re.findall(r"(^|[·*×x/÷])([\d.]+)", product)
        value = Fraction(1)
        for operator, number in factors:
            if operator in ("/", "÷") and not Fraction(number):
                return None
            value = value / Fraction(number) if operator in ("/", "÷") else value * Fraction(number)
        total += -value if sign in ("-", "−", "–") else value
    return total
