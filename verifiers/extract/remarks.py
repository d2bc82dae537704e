"""Removes remarks after an answer that say nothing about it: offers to the reader, asides that deny other values."""

from __future__ import annotations

import functools
import math
import re

from verifiers.extract import remark_words as words
from verifiers.extract.asked import shared_with
from verifiers.extract.retractions import MISTAKES
from verifiers.extract.spans import ending
from verifiers.extract.statement_words import REPORTS
from verifiers.lazy_pattern import lazy_pattern

_PICTURES = lazy_pattern(
    "[😊😀😃😄😁🙂😉😎🎉🎊🍬🍭🍎🍕🌟⭐✨🚀💡📚📝🔢🧮👍🙌💪🏆🎯🥳🤓]\ufe0f?"
)  # they say nothing against an answer
_STOPS = frozenset(".!?。！？؟)）")
_BETWEEN = (". ", "! ", "? ", "\n", "。", "！", "？", "؟ ")  # separators of sentences
_INSIDE = frozenset(">}0123456789")  # last characters of texts that end with their answer
_LONGEST = 240  # characters of a remark
_MOST = 3
_LONGEST_ASIDE = 110
_LONGEST_CHECK = 500
_TAIL = 40  # characters
_NEAR = 120  # characters before a remark that contain the answer
_FRACTION = lazy_pattern(r"(?:\\[dt]?frac\{)?(\d{1,15})(?:\s?/\s?|\}\{)(\d{1,15})\}?")
_PI = lazy_pattern(r"(\d{0,9})(?:\\pi|π)")


@functools.lru_cache(maxsize=4)  # a refused text is read again
def without_remarks(text: str) -> str:
    """Returns the text without the remarks after its answer."""
    if text[-1:] in _INSIDE:
        return text
    if not text.isascii():
        text = _PICTURES.sub(" ", text)
    for _ in range(_MOST):
        end = len(text[: ending(text)].rstrip("*"))
        cut = _before_remark(text, end) if end and text[end - 1] in _STOPS else None
        if cut is None:
            break
        text = text[:cut]
    return text


def _before_remark(text: str, stop: int) -> int | None:
    low = max(0, stop - _LONGEST)
    rounded = words.ROUNDED.search(text, low, stop)
    if rounded is not None and is_rounded(rounded):
        return rounded.start("rounded")
    instead = words.INSTEAD.search(text, max(low, stop - _TAIL), stop) if text[stop - 1] in "。！" else None
    if instead is not None and instead.end() == stop:
        stated = text[_after_stop(text, low, instead.start()) : instead.start()]
        if words.NUMBERS.search(stated) and not _names(stated, instead["value"]):
            return instead.start()
    begin = _after_stop(text, low, stop - 1)
    sentence = text[begin:stop].lower()
    for pattern in (words.NOT_THIS, words.NOT_THIS_AFTER) if any(map(sentence.__contains__, words.NEGATIONS)) else ():
        denied = next((found for found in pattern.finditer(text, begin, stop) if found.end() == stop), None)
        if denied is not None and words.NUMBERS.search(text, begin, denied.start()):
            return None if _names(text[begin : denied.start()], denied["value"]) else denied.start()
    closing = stop - 1 if text[stop - 1] in ")）" else stop - 2
    if text[closing] in ")）":
        opening = max(text.rfind("(", low, stop), text.rfind("（", low, stop))
        offered = len(text[: max(opening, 0)].rstrip())
        offer = _after_stop(text, low, offered - 1) if text[offered - 1 : offered] in ("?", "？") else low
        if offer > low and words.OFFER.match(text, offer, stop) and not words.DOUBTS.search(text, offer, stop):
            return offer
        if opening > 0 and (
            (words.ASIDE.fullmatch(text, opening, stop) and _of_other_values(text, opening, stop))
            or _denies_another(text, opening, stop)
            or (words.CONFIRMING.fullmatch(text, opening, stop) and not words.OBJECTION.search(text, opening, stop))
        ):
            return opening
    if begin <= low or not text[:begin].strip():
        return None
    if words.OFFER.match(text, begin, stop) and not words.DOUBTS.search(text, begin, stop):
        if text[stop - 1] in "?？؟" or words.SHOWING.search(text, begin, stop):
            return begin
        return None if words.NUMBERS.search(text, begin, stop) else begin
    alone = any(one.fullmatch(text, begin, stop) for one in (words.EXCLAIMS, words.AGREES, words.ENDS, words.STATED))
    if alone or _is_of_something_else(text, begin, stop) or _fits(text, begin, stop):
        return begin
    given_up = words.GIVEN_UP.match(text, begin, stop)
    if given_up and not words.TURNS.search(text, given_up.end(), stop) and _of_other_values(text, given_up.end(), stop):
        return begin
    mistakes = MISTAKES.match(text, begin, stop)
    of_mistakes = mistakes and words.IS_TO.match(text, mistakes.end(), stop)
    if (of_mistakes or words.ONLY_THEN.match(text, begin, stop)) and not _names_value_before(text, begin, stop):
        return begin
    if words.OTHERWISE.fullmatch(text, begin, stop):
        unreal = text[:begin] + text[begin:stop].replace(" instead", "")
        if _of_other_values(unreal, begin, len(unreal)):
            return begin
    aside = words.BY_THE_WAY.match(text, begin, stop)
    if aside and not words.POINTS.match(text, aside.end(), stop) and _of_other_values(text, begin, stop):
        return None if words.SPEAKS.search(text, aside.end(), stop) else begin
    warns = words.WARNING.match(text, begin, stop) and _of_other_values(text, begin, stop, unnamed=True)
    return begin if warns or _denies_another(text, begin, stop) else _checked_from(text, begin, stop)


def is_rounded(match: re.Match[str]) -> bool:
    """Returns whether the decimal number is the exact value rounded; only fractions and multiples of π are compared."""
    said = match["rounded"]
    if said.count("$") % 2 or said.count("\\(") != said.count("\\)"):
        return False  # both are in one formula
    number = (match["number"] or match["in_brackets"]).replace("{,}", ".").replace(",", ".")
    over = _FRACTION.fullmatch(match["exact"])
    pi = _PI.fullmatch(match["exact"])
    if over is not None:
        exact = int(over[1]) / int(over[2]) if int(over[2]) else math.inf
    elif pi is not None:
        exact = int(pi[1] or 1) * math.pi
    else:
        return True
    return abs(exact - float(number)) < 1.01 * 10.0 ** -len(number.partition(".")[2])


def _names_value_before(text: str, begin: int, end: int) -> bool:
    near = text[max(0, begin - _NEAR) : begin]
    return any(_names(near, name) for name in words.NUMBERS.findall(text, begin, end))


def _is_of_something_else(text: str, begin: int, end: int) -> bool:
    """Returns whether a remark says that something is not asked for that the sentence before does not name."""
    if end - begin > _LONGEST_ASIDE or words.NOT_ASKED.search(text, begin, end) is None:
        return False
    if (
        words.POINTS.match(text, begin, end)
        or words.DOUBTS.search(text, begin, end)
        or words.NUMBERS.search(text, begin, end)
    ):
        return False
    before = _after_stop(text, max(0, begin - _LONGEST), begin - 2)
    return not shared_with(text[before:begin], text[begin:end])


def _after_stop(text: str, low: int, end: int) -> int:
    """Returns where the sentence begins that the position `end` is in, `low` if that is not known."""
    return max([low, *(at + len(sign) for sign in _BETWEEN if (at := text.rfind(sign, low, end)) >= 0)])


def _fits(text: str, begin: int, stop: int) -> bool:
    """Returns whether a remark calculates with the answer and says that the result is the expected one."""
    fits = words.FITS.search(text, begin, stop)
    return (
        fits is not None and fits.end() == stop and words.NUMBERS.search(text, begin, fits.start()) is not None
        and not (words.OBJECTION.search(text, begin, fits.start()) or words.DOUBTS.search(text, begin, fits.start()))
        and not REPORTS.search(text, begin, fits.start())
    )  # fmt: skip


def _of_other_values(text: str, begin: int, end: int, *, unnamed: bool = False) -> bool:
    """Returns whether a remark names values or is in brackets, names no value directly before it and doubts nothing.

    `unnamed`: it need not name values.
    """
    near = _boxes(text, begin)[-_NEAR:] or text[max(0, begin - _NEAR) : begin]
    named = [name.strip("$ ") for name in words.NUMBERS.findall(text, begin, end)]
    return (
        not any(_names(near, name) for name in named)
        and words.DOUBTS.search(text, begin, end) is None
        and bool(unnamed or named or "(" in text[begin : begin + 2])
    )


def _denies_another(text: str, begin: int, end: int) -> bool:
    """Returns whether a remark denies a value that is not the answer's and claims no new one."""
    denied = words.DENIES_AFTER.fullmatch(text, begin, end)
    if denied is not None:
        return not _names(text[max(0, begin - _NEAR) : begin], denied["value"])
    first = words.WORD.search(text, begin, end)
    if first is None or not (first[0].lower() in words.FIRST or first[0] > "\u3040"):
        return False
    denied = words.DENIES.match(text, begin, end)
    reported = None if denied else words.REPORTS_VALUE.match(text, begin, end)
    found = denied or reported
    if found is None or (reported and not words.CALLED_WRONG.match(text, found.end(), end)):
        return False
    near = text[max(0, begin - _NEAR) : begin]
    if all(_names(near, value) for value in words.NUMBERS.findall(found["value"])) or _names(
        _boxes(text, begin), found["value"]
    ):
        return False
    if words.CALLED_RIGHT.search(text, found.end(), end):
        return False
    for value in words.NUMBERS.finditer(text, found.end(), end):
        states = words.STATES.search(text, found.end(), value.start())
        if states if not _names(near, value[0]) else not (states and not words.WORD.search(text, value.end(), end)):
            return False
    return True


def _boxes(text: str, end: int) -> str:
    """Returns the text from the last box on."""
    low = text.rfind("boxed", 0, end)
    return text[low:end] if low >= 0 else ""


def _names(part: str, value: str) -> bool:
    return re.search(rf"(?<![\d.,/]){re.escape(value.strip('$ '))}(?![\d/]|[.,]\d)", part) is not None


def _checked_from(text: str, begin: int, stop: int) -> int | None:
    """Returns where a check of the answer begins that a text ends with and that finds the answer again, or None."""
    low = max(0, stop - _LONGEST_CHECK)
    check = words.CHECKS.search(text, low, begin) if words.CONFIRMED.fullmatch(text, begin, stop) else None
    if check is None or words.OBJECTION.search(text, check.end(), begin):
        return None
    before, found = words.NUMBERS.findall(text, low, check.start()), words.NUMBERS.findall(text, check.end(), begin)
    start = _after_stop(text, low, check.start())
    return start if before and found and before[-1] == found[-1] and start > low else None
