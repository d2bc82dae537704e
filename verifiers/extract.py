"""The final answer's place in a completion."""

from __future__ import annotations

import re

_THINK_OPEN, _THINK_CLOSE = "<think>", "</think>"
_ANSWER = re.compile(r"<(/?)answer>")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_HASHES = re.compile(r"####[ \t]*([^\n]*)")


def final_answer(text: str) -> tuple[int, int] | None:
    """The span [start, end) of the final answer, or None where the text gives none.

    What stands in `<think>` never counts, and an unclosed `<think>` means no answer. Then, in this order: the
    `<answer>` block (there must be exactly one: several are several guesses), the last `\\boxed{}`, the last `####`.
    A box inside the answer block is the answer. Linear in the length of the text.
    """
    start = text.rfind(_THINK_CLOSE)
    if start >= 0:
        start += len(_THINK_CLOSE)
    elif _THINK_OPEN in text:
        return None
    else:
        start = 0
    if _THINK_OPEN in text[start:]:
        return None
    tags = list(_ANSWER.finditer(text, start))
    if tags:
        if [tag[1] for tag in tags] != ["", "/"]:
            return None
        inside = tags[0].end(), tags[1].start()
        return _last_box(text, *inside) or inside
    box = _last_box(text, start, len(text))
    if box:
        return box
    *_, hashes = (None, *_HASHES.finditer(text, start))
    return hashes.span(1) if hashes else None


def _last_box(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The content of the last box in text[start:end] whose braces close."""
    *_, last = (None, *_BOX.finditer(text, start, end))
    if last is None:
        return None
    depth = 1
    for position in range(last.end(), end):
        char = text[position]
        if char == "\\":
            continue
        if char in "{}" and text[position - 1] != "\\":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return last.end(), position
    return None
