"""Extracts the program from a completion."""

from __future__ import annotations

import os
import re

MAX_CHARS = 1_000_000
_MAX_TEXT = 4 * MAX_CHARS  # after the reasoning, including explanations
_THINK_OPEN, _THINK_CLOSE = "<think>", "</think>"
_MARK = re.compile(r"`{3}|~{3}")
_FENCE = re.compile(r"([ \t>]*)(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*")
_OPENING = re.compile(r"()(`{3,}|~{3,})[ \t]*([a-zA-Z][^\s`]*)")  # if a newline was forgotten before it
_NAME = re.compile(r"[^:,{}.]+")  # of the language, in "python:main.py", "{.python}" or "python,linenos"
_QUOTED = re.compile(r"^[ \t]*>[ \t]?", re.M)
_MOST_FENCES = 10_000  # opening and closing; a text of nothing but fences is the slowest to read
_MOST_INDENT = 3  # of a closing fence relative to its opening one, as in CommonMark
_ANSWER_TAGS = re.compile(r"^[ \t]*<answer>|</answer>[ \t]*$")  # on the line of a fence, if a newline was forgotten


class NoSubmissionError(ValueError):
    """The completion holds no program; the message says why. The verdict is CE."""


def extract(text: str, tags: tuple[str, ...], entry_point: str | None = None) -> tuple[str, tuple[int, int]]:
    """Returns the submission and its span [start, end) in the completion.

    It is the last fenced block after `</think>` whose language fits (`tags`, or none given). With an entry point, it is
    the last block that defines the entry point, so that a usage example after it does no harm. Without a fence it is
    the text after `</think>`, or the content of its `<answer>` block. Time is linear in the length of the text.

    Raises:
        NoSubmissionError: the reasoning never ends, nothing follows it, or too much follows it: a program of more than
            MAX_CHARS, a text of more than four times as many, thousands of fences.
    """
    start = text.rfind(_THINK_CLOSE)
    if start >= 0:
        start += len(_THINK_CLOSE)
    elif _THINK_OPEN in text:
        raise NoSubmissionError("the reasoning never ends, so nothing was submitted")
    else:
        start = 0
    if len(text) - start > _MAX_TEXT:
        raise NoSubmissionError(f"the completion has {len(text) - start:,} characters; at most {_MAX_TEXT:,} are read")
    blocks = [(code, span) for tag, code, span in _blocks(text, start) if tag in tags or not tag]
    if entry_point is not None and len(blocks) > 1:
        defines = re.compile(
            rf"(?:\bdef|\bclass)[ \t]+{re.escape(entry_point)}\b|^{re.escape(entry_point)}\s*[:=]", re.M
        )
        blocks = [block for block in blocks if defines.search(block[0])] or blocks
    if blocks:
        code, span = blocks[-1]
    else:
        answer = _answer(text, start)
        span = answer or (start, len(text))
        code = text[slice(*span)]
    code = code.removeprefix("\ufeff")  # the mark of a file's encoding, which Python skips
    if not code.strip():
        raise NoSubmissionError("the completion holds no code")
    if len(code) > MAX_CHARS:
        raise NoSubmissionError(f"the submission has {len(code):,} characters; at most {MAX_CHARS:,} are read")
    return code, span


def _answer(text: str, start: int) -> tuple[int, int] | None:
    opening = text.rfind("<answer>", start)
    if opening < 0:
        return None
    closing = text.find("</answer>", opening)
    return opening + len("<answer>"), closing if closing >= 0 else len(text)


def _dedented(code: str) -> str:
    """As `textwrap.dedent`, which compiles and keeps a pattern as long as the indentation."""
    if len(code) > MAX_CHARS:  # it is refused
        return code
    lines = [line if line.strip(" \t") else "" for line in code.split("\n")]
    margin = os.path.commonprefix([line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line])  # noqa: RUF071
    return "\n".join(line[len(margin) :] for line in lines)


def _width(margin: str) -> int:
    return len(margin.expandtabs(4))


def _blocks(text: str, start: int) -> list[tuple[str, str, tuple[int, int]]]:
    """Returns (language tag in lower case, code, span) of fenced blocks; an unclosed one ends with answer or text."""
    found = []
    fence, tag, begin, indent, sure, quoted = "", "", 0, 0, True, False
    position, fences = start, 0
    while mark := _MARK.search(text, position):
        position = max(position, text.rfind("\n", position, mark.start()) + 1)
        end = text.find("\n", mark.end())
        end = len(text) if end < 0 else end
        line = text[position : min(end, position + 200)]
        match = _FENCE.fullmatch(_ANSWER_TAGS.sub("", line.rstrip()))
        at_start = match is not None
        if not match and not fence:
            match = _OPENING.fullmatch(text[mark.start() : min(end, mark.start() + 200)].rstrip())
        fences += match is not None
        if fences > _MOST_FENCES:
            raise NoSubmissionError(f"the completion has more than {_MOST_FENCES:,} fences")
        if match and (not fence or (not sure and match[3])):
            name = _NAME.search(match[3].lower())
            fence, tag, begin = match[2], name[0] if name else "", min(end + 1, len(text))
            indent, sure, quoted = _width(match[1]), at_start, ">" in match[1]
        elif (
            match
            and match[2].startswith(fence)
            and not match[3]
            and _width(match[1]) <= indent + _MOST_INDENT  # with more indent it is text of the block, as in a docstring
        ):
            code = _QUOTED.sub("", text[begin:position]) if quoted else text[begin:position]
            found.append((tag, _dedented(code), (begin, position)))
            fence = ""
        position = end + 1
    if fence:
        closing = text.find("</answer>", begin)
        end = closing if closing >= 0 else len(text)
        found.append((tag, _dedented(text[begin:end]), (begin, end)))
    return found
