"""Finds answers of the gold's kind in texts that announce none: "Yes, they are parallel.", "x is either -4 or 3"."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

from verifiers.extract import Extraction, after_thinking
from verifiers.extract.asked_values import is_operand
from verifiers.extract.claims import claimed
from verifiers.extract.clauses import begins_clause, opposed, reports, supposes
from verifiers.extract.closings import closing_lines
from verifiers.extract.conclusions import UNSURE, altered
from verifiers.extract.last_sentences import closing
from verifiers.extract.overruling import FORMS
from verifiers.extract.quantities import number_in_other_words, quantities
from verifiers.extract.stated_sentence import values_of_question
from verifiers.extract.statement_words import REPORTS, SO, UNREAL
from verifiers.extract.truths import said_truth
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.clean import clean, trim
from verifiers.mathexpr.forms import plain_words, said_first, whole_form
from verifiers.mathexpr.number_words import number_in_words

_BARS = any_case(
    r"\b(?:avoid|exclud\w*|except|without|differ\w*|between|multiplicity|interval|from|not|never|neither|nor|weder|noch|nem|ani)\b|(?<!\w)ليس\w*"
)
_NO_OTHER = any_case(  # "and nothing else works"
    r"\b(?:nothing else|no other|sonst (?:nichts|keine\w*)|rien d['’]autre|aucune? autre|nada más|ning[uú]n\w* otr[oa]"
    r"|nenhum\w* outr[oa]|nada mais|nessun\w* altr[oa]|niets anders|inget annat|nic innego)\b[^.!?]*|других[^.!?]*нет"
)
_DENIES = any_case(  # before lines of values
    r"\b(?:not|never|neither|nor|without|wrong|incorrect\w*|false|maybe|perhaps|possibl\w+|guess\w*|nicht|keine?|falsch\w*"
    r"|vielleicht|pas|aucun\w*|faux|fausse\w*|peut-être|no|ningun\w*|quiz[aá]s?|não|nenhum\w*|errad\w+|talvez|non"
    r"|nessun\w*|sbagliat\w+|forse|niet|geen|fout\w*|misschien|nie|inte|fel)\b|(?<!\w)(?:не|неверн\w*|может)(?!\w)"
    r"|[不错錯非]|誤|ない|かも|아니|않|틀린|ليس|خطأ"
)
_NUMBERED = lazy_pattern(r"([^\W\d_]{3,20}) (\d{1,9})")
_WHICH = r"\b(?:which|what|welche[rmns]?|quel(?:le)?|qué|cuál|qual|quale|welke?|как\w+)"
_BULLET = lazy_pattern(r"\s*(?:[-*•]|\d\.)\s+")
_BRACKET = lazy_pattern(r"[\[(]\s*$")
_JOINT = lazy_pattern(r"[^\d.!?;\[\]()]{1,60}")  # ", and it can also be", " and Jerry gets"
_LONGEST_WORDED = 200  # characters; a longer text that begins with "Yes" is not taken as an answer
MATHS_SIGN = lazy_pattern(r"[\d\\^=<>$]")


def in_words(extraction: Extraction, text: str, prompt: str, gold: Answer, gold_text: str) -> Extraction:
    """Returns what the text gives in words, if the gold is in words and at most a value was found in the text."""
    if extraction.span is None or (gold.kind == "truth" and not _may_say_truth(text, extraction)):
        extraction = _worded(text, prompt, gold) or extraction
    if gold.kind == "text" and _may_be_working(text, extraction):
        extraction = _claimed(text, prompt, gold_text) or extraction
    return extraction


def listed(text: str, prompt: str, gold: Answer) -> Extraction | None:
    """Returns the values of the last clause, or lines, if they are as many as the gold's, or None beside a doubt."""
    start, count = after_thinking(text), len(gold.items)
    if start is None or count < 2 or any(form in text for form in FORMS):
        return None
    lead, *lines = closing_lines(text, count) or [(0, 0)]
    if lines and lines[0][0] >= start:
        led = text[slice(*lead)]
        if (
            _DENIES.search(led)
            or REPORTS.search(led)
            or supposes(led)
            or UNREAL.search(led)
            or UNSURE.search(led)
            or "?" in led
        ):
            return None
        said = " , ".join(_BULLET.sub("", text[slice(*line)], count=1) for line in lines)
        return Extraction((lines[0][0], lines[-1][1]), "statement", said=said)
    if gold.kind not in ("list", "set"):
        return None
    _, sentences, wanted, language = closing(text, start, len(text), prompt)
    if not sentences:
        return None
    begin, end = sentences[-1]
    part = _NO_OTHER.sub(" ", text[begin:end])
    if opposed(part, language) or reports(part, wanted) or supposes(part) or UNREAL.search(part) or "?" in part:
        return None
    starts = [sign.end() for sign in SO.finditer(text, begin, end) if begins_clause(text, begin, sign)]
    begin = max([begin, *starts, text.rfind(": ", begin, end) + 1])
    given = {quantity.key for quantity in values_of_question(prompt[-2000:], language)}
    found = {
        quantity.key: quantity for quantity in quantities(text, begin, end, language)
        if not quantity.article and quantity.key not in given and not is_operand(text, quantity.span, (begin, end))
    }  # fmt: skip
    spans = [quantity.span for quantity in found.values()]
    if len(found) != count or any(quantity.kind == "formula" for quantity in found.values()) or _BARS.search(part):
        return None
    if any(altered(text, (begin, end), span) for span in (spans[0], spans[-1])) or _BRACKET.search(
        text, begin, spans[0][0]
    ):
        return None
    if not all(_JOINT.fullmatch(text, one[1], other[0]) for one, other in itertools.pairwise(spans)):
        return None
    said = ", ".join(quantity.said or text[slice(*quantity.span)] for quantity in found.values())
    return Extraction((spans[0][0], spans[-1][1]), "statement", said=said)


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


def number_of_things(text: str, prompt: str) -> Fraction | None:
    """Returns the number that the text spells in any language, also before words of the question, or None.

    "cent vingt"; "four real solutions" for "Find the number of real solutions".
    """
    plain = plain_words(text).strip("$* ")
    value = number_in_other_words(plain)
    words = plain.casefold().split()
    if value is not None or not 1 < len(words) < 10:
        return value
    asked = prompt.casefold()
    named = _NUMBERED.fullmatch(plain.casefold())
    if named and re.search(rf"{_WHICH} {named[1]}\b", asked):
        return Fraction(named[2])  # "Day 8" for "On which day ...?"
    for cut in range(len(words) - 1, 0, -1):
        if words[cut] not in asked:
            return None
        head = " ".join(words[:cut])
        value = number_in_words(head)
        value = number_in_other_words(head) if value is None else value
        if value is not None:
            return value
    return None
