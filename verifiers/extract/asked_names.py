"""Who is it? Where a question asks for one of those it names, the name of which the last clause says what was asked."""

from __future__ import annotations

import functools
import re

from verifiers.extract.gates import Gated
from verifiers.extract.spans import Span

_WHO = re.compile(
    r"(?:^|[.!?,:;。\n]\s*)(?:and |et |und )?(?:who|which (?:of (?:them|the \w+)|one|child|boy|girl|runner|student|team"
    r"|person)|wer|wie(?= (?:is|heeft|loopt|was|krijgt)\b)|qui|¿?qui[eé]n|chi|quem|кто|vem|kto|siapa)(?!\w)"
    r"(?P<predicate>[^.!?,:;\n]{2,80})",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-ZÀ-ÖØ-ÞА-Я][^\W\d_]{1,20}\b")
# What follows is said of somebody else, or of another place in a row.
_ELSE = re.compile(
    r"[,;]|\b(?:than\b|who\b|second|third|fourth|next\b|almost\b|als\b|zweit|dritt|que\b|deuxième|troisième|segund[oa]|tercer[oa]?"
    r"|secondo|terzo|di\b|che\b|dan\b)|(?<!\w)(?:чем|втор|трет)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{4,}")


# What leads to a name that stands behind what is said of it: "The tallest is Ben", "Самый старший — Петя".
_COPULA = re.compile(
    r"(?:\b(?:is|was|ist|war|est|était|es|fue|era|é|foi|è|fu|are)|(?<!\w)это|—|–|\s-|:)\s*(?:(?:the|der|die|o|a|la|el|il|le)\s+)?[*_\"“«]*$",
    re.IGNORECASE,
)
_RANKED = re.compile(
    r"\b(?:not|second|third|fourth|next|almost|zweit\w*|dritt\w*|nicht|deuxième|troisième|pas|segund[oa]|tercer[oa]?|no|não"
    r"|secondo|terzo|non)\b|(?<!\w)(?:втор|трет|не\b)",
    re.IGNORECASE,
)
_WEEKDAYS = re.compile(
    r"(?<![^\W\d_])(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend|lundi|mardi"
    r"|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo|(?:segunda|terça|quarta|quinta|sexta)-feira"
    r"|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag|понедельник|вторник"
    r"|сред[ау]|четверг|пятниц[ау]|суббот[ау]|воскресенье)(?![^\W\d_])|(?:星期|周)[一二三四五六日天]|[月火水木金土日]曜日|[월화수목금토일]요일",
    re.IGNORECASE,
)
_WHICH_DAY = Gated(
    r"\b(?:what|which|on which) day|\bwelche[rmn]? (?:wochen)?tag|\bquel jour|\bqué día|\bque dia|\b(?:che"
    r"|quale) giorno|\b(?:welke|wat voor) dag"
    r"|какой день|星期几|周几|何曜日|무슨 요일",
    re.IGNORECASE,
)


def _at_the_end(text: str, clause: Span, names: frozenset[str], predicate: frozenset[str]) -> Span | None:
    """The name at the end of a clause, before which stands all that the question asks."""
    for match in _NAME.finditer(text, *clause):
        led, rest = text[clause[0] : match.start()], text[match.end() : clause[1]]
        if match[0] in names and rest.lstrip(" *_\"”»'")[:1] in ("", ".", ",", "!") and _COPULA.search(led):
            said = {word.lower() for word in _WORD.findall(led)}
            return match.span() if predicate <= said and not _RANKED.search(led) else None
    return None


def _in_chinese(text: str, clause: Span, rank: str, prompt: str) -> Span | None:
    """The name of the question right before what it asks for: 小红最高."""
    found = set()
    for match in re.finditer(re.escape(rank), text[slice(*clause)]):
        place = clause[0] + match.start()
        found |= {(place - size, place) for size in (3, 2) if _is_named(text[place - size : place], prompt)}
    return min(found) if len({place for _, place in found}) == 1 else None


def _is_named(name: str, prompt: str) -> bool:
    return name.isalpha() and name in prompt


_RANKED_FIRST = re.compile(r"谁(最[\u4e00-\u9fff])")


def asked_day(text: str, sentence: Span, prompt: str) -> Span | None:
    """The one weekday that a sentence names and the question that asks for one does not."""
    if not _WHICH_DAY.search(prompt[-600:]):
        return None
    given = {day.lower() for day in _WEEKDAYS.findall(prompt)}
    found = [match for match in _WEEKDAYS.finditer(text, *sentence) if match[0].lower() not in given]
    return found[0].span() if len({match[0].lower() for match in found}) == 1 else None


@functools.lru_cache(maxsize=256)
def _question(prompt: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names of a question that asks who, and what it asks of them."""
    asked = _WHO.search(prompt)
    if asked is None:
        return frozenset(), frozenset()
    names = frozenset(_NAME.findall(prompt)) - frozenset(_NAME.findall(asked[0][:12]))
    return names, frozenset(word.lower() for word in _WORD.findall(asked["predicate"]) if word not in names)


def asked_name(text: str, clause: Span, prompt: str) -> Span | None:
    """The name that begins a clause, if the clause says of it all that the question asks."""
    names, predicate = _question(prompt[-600:])
    if not predicate and not _RANKED_FIRST.search(prompt[-600:]):
        return None
    ranked = _RANKED_FIRST.search(prompt[-600:])
    if ranked is not None:
        return _in_chinese(text, clause, ranked[1], prompt)
    inverted = _at_the_end(text, clause, names, predicate)
    if inverted is not None:
        return inverted
    found = next((match for match in _NAME.finditer(text, *clause) if match[0] in names), None)
    if found is None or len(text[clause[0] : found.start()].split()) > 2:
        return None
    said = _ELSE.split(text[found.end() : clause[1]], maxsplit=1)[0]
    return found.span() if predicate <= {word.lower() for word in _WORD.findall(said)} else None
