"""OpenRLHF: a file with `reward_func = openrlhf_reward("math + 0.1*format")`, given as `--reward.remote_url`.

The HTTP form is `python -m verifiers serve`, route /get_reward.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verifiers.adapters.shared import of_all, required, reward_of, scored
from verifiers.core import Problem, VerifierError
from verifiers.end_tokens import without_end
from verifiers.reward import Reward, Score

_log = logging.getLogger("verifiers")


_SURE = 16  # characters of a truncated prompt that must match
_TRIES = 64


def response_of(query: str, prompt: str) -> str:
    """Returns the response within `query` = prompt + response, up to the token that ends it.

    OpenRLHF truncates a prompt that is too long at its beginning. The query then begins with an end of the prompt; the
    longest end that matches is taken.

    Raises: ValueError if the query begins neither with the prompt nor with an end of it.
    """
    if query.startswith(prompt):
        return without_end(query[len(prompt) :])
    whole = query.lstrip("\ufffd")  # left by a character that was cut in two
    head, start = whole[:_SURE], 0
    for _ in range(_TRIES):
        start = prompt.find(head, start + 1)
        if start < 0 or len(head) < _SURE:
            break
        if whole.startswith(prompt[start:]):
            return without_end(whole[len(prompt) - start :])
    raise ValueError(f"the query does not begin with its prompt: {query[:80]!r} and {prompt[:80]!r}")


def openrlhf_reward(
    reward: Reward | str, *, options: Mapping[str, Mapping[str, Any]] | None = None, unscored: float | None = 0.0
) -> Callable[..., dict[str, Any]]:
    """Returns OpenRLHF's `reward_func(queries, prompts, labels)`; labels are the golds, or tests as JSON text.

    It returns {"rewards": [...], "scores": rewards scaled to [0, 1] for dynamic filtering, "extra_logs": means of the
    parts, and "unscored": the share of rows that could not be checked}. Every call returns all keys, because OpenRLHF
    can't join samples that differ in them.

    Args:
        reward: a formula or a Reward; `options` are those of its verifiers.
        unscored: reward of a completion that could not be checked; the first one is logged. OpenRLHF's executor carries
            only numbers: NaN would spoil the group, and an exception is swallowed (INFO in its log), becomes None and
            ends the run later, somewhere else. 0 is the value in its own example. None logs the error and raises.

    Raises: ValueError if the formula can't be used.
    """
    ready = reward_of(reward, options)
    low, high = ready.range

    def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **_: Any) -> dict[str, Any]:
        scores = [_scored(ready, i, *row) for i, row in enumerate(zip(queries, prompts, labels, strict=True))]
        try:
            rewards = [required(score, unscored) for score in scores]
        except VerifierError as error:
            _log.error("OpenRLHF swallows this error, and the run will end because a reward is missing: %s", error)
            raise
        found = [of_all(ready, score) for score in scores]
        span = high - low or 1.0
        return {
            "rewards": rewards,
            "scores": [min(1.0, max(0.0, (value - low) / span)) for value in rewards],
            "extra_logs": {name: statistics.fmean(one[name] for one in found) for name in found[0]} if found else {},
        }

    return reward_func


def _scored(reward: Reward, index: int, query: str, prompt: str, label: Any) -> Score:
    try:
        response = response_of(query, prompt)
    except ValueError as error:
        return Score(None, {}, str(error), reward.versions)
    return scored(reward, Problem(prompt=prompt, id=str(index)), label, response)
