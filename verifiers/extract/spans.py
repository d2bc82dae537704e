"""Where things stand in a text: the found answer, the end of the reasoning, the closing brace."""

from __future__ import annotations

import re
from dataclasses import dataclass

from verifiers.lazy_pattern import lazy_pattern

Span = tuple[int, int]

_THINK = lazy_pattern(r"<(/?)think(?:ing)?>", re.IGNORECASE)
# An answer is followed by nothing, or by what says that the text is over.
_END_TOKEN = lazy_pattern(
    r"(?:<[|｜][\w▁ /-]{1,40}[|｜]>|</?s>|<(?:eos|bos|pad|eot|eod|im_end|end|end_of_turn|end_of_utterance)>"
    r"|\[(?:EOS|PAD|/?INST|END)\]|</?(?:assistant|response|output)>)$",
    re.IGNORECASE,
)
_ORNAMENTS = " \t\r\n∎□■▪◼⬛✓✔✅☑🎉\ufe0f\u200b"
_MOST_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Extraction:
    """Where the final answer stands, and how it was found."""

    span: Span | None
    source: str  # "answer", "box", "hashes", "anchor", "maths", "number", "whole", "statement"; or why there is none
    others: tuple[Span, ...] = ()  # other final answers that stand beside it, and must agree with it
    joint: tuple[Span, ...] = ()  # boxes of one sentence that make a list together, the last one included
    said: str = ""  # in digits, what the span spells in words


def ending(text: str) -> int:
    """Where the text ends for a reader: without end-of-text tokens, closing ornaments and white space."""
    end = len(text)
    for _ in range(_MOST_TOKENS):
        if end and text[end - 1] in _ORNAMENTS:
            end = len(text[:end].rstrip(_ORNAMENTS))
        if end > 1 and text[end - 1] == ")" and text[end - 2] in ":;":
            end -= 2  # a smile
            continue
        if not end or text[end - 1] not in ">]":
            break
        low = max(0, end - 64)
        token = _END_TOKEN.search(text[low:end])
        if token is None:
            break
        end = low + token.start()
    return end


def after_thinking(text: str) -> int | None:
    """Where the text after the reasoning begins; None if reasoning is opened and never closed."""
    if text.find("hink") < 0 and text.find("HINK") < 0:
        return 0
    if "<T" not in text and "</T" not in text:  # only the last tag matters, and it is found from the end
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
    """Where the brace that opens at `position` is closed before `end`; what a backslash precedes is no brace."""
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
