"""Policy losses that fit log-ratios to rewards by least squares.

Shapes: log-probabilities and masks [B, T]; advantages A [B], or [B, T]; mask True = completion token. To be minimized.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from r1lite.rl.losses import by_token


def dro(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, *, beta: float = 0.05) -> Tensor:
    """Direct reward optimization, token by token (arXiv:2405.19107; as in verl and Tinker).

        pl = -(A lp - beta / 2 (lp - old)^2)

    Up to a constant it is the squared error of beta (lp - old) against A, over 2 beta; its minimum is old + A / beta.

    Args:
        beta: > 0; how strongly the policy is held to its old values.

    Returns: [B, T].
    """
    return -(by_token(advantages) * logprobs - 0.5 * beta * (logprobs - old_logprobs).square())


def optimal_value(rewards: Tensor, *, beta: float) -> Tensor:
    """The value of a problem under the best policy near the reference, from the reference's rewards (arXiv:2505.20686).

        V* = beta log(mean_i exp(r_i / beta))

    Args:
        rewards: [P, N] of completions that the reference sampled; NaN = unscored, left out.
        beta: > 0; towards 0 the best reward, towards infinity the mean.

    Returns: [P]; NaN for a problem without a scored completion.
    """
    scored = ~torch.isnan(rewards)
    count = scored.sum(dim=1)
    summed = torch.where(scored, rewards / beta, -torch.inf).logsumexp(dim=1)
    return torch.where(count > 0, beta * (summed - count.clamp(min=1).to(summed).log()), math.nan)


def a_star_po(logprobs: Tensor, ref_logprobs: Tensor, advantages: Tensor, mask: Tensor, *, beta: float) -> Tensor:
    """A*-PO: the log-ratio of a completion is fitted to its optimal advantage (arXiv:2505.20686; TRL's A2PO).

        pl_i = (beta sum_t (lp - ref) - A_i)^2,   A_i = r_i - V*

    Args:
        advantages: A, [B]: rewards less the `optimal_value` of their problems.
        beta: > 0 (1e-3 in the paper).

    Returns: [B, T], the same at each token of a row: aggregate with "sequence_mean".
    """
    gain = beta * torch.where(mask, logprobs - ref_logprobs, 0.0).sum(dim=1)
    return (gain - advantages).square()[:, None].expand_as(logprobs)
