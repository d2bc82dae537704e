"""Tells the operands of a calculation from its result: "20 vanilla cones - 16 fruity ones = 4 more"."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.extract.conclusions import unsure
from verifiers.extract.numerals import language_of
from verifiers.extract.quantities import quantities
from verifiers.extract.sentences import sentence_ends
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import OPPOSED, REPORTS, STOP, UNREAL
from verifiers.lazy_pattern import any_case, lazy_pattern

_LOOK = 200  # characters of a calculation that are read
_NAMED = r"(?:\s?/?(?<![\w'’])[^\W\d_][\w'’]*+(?:-[^\W\d_]+)*+|\s?\\?%)*+"  # the words of a quantity
_SIGN = r"\s?[-–−+*/×÷·]\s?"
_NUMBER = r"\(?[-−]?[$€£¥]?\d[\d.,]*\)?"
_AN_OPERAND = lazy_pattern(rf"{_NAMED}(?:{_SIGN}{_NUMBER}{_NAMED})+\s?=")
_THE_LAST = lazy_pattern(rf"\)?{_NAMED}\s?=")
_BEFORE_IT = lazy_pattern(rf"\d{_NAMED}{_SIGN}\(?[-−]?[$€£¥]?$")
# "1.5m + 4", "2x/(x² + 1)", "f(n) = 3n": terms without spaces inside them, and operators and relations between these.
_FUNCTION = r"(?:sin|cos|tan|ln|log|exp|sqrt)(?![A-Za-z])\s?"
_TERM = rf"(?:{_FUNCTION}|(?<![A-Za-z])[A-Za-z](?![A-Za-z])['’′]{{0,2}}|\d{{1,9}}(?:\.\d{{1,9}})?(?!\d)|[()²³⁴⁵ⁿ^√π])"
_EXPRESSION = lazy_pattern(
    rf"(?<![\w.$\\{{])(?:[-−]\s?)?{_TERM}{{1,12}}+(?:\s?[-−–+*·×⋅/=<>≤≥]\s?(?:[-−]\s?)?{_TERM}{{1,12}}+){{0,12}}+"
)
_NAMES_FUNCTION = lazy_pattern(_FUNCTION)
_UNKNOWN = lazy_pattern(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z'’])")
_BESIDE_DIGIT = lazy_pattern(r"(?<=[\d(])([A-Za-z])(?![A-Za-z])")  # the a of "3(2a - 5b)"
_MATHS = lazy_pattern(r"\$([^$]{1,400})\$")
_COMMAND = lazy_pattern(r"\\[A-Za-z]+")
_EQUALS = lazy_pattern(r"(?!y\s)[A-Za-z]['’′]{0,2}(?:\([a-z]\))?\s?=(?!.*=)")
# Words before an expression that make it a part of the answer, or another line's equation.
_OF_ANOTHER = any_case(
    r"(?:\b(?:negative|opposite|root|reciprocal|inverse|square|half|double|multiple|derivative|antiderivative|complement"
    r"|mirror image) of(?: the following:?)?|\b(?:at (?:most|least)|from|proportional to|(?:above|below)|(?:parallel"
    r"|parallèle"
    r"|paralela|perpendicular|perpendicolare|senkrecht) (?:to|zu|auf|à|a)|meets|touches|contains|negative von)"
    r"|параллельна|与)"
    r"[\s$(]*$"
)
_LED = 24  # characters
_OPERATES = lazy_pattern(r"[-−–+*·×⋅/=<>≤≥≡²³⁴⁵ⁿ^√(]|\d[A-Za-z]")
# What may follow an expression that ends a sentence.
_CLOSES = any_case(
    r"\s(?:for (?:all|every|any|each) (?:\w+ ){1,2}\w|für alle \w+ \w|pour tout \w+ \w|para todo \w+ \w|per ogni \w+ \w"
    r"|olur|dir|wynosi)|(?:です|になります|となります|である|입니다|이다|로 인수분해됩니다|가 됩니다)"
)
_AT_POINT = any_case(  # "reaches its largest value, 13, when x = 4"
    r"\b(?:when|at|where|wenn|bei|quand|lorsque|cuando|quando|wanneer|bij|gdy)\s[\s$(\\]*$|(?<!\w)(?:при|когда)\s[\s$(\\]*$"
)
_REMARK = lazy_pattern(r"(?<=[\w)²³])(?:[;；]|,\s)[^,;.=<>\d²³]{1,80}$")  # "on trouve 3x², tout simplement"
_GIVES = any_case(
    r"\b(?:is|are|be|equals?|into|gives?|get|have|becomes?|obtain|simplif(?:y|ies) to|(?:down|out) (?:to|as)|leaves?"
    r"|yields?|(?:it|that)['’]s|ist|ergibt|wird|daraus|lautet|zu|erhält|erhalten|est|donne|devient|vaut|obtient|trouve|obtenons"
    r"|trouvons|es|da|queda|resulta|obtiene|obtenemos|é|dá|fica|obtém|obtemos|è|diventa|dà|ottiene|otteniamo|trova|jest"
    r"|daje|blir)\s+$|(?:равно|получаем|получится|это|—|–|=|是|为|得到|は|が|sonuç)\s*$"
)


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


def whole_expression(text: str, extraction: Extraction, prompt: str) -> Extraction:
    """Returns the extraction, or the expression's if its number is a term of one in the question's unknowns."""
    if extraction.span is None:
        return extraction
    start, stop = extraction.span
    for low, high in _expressions(text, max(0, start - _LOOK), stop + _LOOK, prompt):
        if low <= start < high and high - low > stop - start and not _OF_ANOTHER.search(text, max(0, low - _LED), low):
            return Extraction((low, high), extraction.source, extraction.others)
    return extraction


def final_expression(text: str, end: int, prompt: str) -> Span | None:
    """Returns the expression in the question's unknowns that ends the text ("... turns it into 6x + 6."), or None."""
    stop = len(text[:end].rstrip(" \t\n.!*_"))
    remark = _REMARK.search(text, max(0, stop - _LOOK), stop)
    if remark and not (OPPOSED.search(remark[0]) or REPORTS.search(remark[0]) or unsure(remark[0])):
        stop = remark.start()
    for low, high in _expressions(text, max(0, stop - _LOOK), stop, prompt):
        if (high == stop or _CLOSES.fullmatch(text, high, stop)) and _GIVES.search(text[max(0, low - _LED) : low]):
            return low, high
    low = max(0, stop - _LOOK)
    begin = max((match.end() for match in STOP.finditer(text, low, stop)), default=low)
    named = [
        span
        for span in _expressions(text, begin, stop, prompt)
        if _EQUALS.match(text, *span) and not _AT_POINT.search(text, max(begin, span[0] - _LED), span[0])
    ]
    if len(named) == 1:
        part = text[max(begin, text.rfind(",", begin, named[0][0])) : stop]
        if not (OPPOSED.search(part) or REPORTS.search(part) or UNREAL.search(part) or unsure(part)):
            return named[0]
    return None


def only_expression(text: str, span: Span, prompt: str) -> Span | None:
    """Returns the only expression in the question's unknowns in a part of the text, or None."""
    found = _expressions(text, *span, prompt)
    return found[0] if len(found) == 1 else None


def _expressions(text: str, start: int, end: int, prompt: str) -> list[Span]:
    """Returns the spans of the expressions with an operator that have no other unknowns than the question's."""
    known = set(_UNKNOWN.findall(prompt)) - {"a", "A", "I"}
    known.update(_BESIDE_DIGIT.findall(prompt))
    for maths in _MATHS.findall(prompt):
        known.update(re.findall(r"[A-Za-z]", _COMMAND.sub(" ", maths)))
    spans = []
    for found in _EXPRESSION.finditer(text, start, end) if known else ():
        said = found[0].rstrip()
        if said.count("(") != said.count(")") or len(said) < 2:
            continue
        unknowns = set(_UNKNOWN.findall(re.sub(r"\d", " ", _NAMES_FUNCTION.sub(" ", said))))
        if unknowns and unknowns <= known and _OPERATES.search(said):
            spans.append((found.start(), found.start() + len(said)))
    return spans


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
