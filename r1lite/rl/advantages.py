"""Advantages: one number per completion, spread over its tokens by the loss."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor


def group_relative(
    rewards: Tensor, *, scale: Literal["std", "none"] = "std", ddof: int = 1, eps: float = 1e-4
) -> Tensor:
    """GRPO: how much better each completion did than its siblings.

        A[p, g] = (r[p, g] - mean_g r[p]) / (std_g r[p] + eps)

    Args:
        rewards: [P, G], G >= 2; NaN = unscored, left out of mean and std.
        scale: "std" (arXiv:2402.03300 sec. 4.1.2) or "none" (Dr. GRPO, arXiv:2503.20783: r - mean).
        ddof: 1 = sample, 0 = population standard deviation.
        eps: added to the std, in reward units.

    Returns:
        [P, G], zero mean per row over scored entries; unscored entries 0; a row whose scored rewards are all equal, or
        with fewer than two of them, is exactly 0, by test and not by arithmetic (an fp32 residue over eps is a large
        number).

    Raises:
        ValueError: G < 2 (no sibling to compare with), or an infinite reward.
    """
    if rewards.ndim != 2 or rewards.shape[1] < 2:
        raise ValueError(f"rewards must be [P, G] with G >= 2, got {list(rewards.shape)}: GRPO compares siblings")
    if torch.isinf(rewards).any():
        raise ValueError("a reward is infinite")
    scored = ~torch.isnan(rewards)
    count = scored.sum(dim=1, keepdim=True)
    values = torch.where(scored, rewards, 0.0)
    mean = values.sum(dim=1, keepdim=True) / count.clamp(min=1)
    centred = torch.where(scored, rewards - mean, 0.0)
    if scale == "std":
        variance = centred.square().sum(dim=1, keepdim=True) / (count - ddof).clamp(min=1)
        centred = centred / (variance.sqrt() + eps)
    return torch.where(has_signal(rewards)[:, None], centred, 0.0)


def has_signal(rewards: Tensor) -> Tensor:
    """[P, G] rewards (NaN = unscored) -> [P] bool: at least two scored members that differ."""
    scored = ~torch.isnan(rewards)
    highest = torch.where(scored, rewards, -torch.inf).amax(dim=1)
    lowest = torch.where(scored, rewards, torch.inf).amin(dim=1)
    return (scored.sum(dim=1) >= 2) & (highest > lowest)
