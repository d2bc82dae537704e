"""Quantities whose value a following word changes: "$2.75 million", "two dozen", "8 degrees below zero"."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from fractions import Fraction

from verifiers.extract.fraction_words import LANGUAGES, parts
from verifiers.extract.joined_quantities import Quantity, unit_name
from verifiers.lazy_pattern import any_case
from verifiers.units.words import PERCENT, SCALES

_NAMES = "|".join(f"(?P<x{factor}>{words.replace(' ', '|')})" for factor, words in SCALES.items())
_THOUSAND = "thousands?|tausend|mille|mil|тысяч[аи]?|тисяч[аі]?|tysięcy|tysiące|duizend|ribu|nghìn|ngàn|tisíc"
_SCALE = any_case(rf"\s(?:{_NAMES}|(?P<x1000>{_THOUSAND}))(?![^\W\d_])")
# Other words behind a number that make another value of it.
_SCALES = any_case(
    r"tens|hundreds?|thousands?|trillions?|pairs?|score|gross|cubed|squared|hundert|mila|paar"
    r"|paires?|pares|paia|пар[аы]?|сот(?:ен|ни)"
)
_IN_PERCENT = any_case(rf"\s?{PERCENT}")
_BELOW_ZERO = any_case(
    r"\s?(?:(?:°\s?[CF]?|degrees?(?: celsius| fahrenheit)?|grad(?: celsius)?|degrés?(?: celsius)?|grados?|graus?|gradi"
    r"|graden|grader|stopni\w*|градус\w*)\s)?(?:below (?:zero|0)|unter (?:null|0)|(?:sous|en dessous de) (?:zéro|0)"
    r"|bajo cero|abaixo de zero|sotto (?:lo )?zero|onder nul|under noll|poniżej zera|ниже нуля)(?![^\W\d_])"
)


def with_scale(text: str, quantity: Quantity, end: int) -> Quantity:
    """Returns the quantity with the value that the words after it give it."""
    if quantity.value is None or quantity.kind not in ("number", "word") or quantity.article:
        return quantity
    low, high = quantity.span
    scale = _SCALE.match(text, high, end)
    unclear = text.startswith("0,", low)  # "0,125 Millionen", of which the value is read as 125
    if scale is not None and scale.lastgroup is not None and "\\text" not in quantity.said and not unclear:
        value = quantity.value * int(scale.lastgroup[1:])
        unit = unit_name(text, scale.end())
        number = _decimal(value)
        said = f"\\${number}" if "$" in text[low:high] else f"{number}\\text{{ {unit}}}" if unit else number
        return replace(quantity, span=(low, scale.end()), value=value, key=value, said=said)
    percent = None if "cent" in quantity.said else _IN_PERCENT.match(text, high, end)
    if percent is None and text.endswith("yüzde ", 0, low):
        return replace(quantity, said=f"{_decimal(quantity.value)}\\%")
    if percent is not None:
        return replace(quantity, span=(low, percent.end()), said=f"{_decimal(quantity.value)}\\%")
    below = _BELOW_ZERO.match(text, high, end)
    if below is None and not text[high - 1].isdecimal():  # the quantity has its unit
        below = _BELOW_ZERO.match(text, low + _digits(text[low:high]), end)
    if below is not None and quantity.value > 0:
        value = Fraction(-quantity.value)
        return replace(quantity, span=(low, below.end()), value=value, key=value, said=str(value))
    return quantity


def changes_value(word: str, asked: str) -> bool:
    """Returns whether a word behind a number makes another value of it, as "dozens" does, and is no word of `asked`."""
    found = _SCALE.fullmatch(f" {word}") or _SCALES.fullmatch(word) or word.lower() in _parts()
    return bool(found) and word[:4].lower() not in asked.lower()


@functools.cache
def _parts() -> frozenset[str]:
    return frozenset(word for language in LANGUAGES for word in parts(language))


def in_units_of(asked: str, text: str, quantity: Quantity) -> str:
    """Returns a quantity in the notation that the verifier reads: "2" for "two dozen" if dozens are asked for."""
    scale = _SCALE.search(text, *quantity.span)
    if scale is None or scale.lastgroup is None or quantity.value is None:
        return quantity.said
    name = scale[0].split()[0].lower()
    return str(quantity.value / int(scale.lastgroup[1:])) if name[:5] in asked.lower() else quantity.said


def _decimal(value: Fraction) -> str:
    """Returns a value as a decimal, or as a fraction if no short decimal has it."""
    decimal = f"{float(value):.6f}".rstrip("0").rstrip(".")
    return decimal if Fraction(decimal) == value else str(value)


def _digits(said: str) -> int:
    """Returns the length of the number that a quantity begins with, without its unit."""
    found = re.match(r"[\d.,]*\d", said)
    return found.end() if found else len(said)
