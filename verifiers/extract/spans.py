"""Positions in a text: the extracted answer, the end of the reasoning, the closing brace."""

from __future__ import annotations

from dataclasses import dataclass, replace

from verifiers.lazy_pattern import any_case

Span = tuple[int, int]

_THINK = any_case(r"<(/?)think(?:ing)?>")
# Tokens that mark the end of the text and may follow an answer.
_END_TOKEN = any_case(
    r"(?:<[|｜][\w▁ /-]{1,40}[|｜]>|</?s>|<(?:eos|bos|pad|eot|eod|im_end|end|end_of_turn|end_of_utterance)>"
    r"|\[(?:EOS|PAD|/?INST|END)\]|</?(?:assistant|response|output)>)$"
)
_ORNAMENTS = " \t\r\n∎□■▪◼⬛✓✔✅☑🎉\ufe0f\u200b"
_MOST_TOKENS = 64
_LONGEST_CUT = 120  # characters


@dataclass(frozen=True, slots=True)
class Extraction:
    """The position of the final answer, and how it was found."""

    span: Span | None
    source: str  # "answer", "box", "hashes", "anchor", "maths", "number", "whole", "statement"; or why there is no span
    others: tuple[Span, ...] = ()  # further final answers, which must agree with this one
    joint: tuple[Span, ...] = ()  # boxes of one sentence that form a list, including the last one
    said: str = ""  # the value in digits, if the span spells it in words
    in_order: bool = False  # whether `joint` are the answers of the parts of a question, (a), (b) and so on


def moved(extraction: Extraction, by: int) -> Extraction:
    """Returns the extraction in a text that has so many characters more before it."""
    if extraction.span is None or not by:
        return extraction
    low, high = extraction.span
    others, joint = (
        tuple((low + by, high + by) for low, high in spans) for spans in (extraction.others, extraction.joint)
    )
    return replace(extraction, span=(low + by, high + by), others=others, joint=joint)


def ending(text: str) -> int:
    """Returns the end of the readable text, without end-of-text tokens, closing ornaments and white space.

    Nor does the beginning of a sentence or box count that was cut off while it repeats the text before it.
    """
    end = _before_repeated(text)
    for _ in range(_MOST_TOKENS):
        if end and text[end - 1] in _ORNAMENTS:
            end = len(text[:end].rstrip(_ORNAMENTS))
        if end > 1 and text[end - 1] == ")" and text[end - 2] in ":;":
            end -= 2  # a smiley
            continue
        if not end or text[end - 1] not in ">]":
            break
        low = max(0, end - 64)
        token = _END_TOKEN.search(text[low:end])
        if token is None:
            break
        end = low + token.start()
    return end


def _before_repeated(text: str) -> int:
    """Returns where a beginning without a value starts that a text is cut off in and that stands before it too."""
    end = len(text)
    for stop in (". ", "} ", "。", "\n") if text[-1:].isalnum() else ():
        begin = text.rfind(stop, max(0, end - _LONGEST_CUT), end) + len(stop)
        cut = text[begin:]
        unfinished = cut.count("{") > cut.count("}") or not any(map(str.isdigit, cut))
        if (
            begin >= len(stop)
            and len(cut) > 2
            and unfinished
            and stop + cut in text[max(0, begin - 3 * _LONGEST_CUT) : begin]
        ):
            return len(text[:begin].rstrip())
    return end


def after_thinking(text: str) -> int | None:
    """Returns where the text after the reasoning begins, or None if a `<think>` is never closed."""
    if text.find("hink") < 0 and text.find("HINK") < 0:
        return 0
    if "<T" not in text and "</T" not in text:  # only the last tag matters, so search from the end
        opened = max(text.rfind("<think>"), text.rfind("<thinking>"))
        closed = max(text.rfind("</think>"), text.rfind("</thinking>"))
        if opened > closed:
            return None
        return text.index(">", closed) + 1 if closed >= 0 else 0
    start, open_ = 0, False
    for tag in _THINK.finditer(text):
        open_ = not tag[1]
        start = tag.end()
    return None if open_ else start


def closing_brace(text: str, position: int, end: int) -> int | None:
    """Returns where the brace that opens at `position` closes before `end`, or None. Escaped braces do not count."""
    depth = 0
    while position < end:
        char = text[position]
        if char == "\\":
            position += 1
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return position
        position += 1
    return None
