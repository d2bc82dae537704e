"""Units of measure: what their dimension is and how large they are."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

Dimension = tuple[tuple[str, int], ...]


class Unit(NamedTuple):
    """A dimension, such as (("length", 1), ("time", -1)), and the size of one such unit in base units."""

    dimension: Dimension
    scale: Fraction

    def times(self, other: Unit, power: int = 1) -> Unit:
        found = dict(self.dimension)
        for name, exponent in other.dimension:
            found[name] = found.get(name, 0) + power * exponent
        return Unit(tuple(sorted((k, v) for k, v in found.items() if v)), self.scale * other.scale**power)


NO_UNIT = Unit((), Fraction(1))
_UNITS: dict[str, Unit] = {}


def _add(dimension: str | Dimension, scale: str, names: str) -> None:
    exponents = ((dimension, 1),) if isinstance(dimension, str) else dimension
    for name in names.split():
        _UNITS[name] = Unit(exponents, Fraction(scale))


for _scale, _names in (
    ("1", "m meter meters metre metres"), ("1/100", "cm centimeter centimeters centimetre centimetres"),
    ("1/1000", "mm millimeter millimeters millimetre millimetres"), ("1/10", "dm decimeter decimeters"),
    ("1000", "km kilometer kilometers kilometre kilometres kms"),
    ("1/1000000", "micrometer micrometers micron microns"),
    ("1/1000000000", "nm nanometer nanometers"), ("0.0254", "inch inches"), ("0.3048", "ft foot feet"),
    ("0.9144", "yd yard yards yds"), ("1609.344", "mi mile miles"), ("1852", "nmi"),
):  # fmt: skip
    _add("length", _scale, _names)
for _scale, _names in (
    ("1", "kg kilogram kilograms kgs kilo kilos"), ("1/1000", "g gram grams gm"),
    ("1/1000000", "mg milligram milligrams"),
    ("1000", "tonne tonnes"), ("0.45359237", "lb lbs pound pounds"), ("0.028349523125", "oz ounce ounces"),
    ("907.18474", "ton tons"),
):  # fmt: skip
    _add("mass", _scale, _names)
for _scale, _names in (
    ("1", "s sec secs second seconds"), ("60", "min mins minute minutes"), ("3600", "h hr hrs hour hours"),
    ("86400", "day days"), ("604800", "week weeks wk wks"), ("1/1000", "ms millisecond milliseconds"),
):  # fmt: skip
    _add("time", _scale, _names)
_add("months", "1", "month months")
_add("months", "12", "year years yr yrs")
_add("months", "120", "decade decades")
_add("months", "1200", "century centuries")
_VOLUME, _AREA = (("length", 3),), (("length", 2),)
for _scale, _names in (
    ("1/1000", "L l liter liters litre litres"),
    ("1/1000000", "mL ml milliliter milliliters millilitre millilitres cc"),
    ("0.003785411784", "gal gallon gallons"), ("0.000946352946", "quart quarts qt"),
    ("0.000473176473", "pint pints pt"), ("0.0002365882365", "cup cups"),
):  # fmt: skip
    _add(_VOLUME, _scale, _names)
_add(_AREA, "4046.8564224", "acre acres")
_add(_AREA, "10000", "hectare hectares ha")
_SPEED = (("length", 1), ("time", -1))
_add(_SPEED, "0.44704", "mph")
_add(_SPEED, "5/18", "kph kmh kmph")
_add("angle", "1", "rad radian radians rads")
_add("angle_degree", "1", "degree degrees deg")
_add("angle_degree", "1/60", "arcminute arcminutes arcmin")
for _name, _units in (
    ("USD", "USD_ USD dollar dollars buck bucks"), ("EUR", "EUR euro euros €"), ("GBP", "GBP £"),
    ("INR", "INR rupee rupees Rs ₹"), ("JPY", "JPY yen ¥"), ("CNY", "CNY yuan RMB 元"), ("RUB", "rubles ruble ₽"),
):  # fmt: skip
    _add(_name, "1", _units)
_add("USD", "1/100", "cent cents ¢")
_add("USD", "1/10", "dime dimes")
_FORCE = (("length", 1), ("mass", 1), ("time", -2))
_ENERGY = (("length", 2), ("mass", 1), ("time", -2))
_POWER = (("length", 2), ("mass", 1), ("time", -3))
for _dimension, _scale, _names in (
    (_FORCE, "1", "N newton newtons"), (_FORCE, "1000", "kN"), (_ENERGY, "1", "J joule joules"),
    (_ENERGY, "1000", "kJ kilojoule kilojoules"), (_ENERGY, "4.184", "cal calorie calories"),
    (_ENERGY, "4184", "kcal kilocalorie kilocalories"), (_ENERGY, "3600000", "kWh"), (_POWER, "1", "W watt watts"),
    (_POWER, "1000", "kW kilowatt kilowatts"), ((("time", -1),), "1", "Hz hertz"), ((("time", -1),), "1000", "kHz"),
    ((("time", -1),), "1000000", "MHz"), ((("length", -1), ("mass", 1), ("time", -2)), "1", "Pa pascal pascals"),
    ((("length", -1), ("mass", 1), ("time", -2)), "1000", "kPa"),
):  # fmt: skip
    _add(_dimension, _scale, _names)
for _name, _names in (
    ("current", "A ampere amperes amp amps"), ("voltage", "V volt volts"), ("resistance", "ohm ohms Ω"),
    ("kelvin", "K kelvin kelvins"), ("celsius", "°C Celsius celsius"), ("fahrenheit", "°F Fahrenheit fahrenheit"),
    ("amount", "mol mole moles"), ("byte", "B byte bytes"), ("unit", "unit units"),
):  # fmt: skip
    _add(_name, "1", _names)
_add("current", "1/1000", "mA")
_add("byte", "1/8", "bit bits")
_add("byte", "1000", "kB KB kilobyte kilobytes")
_add("byte", "1000000", "MB megabyte megabytes")
_add("byte", "1000000000", "GB gigabyte gigabytes")

AMBIGUOUS = frozenset("m s g h l L A V N J W K B C min".split())  # also names of variables
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cubed": 3, "cu": 3}
DEGREE, CELSIUS, FAHRENHEIT = _UNITS["degree"], _UNITS["°C"], _UNITS["°F"]
RADIAN = _UNITS["rad"]


def lookup(word: str) -> Unit | None:
    """The unit of that name; long names in any case."""
    plain = word.rstrip(".")
    found = _UNITS.get(plain)
    if found is None and len(plain) > 3:
        found = _UNITS.get(plain.lower())
    if found is None and plain == "in":
        return _UNITS["inch"]
    if found is not None and found.dimension == (("unit", 1),):
        return NO_UNIT
    return found


def read_unit(words: list[str]) -> Unit | None:
    """The unit spelled by words and signs such as ["km", "/", "h"], ["square", "feet"], ["cm", "^", "2"]."""
    total, sign, pending, known = NO_UNIT, 1, 1, False
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word in ("/", "per"):
            sign = -1
            continue
        if word in ("*", "{", "}", "a", "an", "of"):
            continue
        if word.lower() in _POWERS and word.lower() not in ("squared", "cubed"):
            pending = _POWERS[word.lower()]
            continue
        unit = lookup(word)
        if unit is None:
            return None
        power = pending
        if index < len(words) and words[index].lower() in ("squared", "cubed"):
            power = _POWERS[words[index].lower()]
            index += 1
        elif index + 1 < len(words) and words[index] == "^":
            rest = [piece for piece in words[index + 1 : index + 5] if piece not in "{}"]
            digits = "".join(rest[: 2 if rest[:1] == ["-"] else 1])
            if not digits.lstrip("-").isdigit() or len(digits) > 3:
                return None
            power = int(digits)
            index += 1
            while index < len(words) and words[index] in ("{", "}", "-", digits.lstrip("-")):
                index += 1
        total = total.times(unit, sign * power)
        pending, known = 1, True
    return total if known else None
