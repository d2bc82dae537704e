"""Detects completions that only repeat their prompt. They answer nothing, whatever numbers they contain."""

from __future__ import annotations

from verifiers.extract.sentences import sentence_ends, sentence_start
from verifiers.extract.spans import Extraction, after_thinking
from verifiers.lazy_pattern import any_case

_MIN_WORDS = 5  # "x = 7" or "7 apples" may be part of a question and also its answer
_LABEL = any_case(
    r"\W*+(?:(?:the )?(?:question|problem|prompt|task|q|frage|aufgabe|pregunta|problema|вопрос"
    r"|задача|题目|问题|問題|문제)"
    r"(?: (?:is|says|asks|states|was))?\s*[:：.-]*\s*)"
)
_EMPTY_ANSWER = any_case(r"(?:\s(?:final )?(?:answer|solution|antwort|respuesta|réponse|ответ)|答案?)\s*[:：]?\W*$")
_OPTION = any_case(r"(?:^|[\s(\[])[a-j][).\]:]\s*$")
_OPTIONS = any_case(r"(?:^|[\s(\[])[a-j][).\]:]\s")


def repeats_prompt(prompt: str, text: str, extraction: Extraction) -> bool:
    """Returns whether the extracted answer is only a passage of the prompt.

    This holds if all text after the reasoning is such a passage, or if the sentence of an unannounced answer is one.
    The text of one option is an answer, although the prompt contains it.
    """
    start = after_thinking(text)
    if start is None or extraction.span is None:
        return False
    if len(text) - start <= len(prompt) + 80 and _within(text[start:], prompt):
        return True
    if extraction.source not in ("maths", "number", "statement"):
        return False
    low = sentence_start(text, extraction.span[0], start)
    end = sentence_ends(text).search(text, extraction.span[1])
    return _within(text[low : end.start() if end else len(text)], prompt)


def _within(part: str, prompt: str) -> bool:
    part = " ".join(_EMPTY_ANSWER.sub("", part).split()).strip(" .*_`>#").casefold()
    folded, whole = prompt.casefold(), ""
    for passage in (part, part[label.end() :] if (label := _LABEL.match(part)) else ""):
        words = passage.split()
        if len(words) < _MIN_WORDS and len(passage) < 4 * _MIN_WORDS:
            continue
        if words[len(words) // 2] not in folded:
            continue  # for most answers the check ends here
        whole = whole or " ".join(prompt.split()).casefold()
        place = whole.find(passage)
        if place >= 0:
            return len(_OPTIONS.findall(passage)) > 1 or not (
                _OPTION.search(whole[max(0, place - 6) : place]) or _OPTIONS.match(passage)
            )
    return False
