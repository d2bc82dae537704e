"""What the tables of words share: one value as it follows "no," or "or", and whole words of many scripts."""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W\d_]+")
# One value, as it may follow "no," or "or".
VALUE = (
    r"(?:\$\$?[^$\n]{1,200}\$\$?|\\\([^\n]{1,200}?\\\)|\\(?:d|t)?frac\s*\{[^{}\n]{1,40}\}\{[^{}\n]{1,40}\}"
    r"|[-+−]?\s?[$€£]?\d[\d,]*(?:\.\d+)?(?:\s*/\s*\d+)?%?(?![A-Za-z0-9_]))"
)


_ASCII_WORD = re.compile(r"[a-z]+")


def ascii_words(text: str) -> list[str]:
    """The words of an ASCII text, in lower case; twice as fast as WORD, which finds the same."""
    return _ASCII_WORD.findall(text.lower())


def any_of(*patterns: str) -> str:
    return "(?:" + "|".join(patterns) + ")"


def whole_words(*patterns: str) -> str:
    """Whole words of scripts that put spaces between them."""
    return r"(?<![^\W\d_])" + any_of(*patterns) + r"(?![^\W\d_])"
