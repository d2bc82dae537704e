"""Tokens that reduce the policy's entropy most: Clip-Cov and KL-Cov (arXiv:2505.22617).

The entropy falls with the covariance of log-probability and advantage, and a few tokens make up most of it.

Shapes: N completion tokens of an update, [N]; or [B, T], where mask True = completion token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from r1lite.rl.losses import by_token


def covariances(logprobs: Tensor, advantages: Tensor) -> Tensor:
    """Each token's share of the covariance of log-probability and advantage (arXiv:2505.22617), [N].

    (lp - mean lp) (A - mean A)
    """
    return (logprobs - logprobs.mean()) * (advantages - advantages.mean())


def clip_cov_tokens(
    logprobs: Tensor,
    advantages: Tensor,
    *,
    share: float = 2e-4,
    low: float = 1.0,
    high: float = 5.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Selects the tokens that Clip-Cov leaves out of the gradient: a random few of those with a high covariance.

    Like the authors' code and verl's `clip_cov`, but over a whole update and with the policy before it, so that the
    split into micro-batches never changes the selection. At ratio 1 no token is clipped, so none is excluded for that.

    Args:
        logprobs, advantages: [N].
        share: of all tokens; at least one token if any qualifies.
        low, high: a token qualifies if its covariance lies strictly between (verl and the authors: 1 and 5).

    Returns: bool [N].
    """
    cov = covariances(logprobs, advantages)
    candidates = ((cov > low) & (cov < high)).nonzero().squeeze(-1)
    count = min(max(int(share * cov.numel()), 1), candidates.numel())
    order = torch.randperm(candidates.numel(), generator=generator)[:count].to(candidates.device)
    return torch.zeros_like(cov, dtype=torch.bool).index_fill(0, candidates[order], True)


def kl_cov_tokens(logprobs: Tensor, advantages: Tensor, *, share: float = 2e-4) -> Tensor:
    """Selects the tokens that KL-Cov penalises: the share with the highest covariance, at least one. bool [N]."""
    cov = covariances(logprobs, advantages)
    chosen = cov.topk(min(max(int(share * cov.numel()), 1), cov.numel())).indices
    return torch.zeros_like(cov, dtype=torch.bool).index_fill(0, chosen, True)


def clip_cov(surrogate: Tensor, chosen: Tensor) -> Tensor:
    """Clip-Cov: sets the surrogate of the chosen tokens to 0; they still count in the mean. [B, T]."""
    return torch.where(chosen, 0.0, surrogate)


def kl_cov(
    ratio: Tensor, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, chosen: Tensor, *, coef: float = 1.0
) -> Tensor:
    """KL-Cov: adds a penalty on the chosen tokens' distance from the old policy, and clips nothing.

        pl = -s A + 1[chosen] coef |lp - old|

    Returns: [B, T].
    """
    return -ratio * by_token(advantages) + torch.where(chosen, coef * (logprobs - old_logprobs).abs(), 0.0)
