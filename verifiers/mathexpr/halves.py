"""Reads quantities with a half: "a litre and a half", "zweieinhalb Stunden", "una hora y media", 一个半小时.

The words below are in lower case and without accents, as in cleaned texts.
"""

from __future__ import annotations

import functools
from fractions import Fraction

from verifiers.extract.numerals import in_characters, numerals
from verifiers.lazy_pattern import lazy_pattern
from verifiers.units.reading import Unit, atoms, read_unit, without_accents

_LONGEST = 60
_PARTS = {"half": Fraction(1, 2), "quarter": Fraction(1, 4), "three": Fraction(3, 4)}
_ADDED = {  # how a language adds a half (or quarters) to a count
    "en": r"and (?:a |one )?(half|quarter|three quarters)", "es": "y medi[oa]", "fr": "et demie?", "pt": "e mei[oa]",
    "it": "e mezz[oa]", "nl": "en een hal(?:f|ve)", "sv": "och en halv|och ett halvt", "pl": "i po[łl]",
    "ru": "с половиной", "tr": "bucuk", "vi": "ruoi", "ar": "و ?نصف", "id": "setengah",
}  # fmt: skip
_ADDING = lazy_pattern(
    "|".join(rf"(?P<{code}>{words})" for code, words in _ADDED.items()).join((r"(?<!\w)(?:", r")(?!\w)"))
)
_ONE = lazy_pattern(
    r"(?:anderthalbe?[nr]?|eineinhalb|einundeinhalb|anderhalve?|полтора|полторы|po[łl]tora|po[łl]torej|півтора"
    r"|півтори) (.+)"
)
_HALF_A = lazy_pattern(
    r"(?:half an?|(?:a|one) half|half of an?|eine? halbe[rns]?|einen halben|une? demie?[ -]|medi[oa]|mezz[oa]|mezz'"
    r"|mei[oa]|een hal(?:f|ve)|en halv|ett halvt|po[łl]|yarım|nua|نصف|setengah|пол(?=[а-я]{4})) ?([^\W\d_]+)"
)
_QUARTERS_OF = lazy_pattern(r"(a|one|three) (quarters?) of an? ([a-z]+)")
_GERMAN = lazy_pattern(r"([a-z]{3,9}?)(?:und)?einhalb (.+)")
_EAST = lazy_pattern(
    r"(\d{1,4}|[一二两兩三四五六七八九十]{1,3})(?:[个個]半([^\W\d_]+)|[个個]?([^\W\d_]{1,3}?)\s?[半반])|[半반][个個]?\s?([^\W\d_]{1,3})"
)


def quantity_with_half(text: str) -> tuple[Fraction, Unit] | None:
    """Returns (amount, unit) if the whole text is such a quantity, else None."""
    lower = " ".join(text.casefold().split())
    if len(lower) > _LONGEST:
        return None
    east = _EAST.fullmatch(lower)
    if east:
        count = 0 if east[1] is None else int(east[1]) if east[1].isdigit() else in_characters(east[1])
        return None if count is None else _of(count + Fraction(1, 2), east[2] or east[3] or east[4])
    for pattern, amount in ((_ONE, Fraction(3, 2)), (_HALF_A, Fraction(1, 2))):
        match = pattern.fullmatch(lower)
        if match:
            return _of(amount, match[1])
    quarters = _QUARTERS_OF.fullmatch(lower)
    if quarters and (quarters[1] == "three") == quarters[2].endswith("s"):
        return _of(_PARTS["three" if quarters[1] == "three" else "quarter"], quarters[3])
    german = _GERMAN.fullmatch(lower)
    if german and german[1] in _counted("de"):
        return _of(_counted("de")[german[1]] + Fraction(1, 2), german[2])
    added = list(_ADDING.finditer(lower))
    if len(added) != 1:
        return None
    language = next(code for code in _ADDED if added[0][code])
    before, after = lower[: added[0].start()].strip(), lower[added[0].end() :].strip()
    if " " not in before and not after:  # "hora y media"
        before = f"1 {before}"
    count_word, _, unit = before.partition(" ")
    if bool(unit) == bool(after):
        return None  # the unit is either before or after the half
    count = int(count_word) if count_word.isdecimal() and len(count_word) < 7 else _counted(language).get(count_word)
    part = _PARTS[added[0][2].split()[0]] if language == "en" else Fraction(1, 2)
    return None if count is None else _of(count + part, unit or after)


@functools.cache
def _counted(language: str) -> dict[str, int]:
    """Returns the numerals up to twenty, as in cleaned texts, and the articles that mean one."""
    counts = {without_accents(word): value for word, value in numerals(language).items() if 0 < value <= 20}
    return {**counts, "a": 1, "an": 1} if language == "en" else counts


def _of(amount: Fraction, name: str) -> tuple[Fraction, Unit] | None:
    unit, rest = read_unit(atoms(name))
    return None if unit is None or rest or not unit.dimension else (amount, unit)
