"""The unit that a question asks for: "What is its speed in metres per hour?", "Wie viele Sekunden hat ein Tag?"."""

from __future__ import annotations

import functools
import re

from verifiers.lazy_pattern import lazy_pattern
from verifiers.units.reading import Unit, atoms, read_unit

_LOOK = 300  # characters before the end of a question
_BETWEEN = lazy_pattern(r"(?<=[.!?])\s+|(?<=[。？\n])")
_NAMED = lazy_pattern(
    r"(?![^\W\d_]+\s(?:carr|cuadrad|quadrad|quadrat|cub|cúb|au carr|kwadrat))"
    r"(?:(?:square|cubic|sq\.?|cu\.?)\s)?[^\W\d_]+[²³]?(?:\s?(?:/|per|an?(?=\s))\s?[^\W\d_]+[²³]?)?"
)  # one word, as "litres in 5 minutes" asks for no inches; the lookahead excludes "mètres carrés"
_ASKED = lazy_pattern(
    r"(?:\b(?:in|how many|wie ?viele?|combien d[e']\s?|cuánt[oa]s|quant[aeio]s?|en|ile|hoeveel|hur många|kaç"
    r"|bao nhiêu|mấy|berapa)\s+|(?<!\w)(?:сколько|в|كم)\s+"
    r"|多少|几|何(?=[^\W\d]{1,6}です)|몇 ?|\()(?!an?\b)([^\W\d_][^.?!,;:()\n？。]{0,40})",
    re.IGNORECASE,
)


@functools.lru_cache(maxsize=256)
def asked_unit(prompt: str) -> Unit | None:
    """Returns the unit that the last question of a prompt asks for; None if it asks for none or for several."""
    sentences = [part for part in _BETWEEN.split(prompt[-_LOOK:]) if part.strip()]
    asking = [part for part in sentences if part.rstrip().endswith(("?", "？"))] or sentences
    units = set()
    for match in _ASKED.finditer(asking[-1] if asking else ""):
        named = _NAMED.match(match[1])
        unit, _ = read_unit(atoms(named[0]) if named else [])
        if unit is not None and unit.dimension:
            units.add(unit)
    return units.pop() if len(units) == 1 else None
