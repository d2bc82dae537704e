"""Reads the options of a multiple-choice question from its prompt."""

from __future__ import annotations

import itertools
from fractions import Fraction

from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.clean import clean
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.forms import text_words
from verifiers.mathexpr.limits import TooHard, Unreadable
from verifiers.mathexpr.reading import read

_OPTION = lazy_pattern(
    r"(?:^|[\s$},;*]|(?<=quad)|(?<=[\d.!?)])(?=\([B-J]\)))(?:\\text\w*\{\s*)?[(（]?([A-J])[).:．）]\**\s*\}?[\s~\\*]*"
)
_LAST_LETTER = lazy_pattern(r"[\s,]*(?:\\text\w*\{\s*)?\(\s*[A-J]\s*\)\s*\}?[\s.$]*$")
_MAX_CHARS = 20_000
_GIVEN = lazy_pattern(r"(?<![\d.,/])\d{1,9}(?:[.,]\d{1,9}|/[1-9]\d{0,8})?(?![\d/]|[.,]\d)")


def options(prompt: str) -> dict[str, str]:
    """Returns {letter: text} for prompts that list at least A and B in order, else {}."""
    marks = list(_OPTION.finditer(prompt[-_MAX_CHARS:]))
    if len(marks) > 40:
        return {}
    prompt = prompt[-_MAX_CHARS:]
    texts: dict[str, str] = {}
    expected = "A"
    for mark, following in itertools.zip_longest(marks, marks[1:]):
        if mark[1] == "A":
            texts, expected = {}, "A"
        if mark[1] != expected:
            continue
        texts[expected] = (
            prompt[mark.end() : following.start() if following else None].split("\n")[0].strip(" \t.,;$\\*")
        )
        expected = chr(ord(expected) + 1)
    return texts if len(texts) > 1 else {}


def option_of(prompt: str, gold: Answer, answer: Answer) -> tuple[Answer, Answer] | None:
    """Returns (gold, answer) with the letter of one side replaced by its option's text; None if there is none."""
    letter = gold.words[0] if gold.kind == "choice" else answer.words[0] if answer.kind == "choice" else ""
    if not letter or gold.kind == answer.kind:
        return None
    chosen = gold if gold.kind == "choice" else answer
    text = chosen.words[1] if len(chosen.words) > 1 else options(prompt).get(letter)
    if not text:
        return None
    try:
        read_text = read(text)
    except (Unreadable, TooHard):
        return None
    return (read_text, answer) if gold.kind == "choice" else (gold, read_text)


def other_option(prompt: str, answer: Answer, text: str) -> bool:
    """Returns whether the text beside the letter is that of another option, or has another value than its own.

    Args:
        text: the answer as it is written, such as "5 (C)".
    """
    if answer.kind != "choice":
        return False
    letter, given = answer.words if len(answer.words) > 1 else (answer.words[0], _LAST_LETTER.sub("", text).strip())
    if not given or given == text.strip():
        return False
    texts = options(prompt)
    own = texts.pop(letter, None)
    if own is None or text_words(clean(own)) == text_words(clean(given)):
        return False
    if any(text_words(clean(text)) == text_words(clean(given)) for text in texts.values()):
        return True
    try:
        ours, theirs = read(own), read(given)
    except (Unreadable, TooHard):
        return False
    values = [
        rational(side.node) if side.kind == "scalar" and side.node is not None else None for side in (ours, theirs)
    ]
    return None not in values and values[0] != values[1]


def other_of_two(prompt: str, gold: str, text: str) -> bool:
    """Returns whether gold and answer are two different numbers of the question, such as 0.4 and 3/8.

    A decimal gold accepts what rounds to it, but not where the question asks to choose between both.
    """
    ours, theirs = (side.strip(" $.*").replace(",", ".") for side in (gold, text))
    if ours == theirs or not (_GIVEN.fullmatch(ours) and _GIVEN.fullmatch(theirs)):
        return False
    given = _GIVEN.findall(prompt[-2000:].replace("\\frac{", "").replace("}{", "/"))
    if not {ours, theirs} <= {number.replace(",", ".") for number in given}:
        return False
    return Fraction(ours) != Fraction(theirs)
