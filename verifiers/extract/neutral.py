"""Blanks what leaves an answer as it is, so that no later step reads it: struck-out text, "no more and no less"."""

from __future__ import annotations

import re

from verifiers.extract.wordings import CONCEDING
from verifiers.lazy_pattern import lazy_pattern

_STRUCK = lazy_pattern(r"~~(?!\s)[^~\n]{1,200}(?<!\s)~~")  # struck out in Markdown
_EXACTLY = lazy_pattern(
    r",?\s(?:no more,? (?:and )?no less|neither more nor less|nicht mehr und nicht weniger|ni plus ni moins"
    r"|ni un[oa]? más ni un[oa]? menos|ni más ni menos|nem mais nem menos|né più né meno|ни больше,? ни меньше"
    r"|ani więcej,? ani mniej|niet meer en niet minder)(?![^\W\d_])|，?不多不少",
    re.IGNORECASE,
)
_REFUTED = lazy_pattern(
    r"(?:(?:hence|so|thus|therefore|and),? )?(?:the|our|this|that) (?:supposition|assumption|hypothesis) (?:was|is"
    r"|must be)"
    r" (?:false|wrong|absurd|impossible|untenable),? (?:and|so) ",
    re.IGNORECASE,
)
_ONLY = lazy_pattern(
    r"\b(?P<ne>n(?:e\s|['’]))(?P<kept>[^\W\d_]+\s(?:(?:donc|alors|ainsi)\s)?)(?P<que>(?:plus\s)?que\s)(?=\d|[^\W\d_]+)"
)
# "Although some say 10, ...": not the writer's own doubt
_CONCEDED = lazy_pattern(rf"(?:^|(?<=[.!?]\s)|(?<=\n)){CONCEDING}[^,.;!?\n]{{1,120}},\s", re.IGNORECASE)


_TAIL = 20_000  # characters that are read


def without_struck(text: str) -> str:
    """Returns the text with spaces for what Markdown strikes out."""
    return _STRUCK.sub(_blank, text) if "~~" in text else text


def neutral(text: str) -> str:
    """Returns the text with spaces for such parts of its last 20,000 characters, other than those struck out."""
    head, tail = text[:-_TAIL], text[-_TAIL:]
    for pattern in (_EXACTLY, _CONCEDED, _REFUTED):
        tail = pattern.sub(_blank, tail)
    return head + _ONLY.sub(lambda match: f"{' ' * len(match['ne'])}{match['kept']}{' ' * len(match['que'])}", tail)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
