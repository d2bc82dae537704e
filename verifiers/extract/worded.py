"""Finds powers and roots in English words: "2 to the power 99", "six times the square root of six"."""

from __future__ import annotations

import re

from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.numerals import numerals
from verifiers.lazy_pattern import any_case

_NUMBER = r"\d{1,9}(?:\.\d{1,9})?|[a-z]{3,9}(?:-[a-z]{3,5})?"
_WORDED = any_case(
    rf"(?<![\w.])(?:(?P<base>{_NUMBER}) (?:raised )?to the (?:power (?:of )?(?P<power>{_NUMBER}|[a-z]\b)"
    rf"|(?P<nth>[a-z]{{4,9}}|\d{{1,3}}(?:st|nd|rd|th)) power)"
    rf"|(?:(?P<times>{_NUMBER}) times )?the (?P<root>square|cube) root of (?P<of>{_NUMBER})"
    rf"|(?P<raised>[a-z]) (?P<exponent>squared|cubed)|(?P<dozen>a) dozen|(?P<over>pi"
    rf"|{_NUMBER}) over (?P<under>{_NUMBER})(?!\s[a-z])|plus or minus (?P<both>{_NUMBER})"
    rf"|(?P<front>{_NUMBER}) root (?P<inside>{_NUMBER}))(?![\w-]|\.\d)"
)
_NTH = {name: n for n, name in enumerate("second third fourth fifth sixth seventh eighth ninth tenth".split(), 2)}


def worded(text: str, start: int, end: int) -> list[Quantity]:
    """Returns the powers, roots and pairs of signs, with what they are in LaTeX."""
    found = []
    for match in _WORDED.finditer(text, start, end):
        said = _said(match)
        if said:
            found.append(Quantity(match.span(), "formula", None, said, said))
    return found


def _said(match: re.Match[str]) -> str:
    parts = {
        name: _digits(value.lower())
        for name, value in match.groupdict().items()
        if value and name not in ("root", "exponent")
    }
    if not all(parts.values()):
        return ""
    if "base" in parts:
        return f"{parts['base']}^{{{parts.get('power') or parts['nth']}}}"
    if "raised" in parts:
        return f"{parts['raised']}^{2 if match['exponent'].lower() == 'squared' else 3}"
    if "dozen" in parts:
        return "12"
    if "over" in parts:
        return f"\\frac{{{parts['over']}}}{{{parts['under']}}}"
    if "front" in parts:
        return rf"{parts['front']}\sqrt{{{parts['inside']}}}"
    if "both" in parts:
        return f"\\pm {parts['both']}"
    root = rf"\sqrt{'[3]' if match['root'].lower() == 'cube' else ''}{{{parts['of']}}}"
    return f"{parts['times']}{root}" if "times" in parts else root


def _digits(word: str) -> str:
    """Returns a number in digits, a letter as it is, and "" for another word."""
    if word[0].isdigit():
        return re.sub(r"(?:st|nd|rd|th)$", "", word)
    if word == "pi":
        return "\\pi"
    number = _NTH.get(word) or numerals("en").get(word.replace("-", " "))
    return str(number) if number is not None else word if len(word) == 1 else ""
