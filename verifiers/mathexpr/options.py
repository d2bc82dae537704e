"""The options of a multiple-choice question, read from its prompt."""

from __future__ import annotations

import itertools
import re

from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.limits import TooHard, Unreadable
from verifiers.mathexpr.reading import read

_OPTION = re.compile(r"(?:^|[\s$}])(?:\\text\w*\{\s*)?\(?([A-J])[).:]\s*\}?[\s~\\]*")
_MAX_CHARS = 20_000


def options(prompt: str) -> dict[str, str]:
    """Letter to text, for prompts that list at least A and B in order; {} for others."""
    marks = list(_OPTION.finditer(prompt[-_MAX_CHARS:]))
    if len(marks) > 40:
        return {}
    prompt = prompt[-_MAX_CHARS:]
    found: dict[str, str] = {}
    expected = "A"
    for mark, following in itertools.zip_longest(marks, marks[1:]):
        if mark[1] == "A":
            found, expected = {}, "A"
        if mark[1] != expected:
            continue
        found[expected] = (
            prompt[mark.end() : following.start() if following else None].split("\n")[0].strip(" \t.,;$\\")
        )
        expected = chr(ord(expected) + 1)
    return found if len(found) > 1 else {}


def option_of(prompt: str, gold: Answer, answer: Answer) -> tuple[Answer, Answer] | None:
    """(gold, answer) with a letter on one side turned into its option's text; None where that says nothing."""
    letter = gold.words[0] if gold.kind == "choice" else answer.words[0] if answer.kind == "choice" else ""
    if not letter or gold.kind == answer.kind:
        return None
    text = options(prompt).get(letter)
    if not text:
        return None
    try:
        read_text = read(text)
    except (Unreadable, TooHard):
        return None
    return (read_text, answer) if gold.kind == "choice" else (gold, read_text)
