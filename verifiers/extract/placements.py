"""Finds out whether the words before a value lead to it as an answer: "comes out at 7", "consists of seven days"."""

from __future__ import annotations

from verifiers.extract.asked import Asked, stems
from verifiers.extract.asked_values import OPERATION
from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.spans import Span
from verifiers.extract.stated_sentence import ASKED, Sentence, pairs_of_words
from verifiers.extract.statement_words import (
    AFTER_TIME,
    BESIDE_TIME,
    LEADS,
    LED_BY,
    NO_LEAD,
    PLACED,
    PLAIN_WORD,
    WORD,
)
from verifiers.lazy_pattern import any_case

_THAT_IS = {"pl": "to ", "es": "da "}  # which precede arguments in other languages
_BY = any_case(r"\bby\s+\W*$")
_LABEL_OF = any_case(r"\b([^\W\d_]{3,})\s+(?:number |nr\. |no\. )?$")
# A preposition after which a value of the asked kind is no argument: "consists of seven days", "consta de 24 horas".
_LED_TO = any_case(
    r"(?!(?:half|cube|root|part|more|less|each|most|some|many|none|third|other|fewer|square|quarter"
    r"|multiple|instead|out"
    r"|ahead|short|one|two|three|moitié|mitad|metade|metà|hälfte|plus|moins|más|menos|mais|più|meno)\b)"
    r"\b[^\W\d_]+ (?:of|de|di|von|aus|van|av|out of|from|z|ze|из|от|من)\s+(?:just |only |exactly )?$"
)

# "The sample has a density of 3 g/cm³.": what is asked for, as something that the thing in question has.
_HAS_A = any_case(
    r"\b(?:has|have|had|with|gives?|hat|haben|mit|a|avec|tiene|con|tem|com|ha|heeft|met|har)\s(?:(?:er|sie|es|il|elle|hij|zij)\s)?(?:an?|eine?n?r?|une?"
    r"|una|uma?|een|en|ett)\s(?:[^\W\d_]+\s)?([^\W\d_]{4,})\s(?:[^\W\d_]+\s)?(?:of|von|de|di|van|av|på)\s+$"
)


def is_placed(sentence: Sentence, clause: Span, value: Quantity) -> bool:
    """Returns whether the words of a clause before a value show that the value is the answer."""
    text, wanted = sentence.text, sentence.wanted
    if value.kind == "relation" or (
        value.kind == "time" and BESIDE_TIME.search(text, clause[0], value.span[0]) is None
    ):
        return True
    if _is_led_by_phrase(text, clause[0], value.span[0]) or _as_asked(text, clause, value, sentence):
        return True
    if text.endswith(_THAT_IS.get(sentence.language, "\n"), clause[0], value.span[0]):
        return True
    led = text[clause[0] : value.span[0]]
    is_wanted = wanted.is_wanted(text, value)
    had = _HAS_A.search(led)
    if had is not None and had[1][:5].lower() in wanted.sentence.lower():
        return True
    if _leads(led, wanted, is_wanted) or (is_wanted and _LED_TO.search(led)):
        return True
    closes = bool(sentence.prompt) and not WORD.search(text[value.span[1] : sentence.span[1]])
    return closes and not _BY.search(led) and _leads(led, wanted, True)


def _is_led_by_phrase(text: str, low: int, high: int) -> bool:
    """Returns whether a phrase such as "comes out at" leads to the value. All such phrases end in one of six words."""
    led = text[low:high].rstrip().lower()
    return led.endswith(("at", "to", "of", "de", "di", "von", "bei")) and PLACED.search(text, low, high) is not None


def _as_asked(text: str, clause: Span, value: Quantity, sentence: Sentence) -> bool:
    """Returns whether the words before a value repeat the question's ("start with") or say how long something takes."""
    span = value.span
    led = LED_BY.search(text, clause[0], span[0])
    if led is not None:
        begun, preposition = led[1][:4].lower(), led[2].lower()
        if any(
            first.startswith(begun) and second == preposition
            for first, second in pairs_of_words(sentence.prompt[-ASKED:])
        ):
            return True
    question = sentence.question
    labelled = _LABEL_OF.search(text, clause[0], span[0])
    if labelled is not None and labelled[1].lower()[:5] in question.which:
        return True  # "on day 8" in answer to "on which day"
    before = PLAIN_WORD.findall(text[max(clause[0], span[0] - OPERATION) : span[0]])
    if before and before[-1].lower() in question.prepositions:
        return True  # "by 25 percent" in answer to "by what percentage"
    return question.time and value.kind != "time" and AFTER_TIME.search(text, clause[0], span[0]) is not None


def _leads(led: str, wanted: Asked, is_wanted: bool) -> bool:
    """Returns whether a preposition leads to the answer.

    The value must be of the asked kind, or the words before it must share at least two words with the question.
    """
    found = LEADS.search(led)
    if found is None or not led[: found.start()].strip() or NO_LEAD.search(led):
        return False
    if found[0].lower().startswith("by "):
        return is_wanted and wanted.difference
    return is_wanted or len(stems(led) & stems(wanted.sentence)) > 1
