"""Reads units of measurement, and products and powers of them, as a dimension and a size."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from typing import NamedTuple

from verifiers.lazy_pattern import lazy_pattern
from verifiers.marks import LETTER
from verifiers.units.names import Dimension, named


class Unit(NamedTuple):
    """A dimension, such as (("length", 1), ("time", -1)), and the size of the unit in base units."""

    dimension: Dimension
    scale: Fraction

    def times(self, other: Unit, power: int = 1) -> Unit:
        """Returns the product of this unit and a power of another."""
        exponents = dict(self.dimension)
        for name, exponent in other.dimension:
            exponents[name] = exponents.get(name, 0) + power * exponent
        return Unit(tuple(sorted((k, v) for k, v in exponents.items() if v)), self.scale * other.scale**power)


NO_UNIT = Unit((), Fraction(1))
_UNITS = {name: Unit(dimension, size) for name, dimension, size in named()}
AMBIGUOUS = frozenset("m s g h l L A V N J W K B C T F H min Omega".split())  # also names of variables
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cubed": 3, "cu": 3}
_PER = frozenset(["/", "per", "a", "an"])
_MAX_POWER = 12
DEGREE, CELSIUS, FAHRENHEIT, KELVIN = _UNITS["degree"], _UNITS["°C"], _UNITS["°F"], _UNITS["K"]
RADIAN = _UNITS["rad"]
_SCALES_OF_TEMPERATURE = {"c": CELSIUS, "celsius": CELSIUS, "f": FAHRENHEIT, "fahrenheit": FAHRENHEIT}
# The parts of a unit: names, powers, signs and brackets; and the LaTeX between them with its plain spelling.
_ATOM = lazy_pattern(rf"[^\W\d_]{LETTER}*\.?|USD_|[€£¥₹₽¢°%]|\d+|[/^*()-]|.", re.DOTALL)
_SPELLED = ((lazy_pattern(r"\\mu\s*"), "μ"), (lazy_pattern(r"\\Omega(?![A-Za-z])"), "Ω"),
            (lazy_pattern(r"\\(?:cdot|times)(?![A-Za-z])"), "*"), (lazy_pattern(r"\\(?=[%&#])"), ""),
            (lazy_pattern(r"\\[,;:! ]|[{}~]"), " "))  # fmt: skip


def lookup(word: str) -> Unit | None:
    """Returns the unit of that name (long names in any case), or None. NO_UNIT for the word "unit"."""
    plain = word.rstrip(".")
    unit = _UNITS.get(plain)
    if unit is None and len(plain) > 3:
        unit = _UNITS.get(plain.lower()) or _UNITS.get(plain.capitalize())
    if unit is None and not plain.isascii():
        unit = _UNITS.get(without_accents(plain.lower()))
    if unit is None and plain == "in":
        return _UNITS["inch"]
    if unit is not None and unit.dimension == (("unit", 1),):
        return NO_UNIT
    return unit


def without_accents(word: str) -> str:
    """Returns the word as in cleaned texts: "gio" for "giờ"; letters without a plain form are kept."""
    letters = (unicodedata.normalize("NFD", char)[0] if char < "\u2000" else char for char in word)
    return "".join(plain if plain.isascii() else char for plain, char in zip(letters, word, strict=True))


def atoms(text: str) -> list[str]:
    """Splits a unit, or the words beside a value, into names, numbers and single signs."""
    text = text.replace("²", "^2").replace("³", "^3")  # in a question, which is not cleaned
    if "\\" in text or "{" in text or "~" in text:
        for pattern, plain in _SPELLED:
            text = pattern.sub(plain, text)
    return [atom for atom in _ATOM.findall(text) if not atom.isspace()]


def is_unit(text: str) -> bool:
    """Returns whether the text is a unit and nothing else."""
    words = atoms(text) if len(text) < 60 else []
    unit, rest = read_unit(words)
    return unit is not None and not rest


def read_unit(words: list[str]) -> tuple[Unit | None, list[str]]:
    """Returns the unit at the start of the words, or None, and the words after it: ["square", "feet", "of", "land"]."""
    unit, used = _product(words, 0)
    return unit, words[used:]


def _product(words: list[str], index: int) -> tuple[Unit | None, int]:
    """Reads factors with or without signs between them; all factors after a division sign divide."""
    if words[index : index + 1] in (["/"], ["per"]):
        total, below = NO_UNIT, False  # "1 / s"
    else:
        first, index = _factor(words, index)
        if first is None:
            return None, index
        total, below = first, False
    while index < len(words):
        at = index
        if words[at] in _PER:
            below, at = True, at + 1
            at += words[at : at + 1] in (["a"], ["an"])
        elif words[at] == "*":
            at += 1
        factor, at = _factor(words, at)
        if factor is None:
            break
        total, index = total.times(factor, -1 if below else 1), at
    return (total, index) if index else (None, 0)


def _factor(words: list[str], index: int) -> tuple[Unit | None, int]:
    if words[index : index + 1] == ["("]:
        unit, index = _product(words, index + 1)
        if words[index : index + 1] != [")"]:
            return None, index
        return (unit, index + 1) if unit is None else _raised(unit, words, index + 1)
    power = 1
    if index + 1 < len(words) and words[index].lower() in ("square", "sq", "cubic", "cu"):
        power = _POWERS[words[index].lower()]
        index += 1
        index += words[index] == "-"
    if index >= len(words):
        return None, index
    following = words[index + 1] if index + 1 < len(words) else ""
    if words[index].lower() in ("degree", "degrees") and following.lower() in _SCALES_OF_TEMPERATURE:
        return _SCALES_OF_TEMPERATURE[following.lower()], index + 2
    unit = lookup(words[index])
    if unit is None or (words[index] == "in" and following.isalpha() and following not in _PER):
        return None, index  # "5 in total" is not a length
    if words[index] == "ms" and words[index + 1 : index + 3] == ["^", "-"]:  # metres per second, not per millisecond
        seconds, index = _raised(_UNITS["s"], words, index + 1)
        return (None if seconds is None else _UNITS["m"].times(seconds)), index
    raised, index = _raised(unit, words, index + 1)
    return (None if raised is None else NO_UNIT.times(raised, power)), index


def _raised(unit: Unit, words: list[str], index: int) -> tuple[Unit | None, int]:
    """Returns the unit to the power that follows it; None if the power can't be read."""
    following = words[index].lower() if index < len(words) else ""
    if following in ("squared", "cubed"):
        return NO_UNIT.times(unit, _POWERS[following]), index + 1
    if following in ("2", "3"):
        return NO_UNIT.times(unit, int(following)), index + 1  # cm2
    if following != "^":
        return unit, index
    index += 1
    sign = -1 if words[index : index + 1] == ["-"] else 1
    index += sign == -1
    digits = words[index] if index < len(words) else ""
    if not digits.isdecimal() or len(digits) > 2 or int(digits) > _MAX_POWER:
        return None, index
    return NO_UNIT.times(unit, sign * int(digits)), index + 1
