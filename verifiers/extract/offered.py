"""Finds another value that "or" offers beside a stated one: "6 o 9 lati", "6 либо 9 сторон"."""

from __future__ import annotations

from verifiers.extract.spans import Span
from verifiers.extract.words import OR
from verifiers.lazy_pattern import any_case
from verifiers.units.words import PERCENT

_LOOK = 60  # characters
_NUMBER = r"(?P<value>\d+(?:[.,]\d+)*)"
_JOIN = rf"[\s,(（、$*]*{OR}\s*(?:[^\W\d_]{{1,8}}\s)?\$?"
_AFTER = any_case(
    rf"[\s-]?(?:(?!{OR})(?P<own>[^\W\d_]{{1,15}}?))?(?:\s(?!{OR})[^\W\d_]{{1,15}})?{_JOIN}{_NUMBER}(?!\d|\s?[/%\\])"
    r"(?:\s?(?P<unit>[^\W\d_]+))?"
)
_BEFORE = any_case(
    rf"(?<![\w.,/]){_NUMBER}[\s-]?(?:(?!{OR})(?P<unit>[^\W\d_]{{1,15}}?))?(?:\s(?!{OR})[^\W\d_]{{1,15}})?{_JOIN}\Z"
)
_WORD = any_case(r"\s?(?P<unit>[^\W\d_]+)")
_PERCENT = any_case(PERCENT)


def is_offered(text: str, sentence: Span, value: Span) -> bool:
    """Returns whether the sentence offers another number than the one at `value`, of the same unit or without one."""
    after = _AFTER.match(text, value[1], min(sentence[1], value[1] + _LOOK))
    before = _BEFORE.search(text[max(sentence[0], value[0] - _LOOK) : value[0]])
    follows = _WORD.match(text, value[1], sentence[1])
    own = text[slice(*value)].strip(" $*")
    for other, unit in ((after, after and after["own"]), (before, follows and follows["unit"])):
        if other is None or other["value"].replace(",", ".") == own.replace(",", "."):
            continue
        units = {word.casefold() for word in (unit, other["unit"]) if word}
        if len(units) < 2 and not any(map(_PERCENT.match, units)):
            return True
    return False
