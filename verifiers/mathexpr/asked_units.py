"""The unit that a question asks for: "What is its speed in metres per hour?", "Wie viele Sekunden hat ein Tag?"."""

from __future__ import annotations

import functools

from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.units.reading import Unit, atoms, read_unit
from verifiers.units.words import every_time, respelled, unit_end

_LOOK = 300  # characters before the end of a question
_BETWEEN = lazy_pattern(r"(?<=[.!?])\s+|(?<=[。？\n])")
_NAMED = lazy_pattern(
    r"(?![^\W\d_]+\s(?:carr|cuadrad|quadrad|quadrat|cub|cúb|au carr|kwadrat))"
    r"(?:(?:square|cubic|sq\.?|cu\.?)\s)?[^\W\d_]+[²³]?(?:\s?(?:/|per|an?(?=\s))\s?[^\W\d_]+[²³]?)?"
)  # one word, as "litres in 5 minutes" asks for no inches; the lookahead excludes "mètres carrés"
# "Give the answer in metres.": the unit is in the sentence behind the question.
_INSTRUCTS = any_case(
    r"\b(?:answers?|result|express|give|antwort|ergebnis|réponse|résultat|respuesta|resultado|resposta|risposta"
    r"|risultato)\b[^.?]*\b(?:in|en|em)\s|(?<!\w)ответ\w*\s[^.?]*\sв\s"
)
_ASKED = any_case(
    r"(?:\b(?:in|how many|wie ?viele?|combien d[e']\s?|cuánt[oa]s|quant[aeio]s?|en|ile|hoeveel|hur många|kaç"
    r"|bao nhiêu|mấy|berapa)\s+|(?<!\w)(?:сколько|в|كم)\s+"
    r"|多少|几|何(?=[^\W\d]{1,6}です)|몇 ?|\()(?!an?\b)([^\W\d_][^.?!,;:()\n？。]{0,40})"
)


@functools.lru_cache(maxsize=256)
def asked_units(prompt: str) -> tuple[Unit, ...]:
    """Returns the unit that the last question of a prompt asks for, and its quotient by a time named apart from it.

    "How many litres flow out per minute?" asks for litres or for litres per minute. () if it asks for none or several.
    """
    sentences = [part for part in _BETWEEN.split(prompt[-_LOOK:]) if part.strip()]
    asking = [part for part in sentences if part.rstrip().endswith(("?", "？"))] or sentences
    asking = sentences[-1:] if sentences and _INSTRUCTS.search(sentences[-1]) else asking
    sentence = respelled(asking[-1]) if asking else ""
    units = set()
    for match in _ASKED.finditer(sentence):
        named = _NAMED.match(match[1])
        unit, _ = read_unit(atoms(named[0]) if named else [])
        unit = unit or read_unit(atoms(match[1][: unit_end(match[1], 0)]))[0]  # 何kmですか
        if unit is not None and unit.dimension:
            units.add(unit)
    if len(units) != 1:
        return ()
    every = every_time(sentence)
    return (*units, *(unit.times(every, -1) for unit in units if every))
