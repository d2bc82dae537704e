"""Rewards and penalties for the length of a completion."""

from __future__ import annotations

import math

from verifiers.core import Completion, Problem, Verdict, VerifierError
from verifiers.segments import thinking

UNITS = ("tokens", "chars", "words")


def _length(completion: Completion, unit: str) -> int:
    if unit == "chars":
        return len(completion.text)
    if unit == "words":
        return len(completion.text.split())
    if completion.token_ids or not completion.text:
        return len(completion.token_ids)
    raise VerifierError("the completion carries no token ids to count; use the option unit: chars (or words)")


def _checked_unit(unit: str) -> str:
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(UNITS)}; got {unit!r}")
    return unit


class SoftOverlong:
    """DAPO's soft overlong penalty (arXiv:2503.14476, equation 13), to be subtracted: `"math - overlong"`.

        0                                        up to max_tokens - buffer_tokens
        (length - (max - buffer)) / buffer       inside the buffer
        1                                        beyond max_tokens

    Here score 0 is good and 1 is far too long. Reasons: `within`, `buffer`, `overlong`. It never abstains.

    Args:
        max_tokens: the longest completion wanted, in `unit`s; r1lite sets its --max-completion-tokens.
        buffer_tokens: length of the range over which the penalty grows; None = a fifth of max_tokens, DAPO's ratio.
        unit: tokens, chars or words.

    Raises (when called): VerifierError if the unit is tokens and the completion carries no token ids.
    """

    version = "1"
    kind = "style"

    def __init__(self, *, max_tokens: int = 20480, buffer_tokens: int | None = None, unit: str = "tokens") -> None:
        buffer = max(1, max_tokens // 5) if buffer_tokens is None else buffer_tokens
        if not 0 < buffer <= max_tokens:
            raise ValueError(f"0 < buffer_tokens <= max_tokens is needed, got {buffer} and {max_tokens}")
        self.max_tokens, self.buffer_tokens, self.unit = max_tokens, buffer, _checked_unit(unit)

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        length = _length(completion, self.unit)
        over = length - (self.max_tokens - self.buffer_tokens)
        detail = f"{length} {self.unit} of {self.max_tokens}"
        if over <= 0:
            return Verdict(0.0, "within", detail)
        if over <= self.buffer_tokens:
            return Verdict(over / self.buffer_tokens, "buffer", detail)
        return Verdict(1.0, "overlong", detail)


class CosineLength:
    """Pays short completions, on a cosine: 1 at length 0, 0 at max_tokens and beyond.

        score = (1 + cos(pi * min(length, max) / max)) / 2

    The paper (arXiv:2502.03373, section 3.2) pays right answers between two values in this way, and wrong ones in the
    opposite way: `"math * (0.5 + 0.5*length) - 0.5*(1 - math) * length"`. By itself it pays for an empty completion, so
    always gate it by a right answer. Reasons: `scored`, `too_long`. It never abstains.

    Args:
        max_tokens: length from which nothing is paid, in `unit`s; r1lite sets its --max-completion-tokens.
        unit: tokens, chars or words.

    Raises (when called): VerifierError if the unit is tokens and the completion carries no token ids.
    """

    version = "1"
    kind = "style"
    needs_gate = True

    def __init__(self, *, max_tokens: int = 16384, unit: str = "tokens") -> None:
        if max_tokens < 1:
            raise ValueError(f"max_tokens must be >= 1, got {max_tokens}")
        self.max_tokens, self.unit = max_tokens, _checked_unit(unit)

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        length = _length(completion, self.unit)
        detail = f"{length} {self.unit} of {self.max_tokens}"
        if length >= self.max_tokens:
            return Verdict(0.0, "too_long", detail)
        return Verdict((1 + math.cos(math.pi * length / self.max_tokens)) / 2, "scored", detail)


class MinThinking:
    """1 if the think block holds at least `min_words` different words or numbers, otherwise their number / `min_words`.

    Only different words count, so repeating a word pays nothing. Reasons: `enough`, `little`, `none`. It never
    abstains. Known limit: padding with varied words passes; combine it with `language` and `repetition`.

    Args:
        min_words: number wanted. White space separates words; a Chinese, Japanese or Thai character counts as one.
    """

    version = "1"
    kind = "style"

    def __init__(self, *, min_words: int = 20) -> None:
        if min_words < 1:
            raise ValueError(f"min_words must be >= 1, got {min_words}")
        self.min_words = min_words

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        seen: set[str] = set()
        for word in thinking(completion.text).split():
            seen.update([c for c in word if "\u0e00" <= c <= "\u0e7f" or c >= "\u3000"] or [word])
            if len(seen) >= self.min_words:
                return Verdict(1.0, "enough")
        return Verdict(len(seen) / self.min_words, "little" if seen else "none", f"{len(seen)} of {self.min_words}")
