"""Finds answers in words in texts that announce none: "Yes, they are parallel.", "all real numbers"."""

from __future__ import annotations

from verifiers.extract import Extraction, after_thinking
from verifiers.extract.claims import claimed
from verifiers.extract.last_sentences import closing
from verifiers.extract.truths import said_truth
from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.clean import clean, trim
from verifiers.mathexpr.forms import said_first, whole_form

_LONGEST_WORDED = 200  # characters; a longer text that begins with "Yes" is not taken as an answer
MATHS_SIGN = lazy_pattern(r"[\d\\^=<>$]")


def in_words(extraction: Extraction, text: str, prompt: str, gold: Answer, gold_text: str) -> Extraction:
    """Returns what the text gives in words, if the gold is in words and at most a value was found in the text."""
    if extraction.span is None or (gold.kind == "truth" and not _may_say_truth(text, extraction)):
        extraction = _worded(text, prompt, gold) or extraction
    if gold.kind == "text" and _may_be_working(text, extraction):
        extraction = _claimed(text, prompt, gold_text) or extraction
    return extraction


def _may_say_truth(text: str, extraction: Extraction) -> bool:
    """Returns whether what was found may be a yes or no, as it is announced or begins with one."""
    if extraction.source == "statement":
        return extraction.span is not None and bool(said_first(text[slice(*extraction.span)]))
    return extraction.source not in ("number", "maths", "whole")


def _may_be_working(text: str, extraction: Extraction) -> bool:
    """Returns whether no word was found as the answer, but at most a number."""
    if extraction.span is None:
        return extraction.source in ("unsure", "nothing", "prose")
    stated_value = extraction.said or any(char.isdigit() for char in text[slice(*extraction.span)])
    return extraction.source in ("number", "maths") or (extraction.source == "statement" and bool(stated_value))


def _claimed(text: str, prompt: str, gold: str) -> Extraction | None:
    """Returns the word of the gold's class that the text claims, or None."""
    start = after_thinking(text)
    if start is None:
        return None
    _, sentences, wanted, language = closing(text, start, len(text), prompt)
    return claimed(text, sentences, prompt, wanted, language, gold) if sentences else None


def _worded(text: str, prompt: str, gold: Answer) -> Extraction | None:
    """Finds an answer in a text that announces none.

    The whole text is an answer in words ("all real numbers"), or begins with it ("Yes, they are parallel.").
    """
    start = after_thinking(text)
    if start is not None and gold.kind == "truth":
        return said_truth(text, start, len(text), prompt)
    if start is None or len(text) - start > 400:
        return None
    part = text[start:].strip(" \n\t*_.!。$")
    if not part or len(part) > _LONGEST_WORDED:
        return None
    begin = text.index(part, start)
    form = whole_form(trim(clean(part))) if len(part) < 60 and not MATHS_SIGN.search(part) else None
    known = form is not None and form.kind in ("empty", "undefined", "region", "scalar")
    return Extraction((begin, begin + len(part)), "worded") if known else None
