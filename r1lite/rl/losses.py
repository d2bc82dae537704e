"""Policy losses and KL estimates.

Shapes: log-probabilities and masks [B, T], advantages [B]; mask True = completion token, the end token included.
Losses come per token; `masked_sum` and the caller's token count turn them into the token mean, so that any split into
micro-batches gives the same gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor


def policy_ratio(logprobs: Tensor, old_logprobs: Tensor) -> Tensor:
    """pi(token) / pi_old(token), [B, T]. The log-ratio is clamped to +-20, so that it can't overflow."""
    return (logprobs - old_logprobs).clamp(-20.0, 20.0).exp()


def clipped_surrogate(ratio: Tensor, advantages: Tensor, *, clip_low: float = 0.2, clip_high: float = 0.2) -> Tensor:
    """PPO's clipped surrogate (arXiv:1707.06347 eq. 7), per token, to be minimized.

        pl = -min(s A, clip(s, 1 - clip_low, 1 + clip_high) A)

    Args:
        ratio: s, [B, T].
        advantages: A, [B].
        clip_low, clip_high: distances from 1, >= 0 (DAPO, arXiv:2503.14476, sets clip_high 0.28).

    Returns: [B, T].
    """
    a = advantages[:, None]
    return -torch.minimum(ratio * a, ratio.clamp(1 - clip_low, 1 + clip_high) * a)


def kl_k3(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """Schulman's k3 estimate of KL(policy || reference), per token, >= 0 (arXiv:2402.03300 eq. 4).

        d = ref - lp;  k3 = e^d - d - 1

    d is clamped to +-20 and the result to at most 10, as in verl's `low_var_kl`: one token must not overflow a run.

    Returns: [B, T].
    """
    d = (ref_logprobs - logprobs).clamp(-20.0, 20.0)
    return (d.exp() - d - 1).clamp(max=10.0)


def masked_sum(values: Tensor, mask: Tensor) -> Tensor:
    """Sum of values [B, T] where mask is True; what stands elsewhere never enters, be it NaN."""
    return torch.where(mask, values, 0.0).sum()


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of values [B, T] where mask is True: every token weighs the same (DAPO, arXiv:2503.14476 eq. 8).

    Raises:
        ValueError: mask is False everywhere.
    """
    count = mask.sum()
    if count == 0:
        raise ValueError("masked_mean: the mask is False everywhere")
    return masked_sum(values, mask) / count


def clip_rates(
    ratio: Tensor, advantages: Tensor, mask: Tensor, *, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """How many tokens the clip holds back, ([], []): below with a negative, above with a positive advantage."""
    a = advantages[:, None]
    low = (ratio < 1 - clip_low) & (a < 0) & mask
    high = (ratio > 1 + clip_high) & (a > 0) & mask
    return low.sum(), high.sum()
