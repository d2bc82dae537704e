"""What the prompt already wrote of a reply: some chat templates open the reasoning themselves, some close it too."""

from __future__ import annotations

import re
from dataclasses import replace

from verifiers.core import Completion, Verdict

_END = re.compile(r"<(/?)(think(?:ing)?)>\Z")
_LONGEST = len("</thinking>")


def prefill_of(prompt: str) -> str:
    """What a rendered prompt wrote of the reply, for `Completion.prefill`.

    "<think>" where the prompt ends in it (DeepSeek-R1's distilled models), "<think></think>" where it ends in
    "</think>" (Qwen3 without thinking), "" otherwise; "thinking" is a name of the tag too. White space after it does
    not count.
    """
    found = _END.search(prompt.rstrip()[-_LONGEST:])
    if found is None:
        return ""
    opened = f"<{found[2]}>"
    return f"{opened}</{found[2]}>" if found[1] else opened


def as_read(completion: Completion) -> Completion:
    """The completion with the tag that the prompt opened before its text, as a reader of the whole reply sees it.

    Reasoning that the prompt has closed too is left out: nothing of what the model wrote stands in it.
    """
    if not completion.prefill:
        return completion
    opened = "" if "</" in completion.prefill else completion.prefill
    return replace(completion, text=opened + completion.text, prefill="")


def placed(verdict: Verdict, completion: Completion) -> Verdict:
    """A verdict on `as_read(completion)`, its span counted in the completion's own text."""
    before = len(as_read(completion).text) - len(completion.text)
    if not before or verdict.span is None:
        return verdict
    start, end = verdict.span
    return replace(verdict, span=(max(0, start - before), max(0, end - before)))
