"""Completions that are sampled in parts, each continuing the one before: after new weights, or after a phrase."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from r1lite.rl.sampling import completion_seed
from r1lite.rollout import Sampling
from verifiers import Completion

ABORTED = "abort"  # finish reason of a part that new weights interrupted


def seed_after(seed: int, tokens: int) -> int:
    """The seed of a part after so many tokens: another stream, because the first one's numbers are used up."""
    return seed if tokens == 0 else completion_seed(seed, "after new weights", tokens, "", 0)


def rest(sampling: Sampling, tokens: int) -> Sampling:
    """The same sampling settings with this many tokens fewer."""
    return dataclasses.replace(sampling, max_tokens=sampling.max_tokens - tokens)


def stretches(completion: Completion) -> tuple[tuple[int, int], ...]:
    """(first token, version) of each stretch of one version; a completion of one version has one stretch."""
    return completion.stretches or ((0, completion.policy_version),)


def joined(
    before: Completion, after: Completion, stop_text: str | None, tokenizer: Any, phrase: tuple[int, ...] = ()
) -> Completion:
    """Joins two parts into one completion, with the ids of `phrase` between them at log-probability 0."""
    ids, reason = (*before.token_ids, *phrase), after.finish_reason
    kept = len(after.token_ids)
    if stop_text is not None and (end := _stop_across(ids, after.token_ids, stop_text, tokenizer)) is not None:
        kept, reason = end, "stop"
    start = len(before.token_ids)
    later = [(len(ids) + first, version) for first, version in stretches(after) if first < kept]
    if later and later[0][1] == stretches(before)[-1][1]:
        del later[0]
    parts = (*stretches(before), *later)
    return Completion(
        text=tokenizer.decode((*ids, *after.token_ids[:kept]), skip_special_tokens=True),
        token_ids=(*ids, *after.token_ids[:kept]),
        logprobs=(*before.logprobs, *(0.0 for _ in phrase), *after.logprobs[:kept]),
        finish_reason=reason,
        policy_version=min(version for _, version in parts),
        inserted=(start, start + len(phrase)) if phrase else before.inserted,
        stretches=parts if len(parts) > 1 else (),
    )


def _stop_across(before: Sequence[int], after: Sequence[int], stop_text: str, tokenizer: Any) -> int | None:
    """Number of tokens of `after` that complete a stop text begun in `before`; None if there is none."""
    window = len(stop_text.encode()) + 4  # a token has at least a byte, and the first may hold part of a character
    tail = list(before[-window:])
    for count in range(1, min(window, len(after)) + 1):
        if stop_text in tokenizer.decode([*tail, *after[:count]], skip_special_tokens=True):
            return None if stop_text in tokenizer.decode(tail, skip_special_tokens=True) else count
    return None
