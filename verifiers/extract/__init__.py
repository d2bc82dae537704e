"""Finds the final answer in a completion, in linear passes that separate the reasoning from the answer."""

from __future__ import annotations

import re
from dataclasses import replace

from verifiers.extract.anchors import anchors
from verifiers.extract.announcements import PRAISE, announced, without_aside
from verifiers.extract.astray import is_astray
from verifiers.extract.blanks import original, squeezed
from verifiers.extract.boxes import boxed
from verifiers.extract.choices import chosen
from verifiers.extract.closings import closing_assignments
from verifiers.extract.conclusions import altered, sole_value, turned
from verifiers.extract.contrasts import may_contrast
from verifiers.extract.corrected import corrected
from verifiers.extract.denials import denied_after, replaced
from verifiers.extract.echo import repeats_prompt
from verifiers.extract.gates import Gated
from verifiers.extract.hedges import hedge, restated
from verifiers.extract.last_sentences import before_check
from verifiers.extract.operands import final_expression, whole_expression
from verifiers.extract.retractions import instead, plain_tail, retracted
from verifiers.extract.scaled import changes_value
from verifiers.extract.spans import Extraction, Span, after_thinking, closing_brace, ending, moved
from verifiers.extract.statement_words import SO, STOP
from verifiers.extract.statements import begins_with_so, stated, voided_after, with_unit
from verifiers.extract.turns import CONCLUSION, CORRECTION
from verifiers.extract.unannounced import closing_expression, unannounced
from verifiers.extract.words import VALUE, WORD
from verifiers.lazy_pattern import any_case, lazy_pattern

__all__ = [
    "Extraction",
    "Span",
    "after_thinking",
    "closing_brace",
    "final_answer",
    "final_answers",
    "find",
    "hedge",
    "moved",
    "original",
    "repeats_prompt",
    "restated",
    "sole_value",
    "squeezed",
    "turned",
]

_ANSWER = any_case(r"<(/?)answer>")
_HASHES = lazy_pattern(r"####[ \t]*+(?:\n\s*+(?=[^\n]++\s*+\Z))?([^\n]*)")  # the answer may be the next, last line
_SENTENCE = lazy_pattern(rf"({VALUE})\.\s+(?=[^\W\d])")
_HEADING = any_case(  # "#### Step 4", with text below it
    r"[*_\s]*(?:step|part|case|(?:the )?(?:final )?(?:answer|result|solution)|conclusion|verification|check|explanation"
    r"|summary|schritt|fall|antwort|lösung|ergebnis|étape|réponse|conclusion|paso|respuesta|etapa|resposta|passo"
    r"|risposta|шаг|ответ|步骤|答案)(?:\s\d{1,2})?[*_\s:：]*"
)
# A short sentence that states a value: "He pays £12.", "15 litres fill 3 cans."
_SAYS = lazy_pattern(
    r"\s*(?:(?!Not?\b)[A-ZÀ-ÞА-Я][^\W\d_]*\s+[^\W\d_]{3,}"
    r"|\d+\s[^\W\d_]{3,}\s[^\W\d_]{3,})[^\d\n.]{0,20}\s[$£€]?\d[^\n]{0,40}[.!]\s*$"
)
# Words that show that a denial leaves the answer open. Without them, it rules out one of several answers.
_UNCERTAIN = any_case(
    r"\b(?:certain|sure|clear|known?|reliable|trust\w*|uncertain|unclear|sicher|klar|bekannt|sûr|clair|segur[oa]"
    r"|clar[oa]|sicur[oa]|chiar[oa])\b|(?<!\w)(?:ясно|уверен\w*|известно)|确定|清楚|確か|확실"
)
# "Q: A farmer has 12 cows ..."
_NEXT_QUESTION = lazy_pattern(
    r"\n\s*[*#]{0,3}\s?(?:(?:Next|Another|Second|New) (?:question|problem|exercise|task|one)|Q|Question|Problem"
    r"|Exercise|Human|User|Instruction|Frage|Aufgabe|Pregunta|Problema|Domanda"
    r"|Pergunta|Вопрос|Задача|问题|問題)(?:[*]{0,2}\s?[:：]|\s\d{1,3}[*]{0,2}\s?[.:：])"
)
# "Question: is that right?", "Problem: I forgot to double it.": no other question, but an objection.
_OF_THE_ANSWER = any_case(
    r"\W*(?:(?:wrong|incorrect|no|nope|falsch|nein|faux|non|mal|errado|sbagliato|неверно|нет)(?![^\W\d_])|错|不对|違)|"
    r"\W*(?:(?:is|was|does|did|are|but|oh|well|could|can)\s)?"
    r"(?:that|this|it|my|the (?:answer|result|solution|above|last))\b"
)
_CLOSED = any_case(r"(?:[^\w<]|</?\w+>)*+")  # what closes an answer
_NEAR = 40  # characters
_NOT_THIS = any_case(
    r"(?:(?:\A|\n|\b(?:is|are|was|be|it['’]s|that['’]s)\s)not|n['’]t(?: be)?|\b(?:ist|sind) nicht|n['’]est pas"
    r"|\bno es|\bnão é|\bnon è|\bэто не|不是)[\s:*]*\Z"
)
_GIVES_UP = Gated(
    r"\b(?:i(?:['’]m| am) (?:not able|unable) to|i (?:can(?:not|['’]t)|could(?: not|n['’]t)|do(?: not"
    r"|n['’]t) know how to)"
    r" (?:\w+ )?(?:evaluate|solve|compute|answer|determine|calculate|do|complete)|(?:leave|left)"
    r" (?:it|this) (?:unanswered|open|blank)"
    r"|i give up|no idea how|ich kann (?:das|es|die|diese)[^.]{0,30} nicht (?:lösen|berechnen"
    r"|beantworten)|ich weiß nicht, wie"
    r"|je ne (?:peux|sais) pas (?:résoudre|calculer|répondre)|no (?:puedo|sé cómo|sé) (?:resolver|calcular|responder)"
    r"|não (?:consigo|sei) (?:resolver|calcular|responder)|non (?:riesco a|so) (?:risolvere|calcolare|rispondere))\b"
    r"|не (?:могу|умею|знаю, как) (?:решить|вычислить|ответить|найти)|我(?:无法|不会|不能)(?:解|计算|回答|做)"
    r"|解けません|計算できません|풀 수 없"
)
_RELATES = lazy_pattern("[=<>≤≥≡]")
_COMMAND = lazy_pattern(r"\\(?:(?:begin|end)\s*\{[a-z]+\*?\}|[A-Za-z]+)")
_DIGITS = lazy_pattern(r"\d+")
_TAIL_OF_QUESTION = 200  # characters
_TAIL = 20_000  # characters before the end in which anchors and the last maths are searched


def final_answer(text: str) -> Span | None:
    """Returns the span [start, end) of the final answer, or None if the text gives none."""
    return final_answers(text).span


def final_answers(text: str) -> Extraction:
    """As `find`, for any text: long runs of white space, which would take quadratic time, are passed over."""
    short, cuts = squeezed(text)
    found = find(short)
    if not cuts:
        return found
    span = None if found.span is None else original(found.span, cuts)
    others, joint = (tuple(original(one, cuts) for one in spans) for spans in (found.others, found.joint))
    return replace(found, span=span, others=others, joint=joint)


def find(text: str, *, strict: bool = False, prompt: str | None = None) -> Extraction:
    """Returns the final answer's span, and how it was found.

    Text inside `<think>` never counts, and an unclosed `<think>` means no answer. The answer is the first of these that
    exists: the `<answer>` block (there must be exactly one, because several are several guesses), the last
    `\\boxed{}`, the last `####`, a phrase that announces the answer, the whole text if it is only maths, the last
    maths or number if the end states it as a conclusion. A box inside the answer block is the answer. The text after an
    answer may deny it, take it back or offer another. With `strict`, only the answer block counts. With a `prompt` (""
    if the question is unknown), a value that the last sentence states counts too, and the value with which a last
    sentence behind the answer concludes must agree with it. The text has no long runs of white space: see `squeezed`.
    """
    found = _find(text, strict=strict, prompt=prompt)
    if strict or not prompt or found.span is None or found.source not in ("box", "answer", "hashes", "anchor"):
        return found
    following = _NEXT_QUESTION.search(text, found.span[1])
    end = following.start() if following else ending(text)
    behind = _CLOSED.match(text, found.span[1], end)
    low = behind.end() if behind else found.span[1]
    if low >= end or SO.search(text, low - 1, end) is None:
        return found
    last = stated(text, low, end, prompt)
    if last is None or last.span is None or not begins_with_so(text, low, last.span[0]):
        return found
    return replace(found, others=(*found.others, last.span))  # "The answer is 17. So the farmer has 21 eggs."


def _find(text: str, *, strict: bool, prompt: str | None) -> Extraction:
    """As `find`, without the last sentence behind the answer."""
    start = after_thinking(text)
    if start is None:
        return Extraction(None, "unclosed_think")
    if text.find("nswer>", start) >= 0 or text.find("NSWER>", start) >= 0:
        tags = _first_tags(text, start)
        if tags:
            if [tag[1] for tag in tags] != ["", "/"]:
                return Extraction(None, "several_answers" if len(tags) > 2 else "broken_answer")
            inside = tags[0].end(), tags[1].start()
            if _NOT_THIS.search(text, max(start, tags[0].start() - _NEAR), tags[0].start()):
                return Extraction(None, "negated")
            found = boxed(text, *inside, prompt or "") or Extraction(inside, "answer")
            return found if strict else _unless_taken_back(text, found, tags[1].end(), len(text))
    if strict:
        return Extraction(None, "no_answer_block")
    end = ending(text)
    if end < len(text):
        text = text[:end]  # positions stay valid
    before = _before_next_question(text, start, prompt)
    if before is not None:
        return before
    box = boxed(text, start, end, prompt or "") if text.find("\\", start) >= 0 else None
    if box is not None:
        return box
    if text.find("####", start) >= 0:
        hashes = _HASHES.match(text, text.rfind("####", start))
        if hashes is not None and hashes[1].strip() and not _are_headings(text, start, hashes.end(), end):
            if _NOT_THIS.search(text, max(start, hashes.start() - _NEAR), hashes.start()):
                return Extraction(None, "negated")
            alone = _SENTENCE.match(text, *hashes.span(1))  # "#### 42. It checks out."
            span = alone.span(1) if alone else without_aside(text, hashes.span(1))
            found = Extraction(span, "hashes", _other_hashes(text, start, hashes.start()))
            return _unless_taken_back(text, found, span[1], end)
    start = max(start, end - _TAIL)
    if not text[start:end].strip():  # an empty completion, with which golds are tested before a run
        return Extraction(None, "empty")
    found = _phrased(text, start, end, prompt)
    astray = found.span is not None and is_astray(text, start, found.span, end, prompt)
    return Extraction(None, "unsure") if astray or _refused(text, start, found) else found


def _refused(text: str, start: int, extraction: Extraction) -> bool:
    """Returns whether the writer gives up before a value that no conclusion leads to."""
    if extraction.span is None or extraction.source == "anchor":
        return False
    *_, refusal = None, *_GIVES_UP.finditer(text, start, extraction.span[0])
    return refusal is not None and CONCLUSION.search(text, refusal.end(), extraction.span[0]) is None


def _are_headings(text: str, start: int, last: int, end: int) -> bool:
    """Returns whether each `####` until `last` is a heading of Markdown, and text follows the last one."""
    found = _HASHES.finditer(text, start, last)
    return bool(text[last:end].strip()) and all(_HEADING.fullmatch(hashes[1]) for hashes in found)


def _before_next_question(text: str, start: int, prompt: str | None) -> Extraction | None:
    """Returns the answer before another question that the text goes on with, as base models do, or None."""
    following = _NEXT_QUESTION.search(text, start) if "\n" in text else None
    if following is None:
        return None
    asked = WORD.findall(text, following.end(), following.end() + _TAIL_OF_QUESTION)
    line = text[following.end() : following.end() + _TAIL_OF_QUESTION].partition("\n")[0]
    if _OF_THE_ANSWER.match(line) or CORRECTION.search(line) or retracted(line, 0, len(line)) is not None:
        return None
    repeats = prompt is not None and len(set(asked).intersection(WORD.findall(prompt))) * 2 > len(set(asked))
    if repeats and set(_DIGITS.findall(line)) <= set(_DIGITS.findall(prompt or "")):
        return None  # the question itself, repeated
    found = find(text[: following.start()], prompt=prompt)
    return found if found.span is not None and (prompt or found.source in ("box", "hashes", "anchor")) else None


def _phrased(text: str, start: int, end: int, prompt: str | None) -> Extraction:
    """Returns the announced or finally stated answer. A later conclusion overrides an intermediate "result"."""
    instead_of = replaced(text, start, end)
    if instead_of is not None and not changes_value(instead_of[1], prompt or ""):
        return Extraction(instead_of[0], "anchor")
    put_right = corrected(text, start, end, prompt or "")
    if put_right is not None:
        return Extraction(put_right, "statement")
    listed = closing_assignments(text, start, end)
    if listed is not None:
        return Extraction(listed, "maths")
    found = announced(text, start)
    if prompt is not None and may_contrast(text, start, end) and _in_last_sentence(text, found, end):
        contrasted = stated(text, start, end, prompt, contrasts=True)
        if contrasted is not None and contrasted.span is not None:
            return contrasted
    if found is None or found.span is None or found.span[1] - found.span[0] < 12:
        letter = chosen(text, start, end)
        if letter is not None:
            return _with_letter(text, letter, found)
    if found is None:
        end = before_check(text, start, end, prompt) if prompt else end
        found = unannounced(text, start, end)
        short = found.source == "whole" and len(WORD.findall(_COMMAND.sub(" ", text[start:end]))) < 4
        short = short and not _SAYS.match(text, start, end)
        if prompt is None or short or found.source in ("anchor", "code", "options"):
            return found
        expression = closing_expression(text, start, end) if found.source != "whole" else None
        if expression is not None:
            return Extraction(expression, "maths")
        last = stated(text, start, end, prompt)
        taken_back = found.span is not None and retracted(text, found.span[1], end) is not None
        if last is None and (taken_back or voided_after(text, start, end, found.span, prompt)):
            return Extraction(None, "unsure")
        found = whole_expression(text, last or with_unit(text, end, found), prompt)
        closing = final_expression(text, end, prompt) if found.source != "unsure" else None
        if closing is not None and found.span is not None:  # "... perd une unité : on trouve 3x²"
            after = found.source == "statement" and found.span[1] <= closing[0]
            goes_on = after and not _RELATES.search(text, *closing)
            closing = closing if goes_on else None
        if closing is None or altered(text, (start, end), closing, placed=True, question=prompt):
            return found
        return Extraction(closing, "statement")
    if found.source == "negated" and prompt is not None:
        later = stated(text, start, end, prompt)
        if later is None or later.span is None or _UNCERTAIN.search(text, start, end):
            return found
        stop = STOP.search(text, anchors(text, start)[-1].end, later.span[0])
        return later if stop is not None or begins_with_so(text, start, later.span[0]) else found
    if found.source != "result" or found.span is None:
        return found
    if text[found.span[1] :].strip(" .*$\n"):
        later = unannounced(text, start, end)
        if prompt and later.source == "number":
            last = stated(text, start, end, prompt)
            later = last if last is not None and last.span is not None else later
        if later.span is not None and later.source != "whole" and later.span[0] > found.span[1]:
            offered = any(low <= later.span[0] < high for low, high in found.others)
            if offered and not CONCLUSION.search(text, found.span[1], later.span[0]):
                return replace(later, others=(found.span,))  # "The result is 16. The number is 17."
            return later
    return Extraction(found.span, "anchor", found.others)


def _in_last_sentence(text: str, extraction: Extraction | None, end: int) -> bool:
    return extraction is None or extraction.span is None or STOP.search(text, extraction.span[0], end - 1) is None


def _with_letter(text: str, letter: Span, extraction: Extraction | None) -> Extraction:
    """Returns the option that the closing clauses call right, unless a phrase announces a value that is no option."""
    if extraction is None or extraction.span is None or PRAISE.fullmatch(text, *extraction.span):
        return Extraction(letter, "anchor")
    if letter[0] < extraction.span[1] and extraction.span[0] < letter[1]:
        return Extraction(letter, "anchor", extraction.others)
    announced_letter = len(text[slice(*extraction.span)].strip(" .()*$")) == 1
    return Extraction(letter, "anchor", (*extraction.others, extraction.span)) if announced_letter else extraction


def _first_tags(text: str, start: int) -> list[re.Match[str]]:
    found = []
    for match in _ANSWER.finditer(text, start):
        found.append(match)
        if len(found) == 3:
            break
    return found


def _unless_taken_back(text: str, extraction: Extraction, position: int, end: int) -> Extraction:
    """Returns the answer, or an extraction without a span if the text after it denies it or takes it back."""
    if extraction.span is None or plain_tail(text, position, end):
        return extraction
    if denied_after(text, position, end) or retracted(text, position, end) is not None:
        return Extraction(None, "retracted")
    others = (*extraction.others, *instead(text, position, end))
    return replace(extraction, others=others)


def _other_hashes(text: str, start: int, last: int) -> tuple[Span, ...]:
    before = text.rfind("####", start, last)
    if before < 0:
        return ()
    match = _HASHES.match(text, before)
    between = text[match.end() : last] if match else ""
    return (match.span(1),) if match and not CORRECTION.search(between) else ()
