"""Policy losses, per token, to be minimized.

Shapes: log-probabilities, ratios and masks [B, T]; advantages A [B], or [B, T] where each token has its own; mask True
= completion token, the end token included. `aggregate.py` reduces the per-token values to the loss.
"""

from __future__ import annotations

import torch
from torch import Tensor

_MAX_LOG = 20.0  # log-ratios are clamped to it: e^20 cannot overflow, and every loss is clipped long before


def by_token(advantages: Tensor) -> Tensor:
    """[B] -> [B, 1], shared by every token of the row; [B, T] is returned as it is."""
    return advantages if advantages.ndim == 2 else advantages[:, None]


def policy_ratio(logprobs: Tensor, old_logprobs: Tensor) -> Tensor:
    """pi(token) / pi_old(token), [B, T]. The log-ratio is clamped to +-20, so that it cannot overflow."""
    return (logprobs - old_logprobs).clamp(-_MAX_LOG, _MAX_LOG).exp()


def sequence_ratio(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
    """GSPO's ratio of a completion, at each of its tokens (arXiv:2507.18071; in the token form of its sec. 4.3).

        s_i = exp(sum_t (lp - old) / L_i);   s_it = sg(s_i) exp(lp - sg(lp))

    Each s_it has the value of s_i and carries the gradient of its own token. With one advantage per completion the
    gradient of the loss is that of s_i; tokens may also have advantages of their own.

    Returns: [B, T]; values at mask False are undefined.
    """
    with torch.no_grad():
        log_ratio = torch.where(mask, logprobs - old_logprobs, 0.0).sum(dim=1, keepdim=True)
        value = (log_ratio / mask.sum(dim=1, keepdim=True).clamp(min=1)).clamp(-_MAX_LOG, _MAX_LOG).exp()
    return value * (logprobs - logprobs.detach()).exp()


def completion_ratio(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
    """The importance ratio of a completion as one action, at each of its tokens (RLOO, arXiv:2402.14740; TRL's RLOO).

        s_i = exp(sum_t (lp - old));   s_it = sg(s_i) exp(lp - sg(lp))

    This is the product of its tokens' ratios, while `sequence_ratio` is their geometric mean. Each s_it has the value
    of s_i and the gradient of its own token, so with "sequence_sum" the loss has the gradient of s_i.

    Returns: [B, T]; values at mask False are undefined.
    """
    with torch.no_grad():
        log_ratio = torch.where(mask, logprobs - old_logprobs, 0.0).sum(dim=1, keepdim=True)
        value = log_ratio.clamp(-_MAX_LOG, _MAX_LOG).exp()
    return value * (logprobs - logprobs.detach()).exp()


def clipped_surrogate(
    ratio: Tensor,
    advantages: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    clip_dual: float | None = None,
    clip_delta: float | None = None,
) -> Tensor:
    """PPO's clipped surrogate (arXiv:1707.06347 eq. 7) with its later extensions.

        pl = -min(min(s, delta) A, clip(s, 1 - clip_low, 1 + clip_high) A);   A < 0: pl = min(pl, -c A)

    Args:
        ratio: s, [B, T], of tokens, or of completions (GSPO).
        clip_low, clip_high: distances from 1, >= 0 (DAPO, arXiv:2503.14476, sets clip_high 0.28).
        clip_dual: c > 1 bounds the loss of a bad token that became likelier (arXiv:1912.09729); None = no bound.
        clip_delta: delta > 1 + clip_high bounds the unclipped ratio itself (INTELLECT-2, arXiv:2505.07291); None = no
            bound.

    Returns: [B, T].
    """
    a = by_token(advantages)
    unclipped = ratio if clip_delta is None else ratio.clamp(max=clip_delta)
    loss = -torch.minimum(unclipped * a, ratio.clamp(1 - clip_low, 1 + clip_high) * a)
    if clip_dual is not None:
        loss = torch.where(a < 0, torch.minimum(loss, -clip_dual * a), loss)
    return loss


def cispo(ratio: Tensor, logprobs: Tensor, advantages: Tensor, *, cap: float = 5.0) -> Tensor:
    """CISPO: REINFORCE with a capped importance weight, which keeps every token's gradient (arXiv:2506.13585).

        pl = -sg(min(s, cap)) A lp

    Args:
        cap: an absolute ratio, as in TRL (verl and others give its distance from 1); no lower bound, as in the paper.

    Returns: [B, T].
    """
    return -ratio.detach().clamp(max=cap) * by_token(advantages) * logprobs


def sapo(ratio: Tensor, advantages: Tensor, *, tau_positive: float = 1.0, tau_negative: float = 1.05) -> Tensor:
    """SAPO: a smooth gate in place of the clip (arXiv:2511.20347).

        pl = -(4 / tau) sigmoid(tau (s - 1)) A;   tau = tau_positive if A > 0 else tau_negative

    At s = 1 the gradient is that of s A.

    Returns: [B, T].
    """
    a = by_token(advantages)
    tau = torch.where(a > 0, ratio.new_tensor(tau_positive), ratio.new_tensor(tau_negative))
    return -4 / tau * torch.sigmoid(tau * (ratio - 1)) * a


def gmpo(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip_low: float = 0.4,
    clip_high: float = 0.4,
) -> Tensor:
    """GMPO: the geometric mean of the clipped ratios of a completion (arXiv:2507.20673).

        x_t = sgn(A) min(sgn(A) l_t, sgn(A) clip(l_t, -clip_low, clip_high)),  l = lp - old
        pl_i = -A_i exp(sum_t x_t / L_i)

    Args:
        advantages: [B]; the loss has one value per completion.
        clip_low, clip_high: bounds of the log-ratio (0.4 in the paper).

    Returns: [B, T], the same at each token of a row: aggregate with "sequence_mean".
    """
    sign = torch.sign(advantages)[:, None]
    log_ratio = (logprobs - old_logprobs).clamp(-_MAX_LOG, _MAX_LOG)
    x = sign * torch.minimum(sign * log_ratio, sign * log_ratio.clamp(-clip_low, clip_high))
    mean = torch.where(mask, x, 0.0).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    return (-advantages * mean.exp())[:, None].expand_as(logprobs)


def positive_nll(logprobs: Tensor, mask: Tensor, right: Tensor, *, num_tokens: int) -> Tensor:
    """The contribution of these rows to the loss that imitates right completions (VAPO, arXiv:2504.05118 eq. 9).

        L_NLL = -sum over right i of sum_t lp_it / (tokens of all right completions)

    Args:
        logprobs: [B, T] of the policy.
        mask: bool [B, T], True = completion token.
        right: bool [B], the completions that are right.
        num_tokens: tokens of the right completions of the whole update; 0 = there are none.

    Returns: a scalar in nats; 0 if no completion is right.
    """
    return -torch.where(mask & right[:, None], logprobs, 0.0).sum() / max(1, num_tokens)


def reinforce(logprobs: Tensor, advantages: Tensor) -> Tensor:
    """The policy gradient itself (Williams 1992): valid only for tokens sampled by this same policy.

        pl = -A lp

    Returns: [B, T].
    """
    return -by_token(advantages) * logprobs
