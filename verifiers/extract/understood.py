"""Checks that every word beside an answer is understood. An unknown word could doubt, deny, report or suppose it.

The patterns that find an answer know many ways of stating it. Other patterns know many ways of taking it back, but
nobody can list all of these. So a correct answer is accepted only if the words around it are known to be harmless
(`verifiers.extract.vocabulary`), occur in the question or the gold, or are the noun of a number:

- In the clause that states the answer, every word must be understood. The clause begins after the last conclusion
  ("so", "but", ":") before the answer and ends with the sentence; a reason after the answer ("because ...") is skipped.
  If the sentence is about things and not about answers, everyday words are known too (`verifiers.extract.everyday`). If
  the question is given and no other value is in the sentence or after it, only words against the answer count there.
- In the text after it, every word of a sentence that judges the answer must be understood: a short sentence that says
  what the answer is, one that begins with an objection, or one in which the writer speaks of the answer. In other
  sentences about the answer, and in a unit or an aside after a box, only words against the answer count. All other
  sentences are explanations.

A box, an answer block and `####` state an answer by themselves: only the text after them and the beginning of the same
sentence are checked.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

from verifiers.extract.clause_judge import (
    CALCULATED,
    DIGITS,
    OF_ANSWERS,
    WORD,
    Judge,
    only_number,
    plain_words,
    stem_of,
)
from verifiers.extract.spans import Span, ending
from verifiers.extract.statement_words import behind_denial
from verifiers.extract.vocabulary import SAFE, UNSAFE
from verifiers.extract.words import ascii_words
from verifiers.lazy_pattern import any_case, lazy_pattern

_LOOK = 2500  # characters after an answer that are checked
_NEAR = 60  # characters after an answer that may deny it at once
_BACK = 300  # characters before an answer that are checked
_SENTENCE = lazy_pattern(r"(?<![.!?…])[.!?…]+[*_`\"”')\]]*(?:\s+|$)|[。！？؟।]|\n+|;\s")
# The signs directly before an answer that belong to it.
_OPENED = lazy_pattern(r"(?<![\s$*_`({\[#])(?:[\s$*_`({\[#]|\\(?:boxed|fbox|text|mathbf|bm|,|;|\(|\[)|</?\w+>)++$")
_APPROXIMATE = any_case(
    r"\W*+(?:about|roughly|approximately|approx|around|nearly|almost|circa|ca|environ|etwa|ungefähr|rund"
    r"|unos|около|примерно|大约|大約|約|约)\b|\s*[~≈]"
)
_REASON = any_case(
    r"(?<![,(\s])[,(\s]+(?:because|since|as (?=\w+ (?:is|are|has|have|was))|weil|denn|da|car|puisque|parce que|porque"
    r"|ya que|pues|poiché|perché|так как|потому что)\b|因为|なぜなら"
)
_STRUCK = lazy_pattern(r"~~[^~]{1,80}~~|<(?:del|s|strike)>[^<]{1,80}</(?:del|s|strike)>")
_ODD_SIGN = lazy_pattern(
    r"[~🤷🤔😅🙃❓❔❗⁉‽¿]|(?<!\w)/s(?!\w)|\\(?:cancel|sout|xcancel|bcancel|st)\b|</?(?:del|s|strike)>"
)
_ABOUT = lazy_pattern(
    r"(?:≈|∼|\\approx|\\simeq|\\sim)(?![a-z])\s*\W{0,4}$|^\W*[A-Za-z]+\s*(?:≈|∼|\\approx|\\simeq|\\sim)"
)
_NOT_OWN = any_case(
    r"(?<![^\W\d_])(?:not|nicht|non|pas|no|não|не|niet|instead of|rather than)[\s($]*¤|不是[\s($]*¤"
)  # "7 (not 7)"
_DENIES = any_case(
    r"[\s}$).,;]*\(?(?:and |but |e |y |et |und )?(?:not|nicht|non|pas|no|não|не|niet|instead of|rather than)[\s($]+"
)
_NOT_EQUAL = lazy_pattern(r"(?:\\neq?(?![a-z])|\\not\s*=|≠|(?<![\w)}])!=)[\s$({]*$")
_CONSEQUENCE = lazy_pattern(r",\s+so\s+")
# Words for work that is still to be done with the value, or for how to read its digits.
_UNDONE = any_case(
    r"\bstill (?:need|have|must|ha[sd]) to\b|\b(?:need|have|must|remains) to (?:add|subtract|multiply|divide|double"
    r"|halve|square)\b|\bbase (?:two|three|four|five|six|seven|eight|nine|eleven|twelve|sixteen)\b|\bbinary\b"
    r"|\b(?:half of (?:that|those|these)|double that|twice that|too (?:many|few)|in octal)\b"
)
# For plainly stated answers (see `_stated_plainly`): the English words that may change the meaning, and the others.
_HEAD = 160
_TURNING = UNSAFE | frozenset(
    "a an one some another first second third half other possible he she they you my his her their your it now up as at"
    " to so case of in for that me i us who what which where date far point had were should in used supposed".split()
)
_PLAIN = (frozenset(word for word in SAFE if word.isascii()) - _TURNING) | frozenset(
    "so of in to it that boxed fbox text mathbf answer".split()
)
_CLOSINGS = ("", ".", "}", "$", "}$", "}.", "}$.", "</answer>")
_CLEAR = lazy_pattern(r"[A-Za-z0-9 ,.:$*#/{}()\\=+\n-]*")
_ROUGH = ("~", "≈", "∼", "")
_NUMBER = lazy_pattern(r"\s*\$?[-+]?\d[\d,]*(?:\.\d+)?\$?\s*")
# The completion continues with another problem.
_NEXT = any_case(
    r"\n\s*+[*#]*+\s*+(?:question|problem|exercise|example|human|user|instruction|q)\b[ \d]*[*]*\s*[:.]|(?:\n"
    r"|<\|)[^\n]{0,6}user\W*\n"
)


def not_understood(text: str, span: Span, *, prompt: str, gold: str, states_itself: bool, in_words: bool) -> str:
    """Returns the first word beside the answer at `span` that isn't understood, or "".

    `states_itself`: the answer is in a box or an answer block, or follows `####`.
    `in_words`: the gold is not a number or formula, and the words of the answer were compared with it.
    """
    words = _stated_plainly(text, span, states_itself or in_words)
    if words is not None and _PLAIN.issuperset(words):
        return ""
    known = _known(prompt, gold)
    if words is not None and all(
        word in _PLAIN or (len(word) == 1 and word != "a") or (word not in _TURNING and stem_of(word) in known)
        for word in words
    ):
        return ""
    end = min(ending(text), span[1] + _LOOK)
    following = _NEXT.search(text, span[1], end)
    end = following.start() if following else end
    whole = gold.lstrip("-").isdigit()
    sign = _rough_or_denied(text, span, end, whole=whole)
    if sign:
        return sign
    closed = Judge(known, prompt, only_number(text[slice(*span)]), True)
    word = _first_doubt(text, span, end, closed, states_itself=states_itself, in_words=in_words)
    if not (word and prompt) or _competes(text, span, end, closed):
        return word
    return _first_doubt(text, span, end, replace(closed, closed=False), states_itself=states_itself, in_words=in_words)


def _rough_or_denied(text: str, span: Span, end: int, *, whole: bool) -> str:
    """Returns the sign or word next to an answer that makes a whole number approximate or denies the answer, or ""."""
    low = _sentence_start(text, span[0])
    if whole and (_ABOUT.search(text, low, span[0]) or _ABOUT.search(text[slice(*span)])):
        return "≈"
    own = None if "^" in text[slice(*span)] else only_number(text[slice(*span)])
    denied = _NOT_EQUAL.search(_OPENED.sub("", text[low : span[0]])) or (
        own is not None and _NOT_OWN.search(plain_words(text[span[1] : min(end, span[1] + _NEAR)], own))
    )
    if denied:
        return denied[0]
    same = _DENIES.match(text, span[1], end)
    if same and text.startswith(text[slice(*span)].strip(" $"), same.end()):
        return same[0]
    rough = _APPROXIMATE.match(_STRUCK.sub("", text[slice(*span)])) if whole else None
    return rough[0].strip() if rough else ""


def _first_doubt(text: str, span: Span, end: int, judge: Judge, *, states_itself: bool, in_words: bool) -> str:
    """Returns the first word of the answer's sentence or of a later one that `judge` rejects, or ""."""
    low = _sentence_start(text, span[0])
    rest = _sentences(text, span[1], end)
    before = _OPENED.sub("", text[behind_denial(text, low, span[0]) : span[0]])
    after = next(rest, "")
    inside = "" if states_itself or in_words else text[slice(*span)]
    after = _REASON.split(after, maxsplit=1)[0]
    after, consequence = _CONSEQUENCE.split(f"{after}, so ", maxsplit=1)
    everyday = not (states_itself or OF_ANSWERS.search(text, low, min(end, span[1] + _BACK)))
    odd = _ODD_SIGN.search(_STRUCK.sub("", before) + text[span[1] : end]) or _UNDONE.search(f"{after} {consequence}")
    if odd:
        return str(odd[0])
    stated = inside + after if inside else "§ " + after.lstrip(" \t}$)*]")
    counted = not (states_itself or CALCULATED.search(before))
    return (
        judge.before(before, everyday, states_itself)
        or judge.inside(stated, counted, everyday)
        or judge.later(consequence)
        or next((word for sentence in rest if (word := judge.later(sentence))), "")
    )


def _competes(text: str, span: Span, end: int, judge: Judge) -> bool:
    """Returns whether the answer's sentence or the text after it contains another value that the question lacks."""
    low = max(text.rfind(stop, 0, span[0]) for stop in (". ", "\n", "。", "? ", "! "))
    beside = f"{text[max(0, low) : span[0]]} {text[span[1] : end]}"
    return any(
        float(number.replace(",", "")) != judge.own and number not in judge.prompt for number in DIGITS.findall(beside)
    )


def _stated_plainly(text: str, span: Span, compared: bool) -> list[str] | None:
    """Returns the words before a plainly stated number or compared text, or None if it needs a closer check."""
    start, end = span
    closing = text[end : end + 64].strip()
    if closing not in _CLOSINGS and (closing.strip(".}$*`) \n") or len(closing) > 32):
        return None
    head = text[max(0, start - _HEAD) : start]
    low = max(head.rfind("\n"), head.rfind(". "))
    tag = head.rfind(">")
    low = tag if tag > low and head[tag - 1] in "kr" else low  # the tag is "</think>" or "<answer>"
    if (low < 0 and start > _HEAD) or _CLEAR.fullmatch(head, low + 1) is None:
        return None
    first = text[start : start + 1]
    plain = not (first in _ROUGH or first.isalpha()) if compared else _NUMBER.fullmatch(text, start, end)
    return ascii_words(head[low + 1 :]) if plain else None


def _sentence_start(text: str, position: int) -> int:
    low = max(0, position - _BACK)
    for tag in ("think>", "answer>"):
        tagged = text.rfind(tag, low, position)
        low = low if tagged < 0 else tagged + len(tag)
    for match in _SENTENCE.finditer(text, low, position):
        low = match.end()
    return low


def _sentences(text: str, position: int, end: int) -> Iterator[str]:
    """Yields the rest of the sentence at `position`, then each sentence after it."""
    for match in _SENTENCE.finditer(text, position, end):
        yield text[position : match.end()]
        position = match.end()
    yield text[position:end]


@functools.lru_cache(maxsize=256)
def _known(prompt: str, gold: str) -> frozenset[str]:
    """Returns the stems of the words of the question and the gold, and each word of the gold unchanged after "="."""
    own = [word.lower() for word in WORD.findall(gold[:2000])]
    asked = (word.lower() for word in WORD.findall(prompt[:8000]))
    return frozenset((*map(stem_of, asked), *map(stem_of, own), *(f"={word}" for word in own)))
