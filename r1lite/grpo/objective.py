"""Rewards of groups, advantages of completions, and off-policy corrections, as configured.

Shapes: P prompts, G group, B rows, T completion tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from r1lite.config import RLConfig
from r1lite.grpo.estimators import EstimatorInputs, estimator
from r1lite.rl.advantages import normalized
from r1lite.rl.importance import importance_ratio, importance_weights, off_policy_mask
from r1lite.types import Group, Rollout

Terms = Mapping[tuple[str, ...], float]  # a reward formula multiplied out: product of verifiers -> weight


def rewards_of(groups: Sequence[Group]) -> Tensor:
    """[P, G] float32, NaN = unscored.

    Raises:
        ValueError: a reward that is not finite in float32; the message names its problem.
    """
    rewards = torch.tensor(
        [[math.nan if r.score.reward is None else r.score.reward for r in group.rollouts] for group in groups],
        dtype=torch.float32,
    )
    for group, row in zip(groups, rewards.tolist(), strict=True):
        for sample, (rollout, reward) in enumerate(zip(group.rollouts, row, strict=True)):
            if rollout.score.reward is not None and not math.isfinite(reward):
                raise ValueError(
                    f"problem '{group.problem.id}', completion {sample}: its reward is {rollout.score.reward}"
                )
    return rewards


def completion_advantages(config: Any, rewards: Tensor, groups: Sequence[Group], terms: Terms) -> Tensor:
    """[P, G] rewards (NaN = unscored) -> [P, G] advantages, by --advantage and --normalize-advantages.

    Args:
        terms: of the reward formula; for gdpo.

    Raises:
        ValueError: rewards that the estimator cannot use.
        UserError: your own estimator can't be loaded, or returns another shape than [P, G].
    """
    lengths = torch.tensor([[r.completion.num_sampled for r in group.rollouts] for group in groups])
    names = [name for name in terms if name]
    parts = torch.tensor([[[_part(r, name) for r in group.rollouts] for group in groups] for name in names])
    weights = [terms[name] for name in names]
    values = [group.optimal_value for group in groups if group.optimal_value is not None]
    known = torch.tensor(values, dtype=rewards.dtype) if values and len(values) == len(groups) else None
    advantages = estimator(config.advantage)(config, EstimatorInputs(rewards, lengths, parts, weights, known))
    return normalized(advantages, ~rewards.isnan()) if config.normalize_advantages else advantages


def _part(rollout: Rollout, names: Sequence[str]) -> float:
    """A term of the reward without its weight; NaN if all its verifiers abstain, or the completion is unscored."""
    verdicts = rollout.score.verdicts
    scores = [verdicts[name].score for name in names if name in verdicts]
    spoken = [score for score in scores if score is not None]
    return math.prod(spoken) if spoken else math.nan


def correction(
    config: RLConfig, logprobs: Tensor, old_logprobs: Tensor, engine_logprobs: Tensor, advantages: Tensor, mask: Tensor
) -> tuple[Tensor | None, int]:
    """Weights of the policy loss that correct off-policy samples, without gradient; None = 1 everywhere.

    Args:
        engine_logprobs: [B, T]; NaN if the engine returned none.

    Returns: [B, T] or [B, 1], and the number of tokens whose --importance ratio was outside its bounds.
    """
    weights, num_bounded = None, 0
    if config.importance in ("token", "sequence", "geometric"):
        ratio = importance_ratio(old_logprobs, engine_logprobs, mask, level=config.importance)
        low, high = config.importance_low, config.importance_high
        weights = importance_weights(ratio, mode=config.importance_mode, low=low, high=high)
        num_bounded = int((((ratio < low) | (ratio > high)) & mask).sum())
    if config.off_policy_threshold is not None:
        sampled = torch.where(torch.isnan(engine_logprobs), old_logprobs, engine_logprobs)
        keep = off_policy_mask(logprobs, sampled, advantages, mask, threshold=config.off_policy_threshold)
        weights = keep.to(logprobs) if weights is None else weights * keep
    return weights, num_bounded
