"""Finds a conclusion that remarks follow: "So there are 35 groups. If the order mattered, it would be 840."

The last sentences are read one by one from the end, until one concludes or repeats the question's words. Its value
counts if the sentences behind it state no value themselves, ask and correct nothing, and bring in numbers only in
equations and in conditions that aren't fulfilled. Their words must then be judged as those behind a box.
"""

from __future__ import annotations

from verifiers.extract.anchors import anchors
from verifiers.extract.asked import asked_of, stems
from verifiers.extract.conclusions import unsure
from verifiers.extract.denials import denied_after
from verifiers.extract.last_sentences import all_sentences
from verifiers.extract.numerals import language_of
from verifiers.extract.quantities import quantities
from verifiers.extract.remark_words import DOUBTS, OFFER, WOULD
from verifiers.extract.retractions import retracted
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.stated_sentence import values_of_question
from verifiers.extract.statement_words import FRAMES, SO
from verifiers.extract.statements import stated
from verifiers.extract.turns import CORRECTION
from verifiers.lazy_pattern import any_case, lazy_pattern

_LOOK = 1500  # characters before the end that are read
_MOST = 5  # sentences of remarks
_UNREAL = lazy_pattern(WOULD)
_PROPERLY = any_case(r"\b(?:proper(?:ly)?|careful(?:ly)?|serious(?:ly)?|accurate(?:ly)?|as asked)\b")
_CHECKS = any_case(
    r"\b(?:check\w*|verif\w*|sanity|make sure|confirm\w*|probe|kontroll\w*|vérif\w*|comprob\w*|confer\w*|sprawdz\w*)\b"
    r"|(?<!\w)провер\w*|验算|检验|验证|検算|確認|검산|확인"
)
_JUDGED = frozenset("en de fr es pt it ru zh ja ko".split())  # languages whose words behind an answer are all judged
_ANOTHER_TASK = lazy_pattern(r"\b(?:similar|another|other) (?:one|problem|question|example)\b")


def concluded(text: str, start: int, prompt: str, read: Span | None) -> tuple[Extraction, str] | None:
    """Returns the value of the last conclusion in the text from `start` on, if only remarks follow it, or None.

    A sentence with `read`, what the end of the text gives as its answer, is no remark unless it supposes something.

    The remarks must then be judged as after a box, in the text that is returned too, where they have their own line.
    """
    end = len(text)
    low = max(start, end - _LOOK)
    sentences = all_sentences(text, low, end)
    language = language_of(f"{prompt[-400:]} {text[-400:]}")
    if len(sentences) < 2 or language not in _JUDGED or _ANOTHER_TASK.search(text, low):
        return None
    wanted = stems(asked_of(prompt[-2000:]).sentence)
    for at in range(len(sentences) - 2, max(-1, len(sentences) - 2 - _MOST), -1):
        if _objects(text, sentences[at + 1]):
            return None
        part = text[slice(*sentences[at])]
        if not (SO.search(part) or len(stems(part) & wanted) > 1):
            continue
        stop = sentences[at][1]
        if not _bring_no_number(text, sentences[at:], prompt, language):
            return None
        if read is not None and any(
            low <= read[0] < high and not _supposes(text, (low, high)) for low, high in sentences[at + 1 :]
        ):
            return None
        found = stated(text, start, stop, prompt)
        if found is None or found.span is None or found.span[0] < sentences[at][0]:
            return None
        if denied_after(text, found.span[1], end) or retracted(text, found.span[1], end) is not None:
            return None
        if any(anchor.end > stop for anchor in anchors(text, low)):
            return None
        last = stated(text, start, end, prompt)
        if last is not None and last.span is not None and last.span[0] >= stop:
            return None
        text = f"{text[:stop]}\n{text[stop + 1 :]}" if text[stop : stop + 1].strip(".!。") else text
        return Extraction(found.span, "opening", said=found.said), text
    return None


def _objects(text: str, sentence: Span) -> bool:
    part = text[slice(*sentence)]
    if CORRECTION.search(part) or "?" in part or FRAMES.search(part) or unsure(part):
        return True
    return OFFER.match(part) is not None and DOUBTS.search(part) is not None  # "I can give the correct answer as well."


def _bring_no_number(text: str, sentences: list[Span], prompt: str, language: str) -> bool:
    """Returns whether the first sentence has one new value and the others none outside equations and conditions."""
    (low, stop), *others = sentences
    given = (*quantities(text, max(0, low - _LOOK), low, language), *values_of_question(prompt[-2000:], language))
    known = {item.key for item in given}
    own = {item.key for item in quantities(text, low, stop, language) if not item.article}
    if len(own - known) > 1:
        return False  # "So it is 4/25 in one case and 2/15 in the other. Hard to say which of them is asked for."
    known |= own
    return all(
        _only_calculates(text, other, known, language)
        or _supposes(text, other)
        or all(item.key in known for item in quantities(text, *other, language) if not item.article)
        for other in others
    )


def _supposes(text: str, sentence: Span) -> bool:
    """Returns whether a sentence is of a case that isn't the text's: "Without this mistake, it would be 45."."""
    doubted = DOUBTS.search(text, *sentence) or _PROPERLY.search(text, *sentence)
    return _UNREAL.search(text, *sentence) is not None and doubted is None


def _only_calculates(text: str, sentence: Span, known: set[object], language: str) -> bool:
    """Returns whether a sentence has an equation and brings in no number behind the last one.

    The result of the last one must be known as well, unless the sentence says that it checks: "24 + 40 = 64" goes on.
    """
    equals = text.rfind("=", *sentence)
    if equals < 0:
        return False
    found = [item for item in quantities(text, equals, sentence[1], language) if not item.article]
    return all(item.key in known for item in (found[1:] if _CHECKS.search(text, *sentence) else found))
