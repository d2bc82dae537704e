"""Checks completions of a server against the request, since a wrong one would be trained on without a word."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Sequence
from typing import Any

from r1lite.rollout import EngineError, Sampling
from r1lite.rollout.continued import ABORTED
from r1lite.rollout.server import Sampled

_PER_TOKEN = 1000  # bytes: id, text, log-probability, and the names of these
_ABOUT_IT = 1 << 20  # bytes of an answer beside its tokens
_ABOVE_0 = 1e-3  # log-probabilities of certain tokens, by rounding


def token_id(value: object) -> int:
    """Returns an integer of a server's answer. Raises TypeError for anything else, booleans included."""
    if isinstance(value, bool):
        raise TypeError(f"{value} is no token id")
    return operator.index(value)  # type: ignore[arg-type]


def log_probability(value: object) -> float:
    """Returns a number of a server's answer. Raises TypeError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no log-probability")
    return float(value)


def largest_answer(completions: int, prompt: Sequence[int], max_tokens: int) -> int:
    """Returns the number of bytes that a server's answer to a request can have."""
    return _ABOUT_IT + completions * (len(prompt) + max_tokens) * _PER_TOKEN


def check_sampled(
    url: str, sampled: Sequence[Sampled], sampling: Sampling, ends: Collection[int], vocabulary: int, tokenizer: Any
) -> None:
    """Raises EngineError for a completion that the request can't have.

    Args:
        url: address of the server.
        ends: ids that end a text.
        vocabulary: number of ids that the model has.
    """
    for ids, logprobs, reason in sampled:
        if strange := [i for i in ids if not 0 <= i < vocabulary]:
            raise EngineError(f"{url} answered with token {min(strange)}, which the model does not have")
        if wrong := [p for p in logprobs if not (math.isfinite(p) and p <= _ABOVE_0)]:
            raise EngineError(f"{url} answered with {wrong[0]} as a token's log-probability")
        if len(ids) > sampling.max_tokens:
            raise EngineError(f"{url} answered with {len(ids)} tokens instead of at most {sampling.max_tokens}")
        if reason == "length" and len(ids) < sampling.max_tokens:
            raise EngineError(
                f"{url} cut a completion off after {len(ids)} of {sampling.max_tokens} tokens: is its context short?"
            )
        if reason not in ("length", ABORTED) and not _ends(ids, sampling.stop_text, ends, tokenizer):
            raise EngineError(f"{url} says that a completion ended, but nothing in its {len(ids)} tokens ends it")


def _ends(ids: Sequence[int], stop_text: str | None, ends: Collection[int], tokenizer: Any) -> bool:
    if ids and ids[-1] in ends:
        return True
    return bool(stop_text) and stop_text in tokenizer.decode(ids, skip_special_tokens=False)
