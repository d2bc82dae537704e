"""Which formula the configuration asks for: the only place that turns names into functions of `rl/`.

Shapes: P prompts, G group, B rows, T completion tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from r1lite.config import RLConfig
from r1lite.rl import advantages, losses
from r1lite.rl.importance import importance_ratio, importance_weights, off_policy_mask
from r1lite.types import Group, Rollout

Terms = Mapping[tuple[str, ...], float]  # a reward formula multiplied out: product of verifiers -> weight


def rewards_of(groups: Sequence[Group]) -> Tensor:
    """[P, G] float32, NaN = unscored.

    Raises:
        ValueError: a reward that is no finite number in float32, by the name of its problem.
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
    """[P, G] rewards (NaN = unscored) -> [P, G] advantages, by --advantage.

    Args:
        terms: of the reward formula; for gdpo.

    Raises:
        ValueError: rewards that the estimator can't take.
    """
    ddof, eps = config.advantage_ddof, config.advantage_eps
    match config.advantage:
        case "grpo":
            return advantages.group_relative(rewards, ddof=ddof, eps=eps)
        case "dr_grpo" | "reinforce_pp_baseline":
            return advantages.group_relative(rewards, scale="none")
        case "batch_scaled":
            return advantages.batch_scaled(rewards, ddof=ddof, eps=eps)
        case "rloo":
            return advantages.leave_one_out(rewards)
        case "reinforce":
            return advantages.reinforce(rewards)
        case "opo":
            lengths = [[len(r.completion.token_ids) for r in group.rollouts] for group in groups]
            return advantages.optimal_baseline(rewards, torch.tensor(lengths))
        case "maxrl":
            return advantages.maxrl(rewards, eps=eps)
        case "gdpo":
            parts = torch.tensor(
                [[[_part(r, names) for r in group.rollouts] for group in groups] for names in terms if names]
            )
            weights = [weight for names, weight in terms.items() if names]
            return advantages.decoupled(parts, weights, rewards, ddof=ddof, eps=eps)
    raise AssertionError(config.advantage)


def _part(rollout: Rollout, names: Sequence[str]) -> float:
    """A term of the reward without its weight; NaN if all its verifiers abstain, or the completion is unscored."""
    verdicts = rollout.score.verdicts
    scores = [verdicts[name].score for name in names if name in verdicts]
    spoken = [score for score in scores if score is not None]
    return math.prod(spoken) if spoken else math.nan


def policy_loss(
    config: RLConfig, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The policy loss per token and the ratio it is made of, [B, T] each, by --loss and --ratio-level.

    Args:
        advantages: [B] or [B, T].
    """
    if config.ratio_level == "sequence":
        ratio = losses.sequence_ratio(logprobs, old_logprobs, mask)
    else:
        ratio = losses.policy_ratio(logprobs, old_logprobs)
    clip_low, clip_high = config.clip_low, config.clip_high
    match config.loss:
        case "clip":
            loss = losses.clipped_surrogate(
                ratio,
                advantages,
                clip_low=clip_low,
                clip_high=clip_high,
                clip_dual=config.clip_dual,
                clip_delta=config.clip_delta,
            )
        case "cispo":
            loss = losses.cispo(ratio, logprobs, advantages, cap=config.cispo_cap)
        case "sapo":
            taus = {"tau_positive": config.sapo_tau_positive, "tau_negative": config.sapo_tau_negative}
            loss = losses.sapo(ratio, advantages, **taus)
        case "gmpo":
            loss = losses.gmpo(logprobs, old_logprobs, advantages, mask, clip_low=clip_low, clip_high=clip_high)
        case "reinforce":
            loss = losses.reinforce(logprobs, advantages)
    return loss, ratio


def clip_bounds(config: RLConfig) -> tuple[float, float]:
    """Ratios outside which --loss holds a token back; infinite where it never does."""
    match config.loss:
        case "clip":
            return 1 - config.clip_low, 1 + config.clip_high
        case "gmpo":
            return math.exp(-config.clip_low), math.exp(config.clip_high)
        case "cispo":
            return -math.inf, config.cispo_cap
    return -math.inf, math.inf


def correction(
    config: RLConfig, logprobs: Tensor, old_logprobs: Tensor, engine_logprobs: Tensor, advantages: Tensor, mask: Tensor
) -> tuple[Tensor | None, int]:
    """Weights of the policy loss, without gradient, for what is not on policy; None = 1 everywhere.

    Args:
        engine_logprobs: [B, T]; NaN where the engine gave none.

    Returns: [B, T] or [B, 1]; and for how many tokens --importance found a ratio outside its bounds.
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
