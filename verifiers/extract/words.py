"""What the tables of words share: one value as it follows "no," or "or", and whole words of many scripts."""

from __future__ import annotations

import functools

from verifiers.lazy_pattern import lazy_pattern

WORD = lazy_pattern(r"[^\W\d_]+")
# One value, as it may follow "no," or "or". It begins where a number begins, or a search would read a long run of
# digits again from each of them.
VALUE = (
    r"(?:\$\$?[^$\n]{1,200}\$\$?|\\\([^\n]{1,200}?\\\)|\\(?:d|t)?frac\s*\{[^{}\n]{1,40}\}\{[^{}\n]{1,40}\}"
    r"|[-+−]?\s?[$€£]?(?<!\d)(?<!\d,)\d[\d,]{0,200}(?:\.\d{1,200})?(?:\s*/\s*\d+)?%?(?![A-Za-z0-9_]))"
)


_TO_WORDS = bytes(
    byte | 32 if chr(byte).isalpha() and byte < 128 else 32 for byte in range(256)
)  # A-Z to a-z, else " "


def ascii_words(text: str) -> list[str]:
    """The words of an ASCII text, in lower case; three times as fast as WORD, which finds the same."""
    return text.encode(errors="replace").translate(_TO_WORDS).decode().split()


@functools.lru_cache(maxsize=16)
def short_words(text: str) -> frozenset[str] | None:
    """The words of a short ASCII text in lower case; None for any other text. Several checks ask for the same answer's.

    A pattern that needs one of some whole words need not be searched in a text that holds none of them.
    """
    return frozenset(ascii_words(text)) if len(text) <= 400 and text.isascii() else None


def lacks(text: str, words: frozenset[str]) -> bool:
    """A cheap test that spares slow patterns their work: the text is short, in ASCII, and without these words."""
    found = short_words(text)
    return found is not None and words.isdisjoint(found)


def any_of(*patterns: str) -> str:
    return "(?:" + "|".join(patterns) + ")"


def whole_words(*patterns: str) -> str:
    """Whole words of scripts that put spaces between them."""
    return r"(?<![^\W\d_])" + any_of(*patterns) + r"(?![^\W\d_])"
