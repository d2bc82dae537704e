"""The parts of a completion that think and that answer, found in linear time."""

from __future__ import annotations

import re

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_ANSWER = re.compile(r"<(/?)answer>", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:think|thinking|answer)>", re.IGNORECASE)


def thinking(text: str) -> str:
    """Returns the chain of thought, the content of the think block, without tags.

    An unclosed block extends to the end, and a block without an opening tag begins at the start (the prompt may have
    opened it). A text without think tags is all thinking, up to its answer block.
    """
    tags = list(_THINK.finditer(text))
    if not tags:
        answer = _ANSWER.search(text)
        return text[: answer.start()] if answer else text
    start = 0 if tags[0][1] else tags[0].end()
    end = tags[-1].start() if tags[-1][1] else len(text)
    return _TAGS.sub(" ", text[start:end])


def answering(text: str) -> str | None:
    """Returns the text at `answering_span`; None if there is none."""
    span = answering_span(text)
    return None if span is None else text[slice(*span)]


def answering_span(text: str) -> tuple[int, int] | None:
    """Returns the span that holds the answer, [start, end): the only answer block, or else all text after the thinking.

    None if the thinking never ends, or if there are several answer blocks: several answers are several guesses.
    """
    tags = list(_THINK.finditer(text))
    if tags and not tags[-1][1]:
        return None
    start = tags[-1].end() if tags else 0
    blocks = list(_ANSWER.finditer(text, start))
    if not blocks:
        return stripped(text, start, len(text))
    if [tag[1] for tag in blocks] != ["", "/"]:
        return None
    return stripped(text, blocks[0].end(), blocks[1].start())


def stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Returns the span without white space at its ends."""
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return start, start + len(part.strip())
