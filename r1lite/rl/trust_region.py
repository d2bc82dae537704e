"""Policy losses that bound the policy's movement by a divergence instead of the ratio of a token.

Shapes: log-probabilities and masks [B, T]; advantages A [B], or [B, T] where each token has its own; mask True =
completion token. The losses are per token, to be minimized.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from r1lite.rl.losses import by_token

_MAX_LOG = 20.0
_MIN_WEIGHT = 1e-8  # of a completion, as in the authors' code; its logarithm is the lower bound
_EPS = 1e-8  # added to 1 - p, as in verl, so that a probability that rounds to 1 has a finite divergence


def binary_divergence(logprobs: Tensor, old_logprobs: Tensor, *, kind: Literal["tv", "kl"]) -> Tensor:
    """The policy's movement at a token, with all other tokens merged: DPPO's binary approximation (arXiv:2602.04879).

        tv: |p - mu|;   kl: mu log(mu / p) + (1 - mu) log((1 - mu) / (1 - p)),   p = e^lp, mu = e^old

    It is a lower bound of the divergence of the two whole distributions.

    Returns: [B, T], >= 0 up to rounding, in nats for "kl".
    """
    p, mu = logprobs.exp(), old_logprobs.exp()
    if kind == "tv":
        return (p - mu).abs()
    others = torch.log((-torch.expm1(old_logprobs) + _EPS) / (-torch.expm1(logprobs) + _EPS))
    return mu * (old_logprobs - logprobs) + (1 - mu) * others


def dppo_held(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    *,
    kind: Literal["tv", "kl"] = "tv",
    low: float = 0.2,
    high: float = 0.2,
) -> tuple[Tensor, Tensor]:
    """Selects the tokens that DPPO leaves out: those that moved beyond the bound in the direction of their advantage.

    Returns: bool [B, T], twice: less likely by more than `low` with A < 0; likelier by more than `high` with A > 0.
    """
    with torch.no_grad():
        a, moved = by_token(advantages), logprobs - old_logprobs
        far = binary_divergence(logprobs, old_logprobs, kind=kind)
        return (a < 0) & (moved < 0) & (far > low), (a > 0) & (moved > 0) & (far > high)


def dppo(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    *,
    kind: Literal["tv", "kl"] = "tv",
    low: float = 0.2,
    high: float = 0.2,
    cap: float = 20.0,
) -> Tensor:
    """DPPO: the policy gradient, masked where a token's probability moved too far (arXiv:2602.04879; as in verl).

        pl = -keep sg(min(s, cap)) A lp;   keep = 0 where D > low and p < mu and A < 0, or D > high and p > mu and A > 0

    The bound is on probabilities, so a rare token with a large ratio moves little mass and is not held back.

    Args:
        kind: D of `binary_divergence`.
        low, high: thresholds of D for tokens that became less likely, and likelier (0.2 for "tv" in prime-rl).
        cap: bound of the weight, far above usual ratios (20 in verl).

    Returns: [B, T].
    """
    less, likelier = dppo_held(logprobs, old_logprobs, advantages, kind=kind, low=low, high=high)
    with torch.no_grad():
        weight = (logprobs - old_logprobs).clamp(-_MAX_LOG, _MAX_LOG).exp().clamp(max=cap)
        weight = torch.where(less | likelier, 0.0, weight)
    return -weight * by_token(advantages) * logprobs


def vespo_weight(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    k_positive: float = 2.0,
    lambda_positive: float = 3.0,
    k_negative: float = 3.0,
    lambda_negative: float = 2.0,
    correction: Tensor | None = None,
) -> Tensor:
    """VESPO's weight of a completion: 1 on policy, falling smoothly on both sides (arXiv:2602.10693).

        W = e^(sum_t (lp - old));   phi = W^k e^(lambda (1 - W)),   k, lambda by the sign of A

    Args:
        k_positive, lambda_positive, k_negative, lambda_negative: the paper's c1 and c2 (TRL's defaults).
        correction: trainer/engine weights of the tokens, [B, T] or [B, 1], which multiply W inside phi; None = 1.

    Returns: [B, 1], or [B, T] if tokens have advantages of their own; no gradient.
    """
    with torch.no_grad():
        log_ratio = torch.where(mask, (logprobs - old_logprobs).clamp(-_MAX_LOG, _MAX_LOG), 0.0)
        log_w = log_ratio.sum(dim=1, keepdim=True)
        if correction is not None:
            log_c = correction.log().clamp(math.log(_MIN_WEIGHT), _MAX_LOG)
            log_w = log_w + (torch.where(mask, log_c, 0.0).sum(dim=1, keepdim=True) if log_c.shape[1] > 1 else log_c)
        log_w = log_w.clamp(math.log(_MIN_WEIGHT), _MAX_LOG)
        positive = by_token(advantages) >= 0
        k = torch.where(positive, log_w.new_tensor(k_positive), log_w.new_tensor(k_negative))
        lam = torch.where(positive, log_w.new_tensor(lambda_positive), log_w.new_tensor(lambda_negative))
        return (lam + k * log_w - lam * log_w.exp()).exp()


def vespo(weight: Tensor, logprobs: Tensor, advantages: Tensor) -> Tensor:
    """VESPO: the policy gradient under the weight of `vespo_weight` (arXiv:2602.10693; as in TRL).

        pl = -phi A lp

    Returns: [B, T].
    """
    return -weight * by_token(advantages) * logprobs
