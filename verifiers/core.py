"""The types every verifier shares.

VerifierError            a check that could not be made: the completion is unscored, never wrong
├── GoldError            ... because the problem's own answer or tests can't be used
└── VerifierCrash        ... because of a mistake in a verifier's code
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


def printable(text: str) -> str:
    """The text without what a terminal, a log or a file in UTF-8 can't take: control characters but tab and line end,
    invisible ones and lone surrogates become escapes."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text
    )


class VerifierError(Exception):
    """A check could not be made (bad gold, broken sandbox). It says nothing about the completion."""

    def __str__(self) -> str:
        return printable(super().__str__())  # it may quote a completion


class VerifierCrash(VerifierError):
    """A verifier raised something else than VerifierError: a mistake in its code, which the message places."""


class GoldError(VerifierError):
    """The problem's own answer or tests can't be understood; the message names them."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is asked, and what a right answer must agree with."""

    prompt: str = ""  # the question, before any template
    answer: str | None = None  # gold, for verifiers that compare answers
    tests: Mapping[str, Any] | None = None  # gold, for verifiers that run code
    language: str | None = None  # wanted language of the reasoning, ISO 639-1; None = the prompt's own
    id: str = ""  # unique within its data set
    meta: Mapping[str, Any] = field(default_factory=dict)  # the rest of its row


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model wrote after the prompt."""

    text: str
    token_ids: tuple[int, ...] = ()  # [T] sampled ids, the end-of-sequence token included
    logprobs: tuple[float, ...] = ()  # [T] log-probability of each, at the sampling temperature, in nats
    finish_reason: str = "stop"  # "stop": it ended by itself; "length": it was cut
    policy_version: int = 0  # which weights wrote it
    prefill: str = ""  # what the prompt wrote of the reply before `text`: "", "<think>" or "<think></think>"
    # [start, end) of the token_ids that were put in, not sampled: their log-probabilities are 0.
    inserted: tuple[int, int] = (0, 0)
    # (first token, version) of each stretch, where several versions wrote it one after the other; `policy_version` is
    # then the oldest of them.
    stretches: tuple[tuple[int, int], ...] = ()

    @property
    def num_sampled(self) -> int:
        """How many of its tokens the model chose itself."""
        return len(self.token_ids) - (self.inserted[1] - self.inserted[0])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier decided, and why."""

    score: float | None  # in [0, 1]; 0 = wrong, 1 = right; None = abstains: nothing here to judge
    reason: str  # short fixed word for counting, out of the verifier's closed set: "equal", "no_answer", ...
    detail: str = ""  # for a human reading one sample
    answer: str | None = None  # the final answer that was judged, where there is one
    span: tuple[int, int] | None = None  # where it stands in the completion's text, [start, end)
    gold_type: str = ""  # what the gold was read as: "integer", "interval", ...
    rung: str = ""  # which rung of the equality ladder decided
    flags: tuple[str, ...] = ()  # signs of cheating or trouble, to be charted beside the verdict

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not isinstance(self.detail, str):
            raise TypeError(f"reason and detail must be text, got {self.reason!r} and {self.detail!r}")
        if not (self.reason.isprintable() and self.detail.isprintable()):
            object.__setattr__(self, "reason", printable(self.reason))
            object.__setattr__(self, "detail", printable(self.detail))
        if self.score is not None:
            object.__setattr__(self, "score", float(self.score))  # of NumPy and torch, too
            if not 0.0 <= self.score <= 1.0:  # refuses NaN too
                raise ValueError(f"score must be in [0, 1], got {self.score} ({self.reason})")


class Verifier(Protocol):
    """Bad completion: return score 0. Bad problem or broken sandbox: raise VerifierError.

    A verifier may carry more, all of it optional:

        version: str            changes whenever verdicts may
        prepare()               loads what takes long, before the first deadline runs
        verify_many(pairs)      judges a list of (problem, completion) at once; returns as many results in order, each
                                what a call would return or, in its place, the exception it would raise
        reads_prefill: bool     True: looks at `Completion.prefill` itself; otherwise the text it is given begins
                                with a "<think>" that the prompt ends in
        isolated: bool          True: judges in processes of its own, under limits of its own, and never hangs, so that
                                no worker process with a deadline is needed around it
    """

    def __call__(self, problem: Problem, completion: Completion, /) -> Verdict: ...


def raised_in(error: BaseException, own: str = "") -> str:
    """ " in FILE, line N" of where an exception began, for a message; "" where no line of a file is known.

    Args:
        own: the file to blame: the deepest line in it, rather than that of a library it called.
    """
    caught, *called = traceback.extract_tb(error.__traceback__)
    frames = [
        at
        for at in called
        if not at.filename.startswith("<") and at.filename not in (caught.filename, importlib.__file__)
    ]
    if not frames:
        return ""
    blamed = next((at for at in reversed(frames) if at.filename == own), frames[-1])
    return f" in {blamed.filename}, line {blamed.lineno}"
