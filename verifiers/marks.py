"""Marks that belong to the words of Indic and South-East Asian scripts, such as vowel signs; `\\w` leaves them out."""

from __future__ import annotations

import unicodedata

_FIRST, _LAST = 0x0900, 0x17FF  # Devanagari to Khmer
MARKS = "".join(char for char in map(chr, range(_FIRST, _LAST + 1)) if unicodedata.category(char) in ("Mn", "Mc"))
LETTER = rf"(?:[^\W\d_]|[{MARKS}])"  # a letter, or a mark as it follows one
