"""The part of a reply that the prompt already holds: some chat templates open the reasoning, some also close it."""

from __future__ import annotations

import re
from dataclasses import replace

from verifiers.core import Completion, Verdict

_END = re.compile(r"<(/?)(think(?:ing)?)>\Z")
_LONGEST = len("</thinking>")


def prefill_of(prompt: str) -> str:
    """Returns the part of the reply that a rendered prompt holds, for `Completion.prefill`.

    "<think>" if the prompt ends in it (DeepSeek-R1's distilled models), "<think></think>" if it ends in
    "</think>" (Qwen3 without thinking), "" otherwise. The tag may also be called "thinking". White space after it is
    ignored.
    """
    found = _END.search(prompt.rstrip()[-_LONGEST:])
    if found is None:
        return ""
    opened = f"<{found[2]}>"
    return f"{opened}</{found[2]}>" if found[1] else opened


def as_read(completion: Completion) -> Completion:
    """Returns the completion with the tag that the prompt opened put before its text, as in the whole reply.

    Reasoning that the prompt also closed is left out, because it holds nothing that the model wrote.
    """
    if not completion.prefill:
        return completion
    opened = "" if "</" in completion.prefill else completion.prefill
    return replace(completion, text=opened + completion.text, prefill="")


def placed(verdict: Verdict, completion: Completion) -> Verdict:
    """Converts the span of a verdict on `as_read(completion)` to positions in the completion's own text."""
    before = len(as_read(completion).text) - len(completion.text)
    if not before or verdict.span is None:
        return verdict
    start, end = verdict.span
    return replace(verdict, span=(max(0, start - before), max(0, end - before)))
