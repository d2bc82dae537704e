"""R1's format: exactly one <think> block, then exactly one <answer> block."""

from __future__ import annotations

import re

from verifiers.core import Completion, Problem, Verdict

_TAG = re.compile(r"<(/?)(think|answer)>")
_LAYOUT = [("", "think"), ("/", "think"), ("", "answer"), ("/", "answer")]


class ThinkAnswer:
    """1 for `<think>...</think> <answer>...</answer>`, both with content and nothing but white space around them.

    Scores 0, by reason: `no_tags`, `bad_layout` (a tag missing, repeated, nested or out of order), `empty_think`,
    `empty_answer`, `text_outside`. One linear scan that stops at the fifth tag.

    Args:
        prefilled_think: the prompt itself ends in `<think>`, so the completion begins inside the block.
    """

    version = "1"

    def __init__(self, *, prefilled_think: bool = False) -> None:
        self.prefilled_think = prefilled_think

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        text = "<think>" + completion.text if self.prefilled_think else completion.text
        tags: list[re.Match[str]] = []
        for tag in _TAG.finditer(text):
            tags.append(tag)
            if len(tags) > len(_LAYOUT):
                break
        if not tags:
            return Verdict(0.0, "no_tags")
        if [(tag[1], tag[2]) for tag in tags] != _LAYOUT:
            return Verdict(0.0, "bad_layout", " ".join(tag[0] for tag in tags))
        think_open, think_close, answer_open, answer_close = tags
        if _blank(text[think_open.end() : think_close.start()]):
            return Verdict(0.0, "empty_think")
        if _blank(text[answer_open.end() : answer_close.start()]):
            return Verdict(0.0, "empty_answer")
        around = text[: think_open.start()], text[think_close.end() : answer_open.start()], text[answer_close.end() :]
        if any(part.strip() for part in around):
            return Verdict(0.0, "text_outside")
        return Verdict(1.0, "ok")


def _blank(text: str) -> bool:
    """True if nothing in it can be seen: white space, zero-width and control characters only."""
    return not any(char.isprintable() and not char.isspace() for char in text)
