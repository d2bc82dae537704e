"""Blanks what leaves an answer as it is, so that no later step reads it: struck-out text, "no more and no less"."""

from __future__ import annotations

import re

from verifiers.extract.wordings import CONCEDING
from verifiers.lazy_pattern import any_case, lazy_pattern

_STRUCK = lazy_pattern(r"~~(?!\s)[^~\n]{1,200}(?<!\s)~~")  # struck out in Markdown
_EXACTLY = any_case(
    r",?\s(?:no more,? (?:and )?no less|neither more nor less|nicht mehr und nicht weniger|ni plus ni moins"
    r"|ni un[oa]? más ni un[oa]? menos|ni más ni menos|nem mais nem menos|né più né meno|ни больше,? ни меньше"
    r"|ani więcej,? ani mniej|niet meer en niet minder)(?![^\W\d_])|，?不多不少"
)
_REFUTED = any_case(
    r"(?:(?:hence|so|thus|therefore|and),? )?(?:the|our|this|that) (?:supposition|assumption|hypothesis) (?:was|is"
    r"|must be) (?:false|wrong|absurd|impossible|untenable),? (?:and|so) "
)
_ONLY = lazy_pattern(
    r"\b(?P<ne>n(?:e\s|['’]))(?P<kept>[^\W\d_]+\s(?:(?:donc|alors|ainsi)\s)?)(?P<que>(?:plus\s)?que\s)(?=\d|[^\W\d_]+)"
)
_IFF = any_case(  # "x² < 9 if and only if -3 < x < 3"
    r"(?<!fails)(?<!false)(?<!wrong)(?<!undefined),?\s(?:if,? and only if|si,? et seulement si|genau dann,? wenn"
    r"|si,? y s[oó]lo si|se,? e (?:somente|s[oó]|apenas) se|se,? e solo se|wtedy i tylko wtedy,? gdy"
    r"|тогда и только тогда,? когда)(?=,?\s[$\\(]*[-−]?[\w./|^²]{1,8}\s?[<>≤≥=\\])|当且仅当"
)
# "Although some say 10, ...": not the writer's own doubt
_CONCEDED = any_case(rf"(?:^|(?<=[.!?]\s)|(?<=\n)){CONCEDING}[^,.;!?\n]{{1,120}},\s")
_SENTENCE_IN_BOX = lazy_pattern(
    r"\\boxed\s*\{\s*\\(?:text|mbox|textrm|textbf|mathrm)\s*\{([^{}]{5,200})\}\s*\}(?=[\s$.\\)\]]*\Z)"
)
_BRACKETED = lazy_pattern("【([^【】\n]{1,12})】")
_DASHED = any_case(r"(?<=\banswer )—(?= )|(?<=\bresult )—(?= )|(?<=\bantwort )—(?= )|(?<=\bréponse )—(?= )")
_LED = lazy_pattern(r"(?:(?<=^答え)|(?<=\n答え))\u3000")
_NESTED = lazy_pattern(r"\[\[[^][\n]{1,200}\](?:\s{0,9},?\s{0,9}\[[^][\n]{1,200}\]){1,20}\s{0,9}\]")
_TAIL = 20_000  # characters that are read
_LONGEST_BOX = 300  # characters
_FEWEST = 3  # words of a sentence


def with_plain_marks(text: str) -> str:
    """Returns the text, of the same length, with spaces for what Markdown strikes out and for line ends in [[...]].

    A label in black brackets, such as 【答】, gets a colon, and so does 答え at the beginning of a line.
    """
    text = _STRUCK.sub(_blank, text) if "~~" in text else text
    text = _DASHED.sub(":", text) if "—" in text else text
    text = _BRACKETED.sub(r" \1：", text) if "【" in text else text
    text = _LED.sub("：", text.replace("∶", ":")) if "答え" in text or "∶" in text else text
    return _NESTED.sub(lambda match: match[0].replace("\n", " "), text) if "[[" in text else text


def neutral(text: str) -> str:
    """Returns the text with spaces for such parts of its last 20,000 characters, other than those struck out."""
    head, tail = text[:-_TAIL], text[-_TAIL:]
    for pattern in (_EXACTLY, _CONCEDED, _REFUTED):
        tail = pattern.sub(_blank, tail)
    tail = _IFF.sub(lambda match: ":".ljust(len(match[0])), tail)
    return head + _ONLY.sub(lambda match: f"{' ' * len(match['ne'])}{match['kept']}{' ' * len(match['que'])}", tail)


def without_box(text: str) -> str:
    """Returns the text without the box around a sentence that ends it: "\\boxed{\\text{Lena pays 14 euros.}}"."""
    found = _SENTENCE_IN_BOX.search(text, max(0, len(text) - _LONGEST_BOX))
    if found is None or len(found[1].split()) < _FEWEST or not any(char.isdecimal() for char in found[1]):
        return text
    low, high = found.span(1)
    lead = " " * (low - found.start() - 1)
    return f"{text[: found.start()]}\n{lead}{text[low:high]}{' ' * (len(text) - high)}"


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
