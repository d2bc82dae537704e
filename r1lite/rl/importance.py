"""Importance weights for an engine whose policy differs slightly from the trainer's.

Shapes: log-probabilities and masks [B, T], advantages [B] or [B, T]; mask True = completion token. Values at mask
False are ignored, even NaN. Weights carry no gradient; they multiply the policy loss, but neither its KL term nor its
normaliser.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

_MAX_LOG = 20.0  # e^20 is far above any cap, and cannot overflow


def importance_ratio(
    old_logprobs: Tensor,
    engine_logprobs: Tensor,
    mask: Tensor,
    *,
    level: Literal["token", "sequence", "geometric"] = "token",
) -> Tensor:
    """pi_old / mu: the probability of the sampled tokens under the trainer's policy over that under the engine's.

        D_t = old_t - engine_t;   token: e^D_t;   sequence: e^(sum_t D_t);   geometric: e^(mean_t D_t)

    A product over a sequence shrinks or grows with its length, so most long completions end outside any bounds; the
    geometric mean does not. The logarithm is clamped to +-20 (as in verl).

    Args:
        engine_logprobs: log mu, [B, T]; NaN = the engine returned none for this token, which counts as D = 0.

    Returns: [B, T] for tokens, else [B, 1]; 1 where mask is False.
    """
    with torch.no_grad():
        log_ratio = old_logprobs - engine_logprobs
        log_ratio = torch.where(mask & ~torch.isnan(engine_logprobs), log_ratio, 0.0)
        if level != "token":
            log_ratio = log_ratio.sum(dim=1, keepdim=True)
        if level == "geometric":
            log_ratio = log_ratio / mask.sum(dim=1, keepdim=True).clamp(min=1)
        return log_ratio.clamp(-_MAX_LOG, _MAX_LOG).exp()


def importance_weights(
    ratio: Tensor, *, mode: Literal["truncate", "mask"] = "truncate", low: float = 0.0, high: float = 2.0
) -> Tensor:
    """Bounded weights of the policy loss; the variance of a raw ratio has no bound.

    "truncate" clamps the ratio to [low, high] (truncated importance sampling: arXiv:1802.01561 sec. 4.1, for
    engine mismatch at token level with high = 2); "mask" makes it 0 outside [low, high] and leaves it alone inside
    (IcePop; TRL's sequence mask).

    Args:
        ratio: of `importance_ratio`, [B, T] or [B, 1].
        low, high: 0 <= low <= 1 <= high, so that a perfect match has weight 1.

    Returns: the shape of ratio.

    Raises:
        ValueError: bounds that don't enclose 1.
    """
    if not 0 <= low <= 1 <= high:
        raise ValueError(f"importance bounds must be 0 <= low <= 1 <= high, got {low} and {high}")
    if mode == "truncate":
        return ratio.clamp(low, high)
    return torch.where((ratio >= low) & (ratio <= high), ratio, 0.0)


def off_policy_mask(
    logprobs: Tensor, sampled_logprobs: Tensor, advantages: Tensor, mask: Tensor, *, threshold: float
) -> Tensor:
    """False for a completion with A < 0 that has already become much less likely: it has nothing more to teach.

        keep = A >= 0  or  mean_t(sampled_t - lp_t) <= threshold        (DeepSeek-V3.2, arXiv:2512.02556)

    Args:
        sampled_logprobs: of the policy that sampled: the engine's, or the old policy's if the engine returned none
            (NaN counts as no difference).
        threshold: nats per token.

    Returns: bool, [B, 1] or [B, T] as advantages are [B] or [B, T].
    """
    with torch.no_grad():
        drift = torch.where(mask & ~torch.isnan(sampled_logprobs), sampled_logprobs - logprobs, 0.0)
        mean_drift = drift.sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True).clamp(min=1)
        a = advantages if advantages.ndim == 2 else advantages[:, None]
        return (a >= 0) | (mean_drift <= threshold)


def mismatch(old_logprobs: Tensor, engine_logprobs: Tensor, mask: Tensor) -> dict[str, float]:
    """Differences between the engine's policy and the trainer's, over the tokens with a log-probability from both.

    Returns:
        kl: mean k3 estimate of KL(mu || pi_old) in nats, >= 0; logprob_max: largest |old - engine|;
        weight_min, weight_mean, weight_max: of the raw token ratio pi_old / mu; tokens: number of compared tokens.
        All are 0 (weights 1) if there is no such token.
    """
    with torch.no_grad():
        known = mask & ~torch.isnan(engine_logprobs)
        d = (old_logprobs - engine_logprobs)[known]
        if d.numel() == 0:
            return {"kl": 0.0, "logprob_max": 0.0, **dict.fromkeys(_WEIGHTS, 1.0), "tokens": 0}
        largest = float(d.abs().max())  # NaN if the model's are
        d = d.clamp(-_MAX_LOG, _MAX_LOG)
        ratio = d.exp()
        return {
            "kl": float((ratio - d - 1).mean()),
            "logprob_max": largest,
            "weight_min": float(ratio.min()),
            "weight_mean": float(ratio.mean()),
            "weight_max": float(ratio.max()),
            "tokens": int(d.numel()),
        }


_WEIGHTS = ("weight_min", "weight_mean", "weight_max")
