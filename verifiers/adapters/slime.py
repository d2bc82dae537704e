"""slime: `--custom-rm-path verifiers.adapters.slime.rm --custom-config-path rewards.yaml`, also with `--group-rm`.

rewards.yaml holds `verifiers_reward: math + 0.1*format` and, as needed, `verifiers_options` and `verifiers_unscored`.
To use another machine, run `python -m verifiers serve` there, and slime with
`--rm-type remote_rm --rm-url http://HOST:8770/slime --reward-key reward`.
"""

from __future__ import annotations

import asyncio
import statistics
from typing import Any

from verifiers.adapters.shared import of_all, problem_of, required, reward_of, said, say_once, scored_many, why
from verifiers.core import Problem
from verifiers.reward import Reward, Score


async def rm(args: Any, sample: Any, **_: Any) -> float | list[float]:
    """slime's `rm(args, sample)`: returns the reward, or the list of rewards for a list of samples.

    `sample.metadata["verifiers"]` gets each verifier's score. A sample that can't be scored is left out of the loss
    (`remove_sample`). slime still counts its reward in the group's mean, so in a list it gets the mean of the others,
    which does not change that mean. A single sample gets `verifiers_unscored`.

    Raises: VerifierError for a single sample that can't be scored, without `verifiers_unscored`; ValueError if the
        formula can't be used.
    """
    ready = reward_of(getattr(args, "verifiers_reward", "math + 0.1*format"), getattr(args, "verifiers_options", None))
    many = isinstance(sample, list)
    samples = sample if many else [sample]
    scores = await asyncio.to_thread(scored_many, ready, [_row(one) for one in samples])
    for one, score in zip(samples, scores, strict=True):
        _mark(ready, one, score)
    if not many:
        return required(scores[0], getattr(args, "verifiers_unscored", None))
    known = [score.reward for score in scores if score.reward is not None]
    mean = statistics.fmean(known) if known else 0.0
    return [mean if score.reward is None else score.reward for score in scores]


def _row(sample: Any) -> tuple[Problem, Any, str, Any]:
    meta = sample.metadata if isinstance(sample.metadata, dict) else {}
    problem = problem_of(said(sample.prompt, "user"), meta, meta.get("id", sample.index))
    return problem, sample.label, sample.response, sample.prompt


def _mark(reward: Reward, sample: Any, score: Score) -> None:
    meta = sample.metadata if isinstance(sample.metadata, dict) else {}
    sample.metadata = {**meta, "verifiers": of_all(reward, score)}
    if score.reward is None:
        sample.remove_sample = True
        say_once("a sample could not be scored and is left out of the loss, like all later ones: %s", why(score))
