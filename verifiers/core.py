"""The types that all verifiers share.

VerifierError            a check could not be made: the completion is unscored, never wrong
├── GoldError            ... because the problem's own answer or tests can't be used
└── VerifierCrash        ... because of a mistake in a verifier's code
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from verifiers.terminal import visible


class VerifierError(Exception):
    """A check could not be made (bad gold, broken sandbox). It says nothing about the completion."""

    def __str__(self) -> str:
        return visible(super().__str__())  # it may quote a completion


class VerifierCrash(VerifierError):
    """A verifier raised something other than VerifierError: a mistake in its code. The message says where."""


class GoldError(VerifierError):
    """The problem's own answer or tests can't be understood; the message names them."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A question and the gold that a right answer must agree with."""

    prompt: str = ""  # the question, before any template
    answer: str | None = None  # gold, for verifiers that compare answers
    tests: Mapping[str, Any] | None = None  # gold, for verifiers that run code
    language: str | None = None  # wanted language of the reasoning, ISO 639-1; None = the language of the prompt
    id: str = ""  # unique within its data set
    meta: Mapping[str, Any] = field(default_factory=dict)  # the rest of its row

    @property
    def name(self) -> str:
        """The id, or the start of the prompt if there is none: for messages."""
        return self.id or self.prompt[:60]


@dataclass(frozen=True, slots=True)
class Completion:
    """The text that the model wrote after the prompt."""

    text: str
    token_ids: tuple[int, ...] = ()  # [T] sampled ids, the end-of-sequence token included
    logprobs: tuple[float, ...] = ()  # [T] log-probability of each token, at the sampling temperature, in nats
    finish_reason: str = "stop"  # "stop": it ended by itself; "length": it was truncated
    policy_version: int = 0  # version of the weights that wrote it
    prefill: str = ""  # the part of the reply that the prompt holds before `text`: "", "<think>" or "<think></think>"
    # [start, end) of the token_ids that were inserted and not sampled: their log-probabilities are 0.
    inserted: tuple[int, int] = (0, 0)
    # (first token, version) of each stretch, if several versions of the weights wrote it in turn; `policy_version` is
    # then the oldest of them.
    stretches: tuple[tuple[int, int], ...] = ()

    @property
    def num_sampled(self) -> int:
        """Number of tokens that the model sampled."""
        return len(self.token_ids) - (self.inserted[1] - self.inserted[0])


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of a verifier, with its reason."""

    score: float | None  # in [0, 1]; 0 = wrong, 1 = right; None = abstains: there is nothing to judge
    reason: str  # a short fixed word for counting, from the verifier's closed set: "equal", "no_answer", ...
    detail: str = ""  # for a human reading one sample
    answer: str | None = None  # the final answer that was judged, if there is one
    span: tuple[int, int] | None = None  # position of the answer in the completion's text, [start, end)
    gold_type: str = ""  # the type that the gold was read as: "integer", "interval", ...
    rung: str = ""  # the rung of the equality ladder that decided
    flags: tuple[str, ...] = ()  # signs of cheating or trouble, for charts; they don't change the score

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not isinstance(self.detail, str):
            raise TypeError(f"reason and detail must be text, got {self.reason!r} and {self.detail!r}")
        if not (self.reason.isprintable() and self.detail.isprintable()):
            object.__setattr__(self, "reason", visible(self.reason))
            object.__setattr__(self, "detail", visible(self.detail))
        if self.score is not None:
            if isinstance(self.score, str | bytes):  # float() would read it
                raise TypeError(f"score must be a number or None, got {self.score!r}")
            object.__setattr__(self, "score", float(self.score))  # also from NumPy and torch scalars
            if not 0.0 <= self.score <= 1.0:  # also refuses NaN
                raise ValueError(f"score must be in [0, 1], got {self.score} ({self.reason})")

    def as_json(self) -> dict[str, Any]:
        """Returns what run directories and the reward server say of a verdict."""
        return {
            "score": self.score,
            "reason": self.reason,
            "detail": self.detail,
            "answer": self.answer,
            "span": None if self.span is None else list(self.span),
            "flags": list(self.flags),
        }


class Verifier(Protocol):
    """For a bad completion return score 0. For a bad problem or a broken sandbox raise VerifierError.

    A verifier may define these optional members:

        version: str            must change whenever verdicts may change
        prepare()               loads slow resources before the first deadline begins
        verify_many(pairs)      judges a list of (problem, completion) at once; returns one result for each, in order:
                                what a call would return, or the exception it would raise
        reads_prefill: bool     True: the verifier reads `Completion.prefill` itself; otherwise the text passed to it
                                begins with the "<think>" that the prompt ends in
        isolated: bool          True: it judges in its own processes under its own limits and never hangs, so it needs
                                no worker process with a deadline; several threads may call it at the same time
    """

    def __call__(self, problem: Problem, completion: Completion, /) -> Verdict: ...


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Returns "did you mean 'NAME'?" with the known name that is close to `name`, or `otherwise` if none is."""
    import difflib  # here, because each worker process imports this module

    near = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean '{near[0]}'?" if near else otherwise


def raised_in(error: BaseException, own: str = "") -> str:
    """Returns " in FILE, line N" for the place where an exception was raised; "" if no line of a file is known.

    Args:
        own: the file to blame: its deepest frame is named, rather than the frame of a library that it called.
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


def import_failure(error: BaseException, target: str = "") -> str:
    """Describes the exception of importing a user's module, which `target` names as module:attr."""
    ends = isinstance(error, SystemExit)
    hint = '; it must not end the program when it is imported: write `if __name__ == "__main__":` before its main part'
    where = ""
    module_name, _, attribute = target.partition(":")
    if module_name.endswith(".py"):
        dotted = module_name.removesuffix(".py").replace("/", ".")
        where = f"; write the module without its suffix: {dotted}:{attribute}"
    elif target and isinstance(error, ModuleNotFoundError) and error.name == module_name and "." not in module_name:
        where = f"; run the command in the folder that contains {module_name}.py"
    return f"{type(error).__name__}: {error}{raised_in(error)}{hint * ends}{where}"
