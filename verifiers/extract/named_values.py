"""Finds the values of the names that a question asks for as a pair: "So a equals -4, and b equals 1." for (a, b)."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from verifiers.extract.asked import NOTHING
from verifiers.extract.clauses import opposed, reports, supposes
from verifiers.extract.quantities import in_digits
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import UNREAL
from verifiers.extract.turns import CORRECTION
from verifiers.lazy_pattern import lazy_pattern

_NAMES = lazy_pattern(r"\(\s*([a-z])\s*,\s*([a-z])(?:\s*,\s*([a-z]))?\s*\)")
_MOST_BEFORE = 4  # sentences in which the values stand
_VALUE = r"(?P<value>(?:(?P<minus>minus|negative|moins|menos|meno|минус)\s{1,12}|[-−])?\s{0,8}\d{1,9}(?:[./]\d{1,9})?)"


def named_values(text: str, sentences: Sequence[Span], asked: str, language: str) -> Extraction | None:
    """Returns the values of the names in the question's "(x, y)" as "(4, 3)", or None unless each has exactly one.

    The last sentence must give one of them; the others may stand in the sentences directly before it.
    """
    wanted = list(_NAMES.finditer(asked))
    if not wanted:
        return None
    names = [name for name in wanted[-1].groups() if name]
    near = sentences[-_MOST_BEFORE:]
    text = in_digits(text, near[0][0], near[-1][1], language)
    values: dict[str, str] = {}
    low, high = near[-1][1], near[-1][0]
    for span in near:
        part = text[slice(*span)]
        found = [match for name in names for match in _given(name).finditer(text, *span)]
        if not found:
            continue
        if opposed(part, language) or reports(part, NOTHING) or supposes(part) or UNREAL.search(part):
            return None
        if CORRECTION.search(part):
            values.clear()
        for match in found:
            said = ("-" if match["minus"] else "") + match["value"].split()[-1].replace("−", "-").replace(" ", "")
            if values.setdefault(match["name"], said) != said:
                return None
            low, high = min(low, match.start()), max(high, match.end())
    if set(values) != set(names) or high <= near[-1][0]:
        return None
    return Extraction((low, high), "statement", said=f"({', '.join(values[name] for name in names)})")


_SOME = r"[-−]?\s?(?:\d{1,9}(?:[.,/]\d{1,9})?|\d{0,4}√\d{1,6}|\d{0,4}π(?:/\d{1,4})?)"
_JOINT = (
    r"(?:,\s|,?\s?(?<!\w)(?:or|oder|ou|o|и|или|lub|albo|of|eller|veya|vagy|sau|nebo|and|und|et|y|e|i|en|och|ve|또는|그리고"
    r"|或|或者|または|和|と)(?![A-Za-z])\s?)"
)
_SAME_NAME = lazy_pattern(
    rf"(?<![\w'’])(?P<all>(?P<name>[a-z])\s?=\s?{_SOME}(?:{_JOINT}(?P=name)\s?=\s?{_SOME}){{1,5}})"
    r"(?:\s?(?:입니다|이다|です))?[.。\s*]*$"
)
_AFTER_EQUALS = lazy_pattern(rf"=\s?({_SOME})")


def values_of_one_name(text: str, span: Span, language: str) -> Extraction | None:
    """Returns the values of "x = 0,5 lub x = −3", with which a sentence ends, as a list, or None."""
    found = _SAME_NAME.search(text, *span)
    led = text[span[0] : found.start()] if found else ""
    if found is None or opposed(led, language) or reports(led, NOTHING) or supposes(led) or UNREAL.search(led):
        return None
    values = (value.replace("−", "-").replace(",", ".").replace(" ", "") for value in _AFTER_EQUALS.findall(found[0]))
    said = ", ".join(f"{found['name']} = {value}" for value in values)
    return Extraction(found.span("all"), "statement", said=said)


@functools.lru_cache(maxsize=64)
def _given(name: str) -> re.Pattern[str]:
    """Returns the pattern of "x = 4" and "x equals 4", where x is not a part of an expression."""
    return re.compile(
        rf"(?<![\w'’^\\/*·+−-])(?<![-+−*/·=] )(?P<name>{name})\$?\s?(?:=|(?:must be|has to be|is equal to|equals|is"
        r"|ist gleich|ist|est égale? à|vaut|est|es igual a|vale|es|é igual a|é|è uguale a|è|is gelijk aan"
        r"|är lika med|är"
        r"|równa się|wynosi|равен|равна|равно|равняется)(?!\w)|等于"
        r"|等於|[는은は])"
        rf"\s{{0,8}}\$?{_VALUE}\$?(?![A-Za-z0-9_(^]|[.,/]\d|\s?[-+−*/·=×÷])",
        re.IGNORECASE if name.isupper() else 0,
    )
