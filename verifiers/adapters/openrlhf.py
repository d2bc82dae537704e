"""OpenRLHF: a file with `reward_func = openrlhf_reward("math + 0.1*format")`, given as `--reward.remote_url`.

The HTTP form is `python -m verifiers serve`, route /get_reward.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verifiers.adapters.shared import parts, required, reward_of, scored
from verifiers.core import Problem
from verifiers.reward import Reward

# What a decoded sequence ends in, where special tokens were not skipped.
_END = re.compile(
    r"(?:\s*(?:<\|?(?:endoftext|im_end|eot_id|end_of_text|end|eos|pad)\|?>|</s>|<｜end▁of▁sentence｜>))+\s*\Z"
)


def response_of(query: str, prompt: str) -> str:
    """The response within `query` = prompt + response, without the special tokens at its end.

    Raises: ValueError if the query does not begin with the prompt.
    """
    if not query.startswith(prompt):
        raise ValueError(f"the query does not begin with its prompt: {query[:80]!r} and {prompt[:80]!r}")
    return _END.sub("", query[len(prompt) :])


def openrlhf_reward(
    reward: Reward | str,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    unscored: float | None = None,
) -> Callable[..., dict[str, Any]]:
    """OpenRLHF's `reward_func(queries, prompts, labels)`; labels are the golds.

    Returns {"rewards": [...], "scores": rewards scaled to [0, 1] for its dynamic filtering, "extra_logs": means of the
    parts}.

    Args:
        reward: a formula or a ready reward; `options` are those of its verifiers.
        unscored: reward of a completion that could not be checked; None raises, for OpenRLHF can't leave it out.

    Raises: ValueError if the formula can't be used.
    """
    ready = reward_of(reward, options)
    low, high = ready.range

    def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **_: Any) -> dict[str, Any]:
        scores = [
            scored(
                ready,
                Problem(prompt=prompt, id=str(i)),
                label,
                response_of(query, prompt),
            )
            for i, (query, prompt, label) in enumerate(zip(queries, prompts, labels, strict=True))
        ]
        rewards = [required(score, unscored) for score in scores]
        logs = {}
        for name in ready.verifiers:
            values = [found[name] for score in scores if name in (found := parts(score))]
            if values:
                logs[name] = statistics.fmean(values)
        span = high - low or 1.0
        return {
            "rewards": rewards,
            "scores": [min(1.0, max(0.0, (value - low) / span)) for value in rewards],
            "extra_logs": logs,
        }

    return reward_func
