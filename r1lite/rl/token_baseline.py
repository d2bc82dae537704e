"""The baseline of least gradient variance for each token position of a completion (arXiv:2602.07078).

Shapes: G completions of one prompt, T tokens; mask True = completion token.
"""

from __future__ import annotations

import torch
from torch import Tensor


def gradient_energy(logprobs: Tensor, square_mass: Tensor) -> Tensor:
    """The squared norm of each token's gradient with respect to the logits, from probabilities alone.

        |e_y - p|^2 = 1 - 2 p_y + sum_v p_v^2

    Args:
        square_mass: sum_v p_v^2, the shape of logprobs (`logprobs.square_masses`).
    """
    return 1 - 2 * logprobs.exp() + square_mass


def optimal_token_advantages(rewards: Tensor, energy: Tensor, mask: Tensor, *, eps: float = 1e-8) -> Tensor:
    """Rewards less a baseline that weighs each completion by its gradient energy (verl's `optimal_token_baseline`).

        W_t = sum_{j <= t} energy_j;   B_t = sum_i r_i W_it / (sum_i W_it + eps);   A_it = r_i - B_t

    The sums run over the completions that have a token t. If only the longest one has, B_t is 0, because its own
    reward cannot be its baseline.

    Args:
        rewards: [G]; NaN = unscored: not part of any baseline, advantage 0.
        energy: [G, T], of `gradient_energy`.

    Returns: [G, T], 0 at mask False; exactly 0 if all scored rewards are equal (verl: r where B_t is 0).
    """
    scored = ~torch.isnan(rewards)
    known = rewards[scored]
    if known.numel() < 2 or bool(known.max() == known.min()):
        return torch.zeros_like(energy)
    mask = mask & scored[:, None]
    weight = torch.where(mask, energy, 0.0).cumsum(dim=1) * mask
    reward = torch.where(scored, rewards, 0.0)[:, None]
    baseline = (reward * weight).sum(dim=0) / (weight.sum(dim=0) + eps)
    baseline = torch.where(mask.sum(dim=0) > 1, baseline, 0.0)
    return torch.where(mask, reward - baseline, 0.0)
