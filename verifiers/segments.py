"""Where a completion thinks and where it answers, in linear passes."""

from __future__ import annotations

import re

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_ANSWER = re.compile(r"<(/?)answer>", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:think|thinking|answer)>", re.IGNORECASE)


def thinking(text: str) -> str:
    """The chain of thought, tags removed: what stands in the think block.

    An unclosed block goes to the end, a block that only closes begins at the start (the prompt may have opened it),
    and a text without think tags is all thinking, up to its answer block.
    """
    tags = list(_THINK.finditer(text))
    if not tags:
        answer = _ANSWER.search(text)
        return text[: answer.start()] if answer else text
    start = 0 if tags[0][1] else tags[0].end()
    end = tags[-1].start() if tags[-1][1] else len(text)
    return _TAGS.sub(" ", text[start:end])


def answering(text: str) -> str | None:
    """What is offered as the answer: the one answer block, or else all that follows the thinking.

    None if the thinking never ends, or there are several answer blocks: several answers are several guesses.
    """
    tags = list(_THINK.finditer(text))
    if tags:
        if not tags[-1][1]:
            return None
        text = text[tags[-1].end() :]
    blocks = list(_ANSWER.finditer(text))
    if not blocks:
        return text.strip()
    if [tag[1] for tag in blocks] != ["", "/"]:
        return None
    return text[blocks[0].end() : blocks[1].start()].strip()
