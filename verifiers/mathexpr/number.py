"""Plain numbers as exact fractions."""

from __future__ import annotations

import re
from fractions import Fraction

_MAX_CHARS = 200
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_NUMBER = re.compile(rf"([+-]?)\s*[$€£]?\s*({_DIGITS}(?:\.\d*)?|\.\d+)\s*(?:/\s*({_DIGITS}))?\s*(\\?%)?\.?", re.ASCII)
_FRAC = re.compile(rf"([+-]?)\s*\\[dt]?frac\s*\{{\s*([+-]?{_DIGITS})\s*\}}\s*\{{\s*([+-]?{_DIGITS})\s*\}}", re.ASCII)
_WRAPPING = re.compile(r"^(?:\$+|\\\(|\\\[)|(?:\$+|\\\)|\\\])$")


def read_number(text: str) -> Fraction | None:
    """The value of an integer, decimal, fraction or percentage, exactly; None where the text is anything else."""
    text = text.strip()
    if len(text) > _MAX_CHARS:
        return None
    text = _WRAPPING.sub("", text).strip().replace("\\$", "$").replace("\u2212", "-").replace("{,}", ",")
    found = _FRAC.fullmatch(text)
    if found:
        bottom = int(found[3].replace(",", ""))
        if bottom == 0:
            return None
        value = Fraction(int(found[2].replace(",", "")), bottom)
        return -value if found[1] == "-" else value
    found = _NUMBER.fullmatch(text)
    if not found:
        return None
    value = Fraction(found[2].replace(",", "").rstrip(".") or "0")
    if found[3]:
        bottom = int(found[3].replace(",", ""))
        if bottom == 0:
            return None
        value /= bottom
    if found[4]:
        value /= 100
    return -value if found[1] == "-" else value
