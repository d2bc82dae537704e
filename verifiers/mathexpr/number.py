"""Reads plain numbers as exact fractions."""

from __future__ import annotations

import re
from fractions import Fraction

_MAX_CHARS = 200
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_NUMBER = re.compile(rf"([+-]?)\s*[$€£]?\s*({_DIGITS}(?:\.\d*)?|\.\d+)\s*(?:/\s*({_DIGITS}))?\s*(\\?%)?\.?", re.ASCII)
_FRAC = re.compile(rf"([+-]?)\s*\\[dt]?frac\s*\{{\s*([+-]?{_DIGITS})\s*\}}\s*\{{\s*([+-]?{_DIGITS})\s*\}}", re.ASCII)
_WRAPPING = re.compile(r"^(?:\$+|\\\(|\\\[)|(?:\$+|\\\)|\\\])$")


def read_number(text: str) -> Fraction | None:
    """Returns the exact value of an integer, decimal, fraction or percentage; None for any other text."""
    text = text.strip()
    if len(text) > _MAX_CHARS:
        return None
    text = _WRAPPING.sub("", text).strip().replace("\\$", "$").replace("\u2212", "-").replace("{,}", ",")
    match = _FRAC.fullmatch(text)
    if match:
        bottom = int(match[3].replace(",", ""))
        if bottom == 0:
            return None
        value = Fraction(int(match[2].replace(",", "")), bottom)
        return -value if match[1] == "-" else value
    match = _NUMBER.fullmatch(text)
    if not match:
        return None
    value = Fraction(match[2].replace(",", "").rstrip(".") or "0")
    if match[3]:
        bottom = int(match[3].replace(",", ""))
        if bottom == 0:
            return None
        value /= bottom
    if match[4]:
        value /= 100
    return -value if match[1] == "-" else value
