"""Advantages from a critic (generalized advantage estimation), and the critic's loss.

Shapes: rewards, values and masks [B, T]; mask True = a token that the policy chose. A token in between that the policy
did not choose (an observation) is skipped: it is not a step of the episode. Values at mask False are ignored, even NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

_ROUNDING = 1e-5  # relative: float32 returns of 16,384 tokens with equal rewards differ by 1e-6 of their size


def token_rewards(rewards: Tensor, mask: Tensor, costs: Tensor) -> Tensor:
    """Per-token rewards: the completion's reward at its last token, less a cost at every token.

        rw_t = -cost_t + 1[t is the last] r        (arXiv:2203.02155 eq. 2: cost = kl_coef (old_t - ref_t), that is k1)

    Args:
        rewards: r, [B].
        mask: [B, T]; a row without any token gets no reward.
        costs: [B, T], in units of the reward.

    Returns: [B, T], 0 at mask False.
    """
    positions = torch.arange(mask.shape[1], device=mask.device)
    last = torch.where(mask, positions, -1).amax(dim=1, keepdim=True)  # [B, 1]
    return torch.where(positions == last, rewards[:, None], 0.0) - torch.where(mask, costs, 0.0)


def gae(
    rewards: Tensor, values: Tensor, mask: Tensor, *, gamma: float = 1.0, gae_lambda: float | Tensor = 1.0
) -> tuple[Tensor, Tensor]:
    """Generalized advantage estimation (arXiv:1506.02438 eq. 16), and the returns that the critic learns to predict.

        delta_t = rw_t + gamma V_{t+1} - V_t;   A_t = delta_t + gamma lambda A_{t+1};   R_t = A_t + V_t

    After the last token V and A are 0, also for a completion that was cut off: its reward is already final.

    Args:
        rewards: rw, [B, T]: those of `token_rewards`.
        values: V, [B, T], the critic's estimate before the token is chosen.
        gamma: discount of one token, in [0, 1].
        gae_lambda: 1 = the return less the value (no bias), 0 = one step ahead (least variance); one number, or one per
            completion, [B] (`length_adaptive_lambda`).

    Returns: advantages and returns, [B, T] each, 0 at mask False.
    """
    advantages = torch.zeros_like(values)
    next_value, next_advantage = torch.zeros_like(values[:, 0]), torch.zeros_like(values[:, 0])
    for t in reversed(range(values.shape[1])):
        chosen, value = mask[:, t], values[:, t]
        delta = rewards[:, t] + gamma * next_value - value
        advantage = delta + gamma * gae_lambda * next_advantage
        advantages[:, t] = torch.where(chosen, advantage, 0.0)
        next_value = torch.where(chosen, value, next_value)
        next_advantage = torch.where(chosen, advantage, next_advantage)
    return advantages, torch.where(mask, advantages + values, 0.0)


def length_adaptive_lambda(mask: Tensor, *, alpha: float = 0.05) -> Tensor:
    """VAPO's lambda of a completion of l tokens, for the policy's advantages (arXiv:2504.05118).

        lambda = 1 - 1 / (alpha l)

    The weights lambda^k of the temporal differences then sum to alpha l: a long completion looks further ahead. A
    completion shorter than 1 / alpha tokens has lambda 0.

    Args:
        mask: [B, T], True = a token of the completion.
        alpha: > 0; 0.05 in the paper.

    Returns: [B], in [0, 1).
    """
    lengths = mask.sum(dim=1).clamp(min=1).double()
    return (1 - 1 / (alpha * lengths)).clamp(min=0.0)


def whiten(values: Tensor, mask: Tensor, *, eps: float = 1e-8) -> Tensor:
    """Scales values to mean 0 and variance 1 over the tokens of the batch (unbiased, like verl's `masked_whiten`).

        (x - mean) / sqrt(var + eps)

    Returns: [B, T], 0 at mask False; exactly 0 everywhere (by a test, not by arithmetic) if all values are equal or
        there are fewer than two.
    """
    chosen = values[mask]
    if chosen.numel() < 2 or bool(chosen.max() == chosen.min()):
        return torch.zeros_like(values)
    variance, mean = torch.var_mean(chosen)
    return torch.where(mask, (values - mean) * torch.rsqrt(variance + eps), 0.0)


def value_loss(
    values: Tensor, old_values: Tensor, returns: Tensor, *, clip: float | None = 0.5, huber: float | None = None
) -> Tensor:
    """The critic's clipped error, per token, to be minimized.

        max(f(V - R), f(clip(V, V_old - c, V_old + c) - R));   f(x) = x^2 / 2

    The larger of the two: a value that moved further than c has no gradient, unless it moved away from R.

    Args:
        clip: c in units of the reward (0.5 in verl and OpenRLHF, 0.2 in slime and SkyRL); None = no clip.
        huber: delta > 0 makes f(x) = delta (|x| - delta / 2) where |x| > delta (Huber 1964): the gradient of an outlier
            is bounded (ReaLHF and AReaL: 10); None = squared error everywhere.

    Returns: [B, T].
    """
    error = _error(values - returns, huber)
    if clip is not None:
        held = torch.minimum(torch.maximum(values, old_values - clip), old_values + clip)
        error = torch.maximum(error, _error(held - returns, huber))
    return error


def _error(x: Tensor, huber: float | None) -> Tensor:
    if huber is None:
        return 0.5 * x.square()
    within = x.clamp(-huber, huber)
    return within * (x - 0.5 * within)


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor) -> float | None:
    """1 - Var(R - V) / Var(R) over the tokens: 1 = the critic predicts the returns, 0 = no better than their mean.

    Returns: None if a value is not finite, or if the returns do not vary or vary only by rounding (R = A + V of equal
        rewards are not quite equal, and the quotient would be -1e13).
    """
    wanted, known = returns[mask], values[mask]
    if wanted.numel() < 2:
        return None
    size = max(float(wanted.abs().max()), float(known.abs().max()))
    if not float(wanted.max() - wanted.min()) > _ROUNDING * size:  # false of NaN too
        return None
    return float(1 - (wanted - known).var() / wanted.var())


def adapted_kl_coef(coef: float, kl: float, *, target: float, num_samples: int, horizon: float = 10_000.0) -> float:
    """The KL coefficient after a batch, adapted so that KL(policy || reference) approaches `target`.

        coef (1 + clip(kl / target - 1, -0.2, 0.2) n / horizon)        (arXiv:1909.08593 sec. 2.2)

    Args:
        kl: measured, in nats; per completion or per token, as `target` is.
        num_samples: n, completions of the batch.
        horizon: completions over which the coefficient may change by 20 %.
    """
    error = min(max(kl / target - 1.0, -0.2), 0.2)
    return coef * (1.0 + error * num_samples / horizon)
