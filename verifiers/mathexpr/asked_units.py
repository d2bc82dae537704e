"""The unit that a question asks for: "What is its speed in metres per hour?", "Wie viele Sekunden hat ein Tag?"."""

from __future__ import annotations

import functools
import re

from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.units.reading import AMBIGUOUS, Unit, atoms, is_unit, read_unit
from verifiers.units.words import every_time, respelled, unit_end

_LOOK = 300  # characters before the end of a question
_BETWEEN = lazy_pattern(r"(?<=[.!?])\s+|(?<=[。？\n])")
_POWER = r"(?:[²³]|\s?\^\s?\{?-?\d\}?|\s(?:squared|cubed)\b)?"
_NAMED = lazy_pattern(
    r"(?![^\W\d_]+\s(?:carr|cuadrad|quadrad|quadrat|cub|cúb|au carr|kwadrat))"
    rf"(?:(?:square|cubic|sq\.?|cu\.?)\s)?[^\W\d_]+{_POWER}(?:[ ·⋅*]\s?(?:m|s|kg|mol|K)(?![^\W_]){_POWER}){{0,3}}"
    rf"(?:\s?(?:/|per|an?(?=\s))\s?[^\W\d_]+{_POWER})?"
)  # one word, as "litres in 5 minutes" asks for no inches; the lookahead excludes "mètres carrés"
# "Give the answer in metres.": the unit is in the sentence behind the question.
_INSTRUCTS = any_case(
    r"\b(?:answers?|result|express|give|antwort|ergebnis|réponse|résultat|respuesta|resultado|resposta|risposta"
    r"|risultato)\b[^.?]*\b(?:in|en|em)\s|(?<!\w)ответ\w*\s[^.?]*\sв\s"
)
_IN_MATHS = lazy_pattern(r"\$([^$]{1,40})\$|\\\(([^()]{1,40})\\\)")  # "in $\\text{cm}^2$"
_DEGREES = lazy_pattern(r"\s?(?:[Dd]egrees?\s|°\s?|\^\{?\\circ\}?\s?)(Celsius|Fahrenheit|[CF](?![^\W_]))")
_LATEX = lazy_pattern(r"\\(?:text|mathrm|rm|[,;: !])|[{}]")
_ASKED = any_case(
    r"(?:\b(?:in|how many|wie ?viele?|combien de|cuánt[oa]s|quant[aeio]s?|en|ile|hoeveel|hur många|kaç"
    r"|bao nhiêu|mấy|berapa)\s+|\bcombien d['’]\s?|(?<!\w)(?:сколько|в|كم)\s+"
    r"|多少|几|何(?=[^\W\d]{1,6}です)|몇 ?|(?<![\\A-Za-z])\()(?!an?\b)([^\W\d_][^.?!,;:()\n？。]{0,40})"
)


@functools.lru_cache(maxsize=256)
def asked_units(prompt: str) -> tuple[Unit, ...]:
    """Returns the unit that the last question of a prompt asks for, and its quotient by a time named apart from it.

    "How many litres flow out per minute?" asks for litres or for litres per minute. () if it asks for none or several.
    """
    sentences = [part for part in _BETWEEN.split(prompt[-_LOOK:]) if part.strip()]
    asking = [part for part in sentences if part.rstrip().endswith(("?", "？"))] or sentences
    asking = sentences[-1:] if sentences and _INSTRUCTS.search(sentences[-1]) else asking
    sentence = _IN_MATHS.sub(_plain_unit, asking[-1]) if asking else ""
    sentence = _DEGREES.sub(lambda match: " Celsius" if match[1][0] == "C" else " Fahrenheit", respelled(sentence))
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


def _plain_unit(match: re.Match[str]) -> str:
    """Returns a unit that is written as maths without its LaTeX; a lone letter, which may be a variable, unchanged."""
    written = match[1] or match[2]
    plain = _LATEX.sub("", written.replace("^\\circ", "°").replace("^{\\circ}", "°")).strip()
    return plain if is_unit(plain) and (plain not in AMBIGUOUS or "\\" in written) else match[0]
