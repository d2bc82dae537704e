"""Blanks what leaves an answer as it is, so that no later step reads it: struck-out text, "no more and no less"."""

from __future__ import annotations

import re

from verifiers.extract.gates import Gated
from verifiers.lazy_pattern import lazy_pattern

_STRUCK = lazy_pattern(r"~~(?!\s)[^~\n]{1,200}(?<!\s)~~")  # struck out in Markdown
_EXACTLY = Gated(
    r",?\s(?:no more,? (?:and )?no less|neither more nor less|nicht mehr und nicht weniger|ni plus ni moins"
    r"|ni un[oa]? más ni un[oa]? menos|ni más ni menos|nem mais nem menos|né più né meno|ни больше,? ни меньше"
    r"|ani więcej,? ani mniej|niet meer en niet minder)(?![^\W\d_])|，?不多不少",
    re.IGNORECASE,
)
_REFUTED = Gated(
    r"(?:(?:hence|so|thus|therefore|and),? )?(?:the|our|this|that) (?:supposition|assumption|hypothesis) (?:was|is"
    r"|must be)"
    r" (?:false|wrong|absurd|impossible|untenable),? (?:and|so) ",
    re.IGNORECASE,
)
_ONLY = Gated(r"\b(?P<ne>n(?:e\s|['’]))[^\W\d_]+\s(?:(?:donc|alors|ainsi)\s)?(?P<que>(?:plus\s)?que\s)(?=\d|[^\W\d_]+)")
# "Although some say 10, ...": not the writer's own doubt
_CONCEDED = Gated(
    r"(?:^|(?<=[.!?]\s)|(?<=\n))(?:although|even though|though|obwohl|auch wenn|bien que|même si|aunque|embora"
    r"|ainda que|sebbene|anche se|хотя|hoewel|mimo że|chociaż)\s"
    r"(?![^,.;!?]*\b(?:i|i['’]m|we|sure|certain|might|may|could|should|ich|wir|je|nous|yo|eu|io|я|мы|ik|nie wiem|no"
    r"|nein|non|não|нет|nee|nie)\b)"
    r"[^,.;!?\n]{1,120},\s",
    re.IGNORECASE,
)


def neutral(text: str) -> str:
    """Returns the text with such parts replaced by as many spaces."""
    if "~~" in text:
        text = _STRUCK.sub(_blank, text)
    for pattern in (_EXACTLY, _CONCEDED, _REFUTED):
        for match in pattern.finditer(text):
            text = _without(text, *match.span())
    for match in _ONLY.finditer(text):
        text = _without(_without(text, *match.span("ne")), *match.span("que"))
    return text


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _without(text: str, start: int, end: int) -> str:
    return f"{text[:start]}{' ' * (end - start)}{text[end:]}"
