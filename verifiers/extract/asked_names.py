"""Who is it? Where a question asks for one of those it names, the name of which the last clause says what was asked."""

from __future__ import annotations

import functools
import re

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
    if not predicate:
        return None
    found = next((match for match in _NAME.finditer(text, *clause) if match[0] in names), None)
    if found is None or len(text[clause[0] : found.start()].split()) > 2:
        return None
    said = _ELSE.split(text[found.end() : clause[1]], maxsplit=1)[0]
    return found.span() if predicate <= {word.lower() for word in _WORD.findall(said)} else None
