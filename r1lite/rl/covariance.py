"""Tokens that cost the policy its entropy: Clip-Cov and KL-Cov (arXiv:2505.22617).

The entropy falls as fast as log-probability and advantage covary, and a few tokens make up most of that covariance.

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
    """Tokens that Clip-Cov leaves out of the gradient: a random few of those with a high covariance.

    As in the authors' code and verl's `clip_cov`, but over a whole update and by the policy before it, so that no split
    into micro-batches changes the choice; at ratio 1 no token is clipped, so none has to be left out for that.

    Args:
        logprobs, advantages: [N].
        share: of all tokens, at least one of them where any qualifies.
        low, high: a token qualifies if its covariance lies strictly between (verl and the authors: 1 and 5).

    Returns: bool [N].
    """
    cov = covariances(logprobs, advantages)
    candidates = ((cov > low) & (cov < high)).nonzero().squeeze(-1)
    count = min(max(int(share * cov.numel()), 1), candidates.numel())
    order = torch.randperm(candidates.numel(), generator=generator)[:count].to(candidates.device)
    return torch.zeros_like(cov, dtype=torch.bool).index_fill(0, candidates[order], True)


def kl_cov_tokens(logprobs: Tensor, advantages: Tensor, *, share: float = 2e-4) -> Tensor:
    """Tokens that KL-Cov penalises: the share with the highest covariance, at least one. bool [N]."""
    cov = covariances(logprobs, advantages)
    chosen = cov.topk(min(max(int(share * cov.numel()), 1), cov.numel())).indices
    return torch.zeros_like(cov, dtype=torch.bool).index_fill(0, chosen, True)


def clip_cov(surrogate: Tensor, chosen: Tensor) -> Tensor:
    """Clip-Cov: a clipped surrogate without the chosen tokens, which still count in the mean, [B, T]."""
    return torch.where(chosen, 0.0, surrogate)


def kl_cov(
    ratio: Tensor, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, chosen: Tensor, *, coef: float = 1.0
) -> Tensor:
    """KL-Cov: the chosen tokens pay for their distance from the old policy, and nothing is clipped.

        pl = -s A + 1[chosen] coef |lp - old|

    Returns: [B, T].
    """
    return -ratio * by_token(advantages) + torch.where(chosen, coef * (logprobs - old_logprobs).abs(), 0.0)
