"""Advantages: how much better a completion did than expected.

Shapes: rewards [P, G], where NaN = unscored: left out of every mean and std, with advantage 0. If the compared rewards
are all equal, the advantage is set to exactly 0 rather than computed, because a rounding residue over a small eps is a
large number. An infinite reward raises ValueError with its indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor


def group_relative(
    rewards: Tensor, *, scale: Literal["std", "none"] = "std", ddof: int = 1, eps: float = 1e-4
) -> Tensor:
    """GRPO: how much better each completion did than its siblings.

        A[p, g] = (r[p, g] - mean_g r[p]) / (std_g r[p] + eps)

    Args:
        rewards: [P, G], G >= 2.
        scale: "std" (arXiv:2402.03300 sec. 4.1.2) or "none" (Dr. GRPO, arXiv:2503.20783: r - mean).
        ddof: 1 = sample, 0 = population standard deviation.
        eps: added to the std, in reward units.

    Returns:
        [P, G], zero mean per row over scored entries; a row whose scored rewards are all equal, or with fewer than two
        of them, is exactly 0.

    Raises:
        ValueError: G < 2 (no sibling to compare with), or an infinite reward.
    """
    scored = _scored(rewards)
    count = scored.sum(dim=1, keepdim=True)
    centred = _centred(rewards, scored)
    if scale == "std":
        variance = centred.square().sum(dim=1, keepdim=True) / (count - ddof).clamp(min=1)
        centred = centred / (variance.sqrt() + eps)
    return _where_signal(rewards, centred)


def batch_scaled(rewards: Tensor, *, ddof: int = 1, eps: float = 1e-4) -> Tensor:
    """Lite PPO: centred by group, scaled by the batch (arXiv:2508.08221).

        A[p, g] = (r[p, g] - mean_g r[p]) / (std_{all} r + eps)

    The std is of all scored rewards about their own mean: a group that is nearly constant is not blown up.

    Returns: [P, G]; rows without signal are exactly 0.
    """
    scored = _scored(rewards)
    known = rewards[scored]
    if known.numel() < 2:
        return torch.zeros_like(rewards)
    return _where_signal(rewards, _centred(rewards, scored) / (known.std(correction=ddof) + eps))


def leave_one_out(rewards: Tensor) -> Tensor:
    """RLOO: against the mean of the other scored siblings (arXiv:2402.14740).

        A_i = r_i - sum_{j != i} r_j / (n - 1) = n / (n - 1) (r_i - mean),   n scored siblings

    Returns: [P, G]; rows without signal are exactly 0.
    """
    scored = _scored(rewards)
    count = scored.sum(dim=1, keepdim=True)
    return _where_signal(rewards, _centred(rewards, scored) * count / (count - 1).clamp(min=1))


def reinforce(rewards: Tensor) -> Tensor:
    """REINFORCE with the batch's mean as its baseline (Williams 1992).

        A_i = r_i - mean_{all} r

    Completions of a group are not compared, so any G >= 1 is allowed.

    Returns: [P, G]; exactly 0 if all scored rewards of the batch are equal.
    """
    _refuse_infinite(rewards)
    scored = ~torch.isnan(rewards)
    known = rewards[scored]
    if known.numel() < 2 or bool(known.max() == known.min()):
        return torch.zeros_like(rewards)
    return torch.where(scored, rewards - known.mean(), 0.0)


def optimal_baseline(rewards: Tensor, lengths: Tensor) -> Tensor:
    """OPO: the baseline of least gradient variance; long completions have more weight in it (arXiv:2505.23585).

        A_i = r_i - sum_j l_j r_j / sum_j l_j

    Args:
        lengths: l, [P, G], tokens of each completion.

    Returns: [P, G]; rows without signal are exactly 0.
    """
    scored = _scored(rewards)
    weights = torch.where(scored, lengths.to(rewards), 0.0)
    total = weights.sum(dim=1, keepdim=True)
    weighted = (weights * torch.where(scored, rewards, 0.0)).sum(dim=1, keepdim=True)
    baseline = weighted / torch.where(total > 0, total, 1.0)
    return _where_signal(rewards, torch.where(scored, rewards - baseline, 0.0))


def maxrl(rewards: Tensor, *, eps: float = 1e-4) -> Tensor:
    """MaxRL: relative to the mean, so that rarely solved problems weigh most (arXiv:2602.02710).

        A_i = (r_i - mean) / (mean + eps)

    Returns: [P, G]; rows without signal are exactly 0.

    Raises:
        ValueError: a negative reward, because the mean of a group is read as its success rate.
    """
    scored = _scored(rewards)
    if bool((rewards[scored] < 0).any()):
        p, g = _first(scored & (rewards < 0))
        raise ValueError(f"reward [{p}, {g}] is {float(rewards[p, g]):g}: maxrl needs rewards >= 0")
    return _where_signal(rewards, _centred(rewards, scored) / (_mean(rewards, scored) + eps))


def pass_at_k(rewards: Tensor, *, k: int) -> Tensor:
    """Pass@k training: a completion's contribution to the rewards of the k-subsets of its group (arXiv:2508.10751).

        A_i = (mean of R_S over the k-subsets S with i - mean over all S) / std over all S,   R_S = max of r in S

    For rewards of 0 and 1 that is the paper's eq. 11 to 15: with m of n siblings wrong, R = 1 - C(m, k) / C(n, k),
    sigma = sqrt(R (1 - R)), A(right) = (1 - R) / sigma, A(wrong) = (1 - R - C(m - 1, k - 1) / C(n - 1, k - 1)) / sigma.
    The means are exact, not sampled: the j-th smallest reward is the best of C(j - 1, k - 1) subsets.

    Args:
        rewards: [P, G]; NaN = unscored.
        k: 1 <= k; a group with fewer than k scored members is exactly 0. k = 1 gives GRPO's z-score without eps.

    Returns: [P, G]; exactly 0 for a group whose k-subsets all have the same best reward.

    Raises:
        ValueError: k < 1.
    """
    if k < 1:
        raise ValueError(f"k must be >= 1, got {k}")
    advantages = torch.zeros_like(rewards)
    for p, row in enumerate(rewards.tolist()):
        order = sorted((g for g, reward in enumerate(row) if not math.isnan(reward)), key=lambda g: row[g])
        values, n = [row[g] for g in order], len(order)
        if n < k or values[k - 1] == values[-1]:  # the best reward of every subset is among values[k - 1:]
            continue
        shares = [math.comb(j, k - 1) / math.comb(n, k) for j in range(n)]  # of subsets whose best has rank j
        mean = math.fsum(share * value for share, value in zip(shares, values, strict=True))
        sigma = math.sqrt(math.fsum(share * (value - mean) ** 2 for share, value in zip(shares, values, strict=True)))
        for rank, g in enumerate(order):
            best = [math.comb(rank, k - 1) * values[rank]]  # subsets in which it is the best itself
            if k > 1:
                best += [math.comb(j - 1, k - 2) * values[j] for j in range(rank + 1, n)]
            advantages[p, g] = (math.fsum(best) / math.comb(n - 1, k - 1) - mean) / sigma
    return advantages


def best_of_group(rewards: Tensor, *, ddof: int = 1, eps: float = 1e-4) -> Tensor:
    """The best completion of a group gets its lead over the second; all others 0 (arXiv:2503.19595).

        A_best = (r_1st - r_2nd) / (std_g r + eps)

    This is the gradient of E[max of the group's rewards], for rewards of any size.

    Returns: [P, G]; 0 if two completions share the first place, or if fewer than two are scored.
    """
    scored = _scored(rewards)
    known = torch.where(scored, rewards, -torch.inf)
    top = known.topk(2, dim=1)
    lead = top.values[:, :1] - top.values[:, 1:]
    count = scored.sum(dim=1, keepdim=True)
    variance = _centred(rewards, scored).square().sum(dim=1, keepdim=True) / (count - ddof).clamp(min=1)
    advantages = torch.zeros_like(rewards).scatter(1, top.indices[:, :1], lead / (variance.sqrt() + eps))
    return _where_signal(rewards, advantages)


def normalized(advantages: Tensor, scored: Tensor, *, ddof: int = 1, eps: float = 1e-4) -> Tensor:
    """Scales the advantages of a step's completions to mean 0 and standard deviation 1 (TRL's `normalize_advantages`).

        (A - mean A) / (std A + eps)

    Args:
        advantages: [P, G].
        scored: bool [P, G]; other completions enter neither moment and stay 0.

    Returns: [P, G]; exactly 0 if all are equal, or if there are fewer than two, and for a group without signal, whose
        advantages are 0.
    """
    known = advantages[scored]
    if known.numel() < 2 or bool(known.max() == known.min()):
        return torch.zeros_like(advantages)
    # A group without signal does not get the mean, which differs from 0 by rounding.
    scored = scored & (advantages != 0).any(dim=1, keepdim=True)
    return torch.where(scored, (advantages - known.mean()) / (known.std(correction=ddof) + eps), 0.0)


def decoupled(parts: Tensor, weights: Sequence[float], rewards: Tensor, *, ddof: int = 1, eps: float = 1e-4) -> Tensor:
    """GDPO: normalises each part of the reward by itself, and their sum over the batch (arXiv:2601.05242).

        z_k = (R_k - mean_g R_k) / (std_g R_k + eps);   s = sum_k w_k z_k
        A = (s - mean_batch s) / (std_batch s + eps)

    Args:
        parts: R, [K, P, G]; NaN = this part abstained, or its completion is unscored.
        weights: w, K numbers.
        rewards: [P, G]; NaN = unscored, whatever the parts say (a sum must not hide a failed check).

    Returns: [P, G]; exactly 0 for a group in which no part has a signal.
    """
    scored = _scored(rewards)
    total = torch.zeros_like(rewards)
    for part, weight in zip(parts, weights, strict=True):
        total = total + weight * group_relative(torch.where(scored, part, torch.nan), ddof=ddof, eps=eps)
    return normalized(total, scored, ddof=ddof, eps=eps)


def discounted_returns(rewards: Tensor, mask: Tensor, *, gamma: float = 1.0) -> Tensor:
    """The discounted return of each token (REINFORCE++, arXiv:2501.03262).

        R_t = sum_{k >= t} gamma^(k - t) rw_k

    Args:
        rewards: rw, [B, T], of tokens (`gae.token_rewards`); tokens at mask False are skipped, without a discount.

    Returns: [B, T], 0 at mask False.
    """
    returns = torch.zeros_like(rewards)
    after = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        after = torch.where(mask[:, t], rewards[:, t] + gamma * after, after)
        returns[:, t] = torch.where(mask[:, t], after, 0.0)
    return returns


def has_signal(rewards: Tensor) -> Tensor:
    """[P, G] rewards (NaN = unscored) -> [P] bool: at least two scored members that differ."""
    scored = ~torch.isnan(rewards)
    highest = torch.where(scored, rewards, -torch.inf).amax(dim=1)
    lowest = torch.where(scored, rewards, torch.inf).amin(dim=1)
    return (scored.sum(dim=1) >= 2) & (highest > lowest)


def _scored(rewards: Tensor) -> Tensor:
    """[P, G] bool: which rewards are scored. Raises ValueError if G < 2 or a reward is infinite."""
    if rewards.ndim != 2 or rewards.shape[1] < 2:
        raise ValueError(f"rewards must be [P, G] with G >= 2, got {list(rewards.shape)}: GRPO compares siblings")
    _refuse_infinite(rewards)
    return ~torch.isnan(rewards)


def _refuse_infinite(rewards: Tensor) -> None:
    if bool(torch.isinf(rewards).any()):
        p, g = _first(torch.isinf(rewards))
        raise ValueError(f"reward [{p}, {g}] is infinite ({float(rewards[p, g])}): its siblings' would all be lost")


def _first(mask: Tensor) -> tuple[int, int]:
    p, g = mask.nonzero()[0].tolist()
    return p, g


def _mean(rewards: Tensor, scored: Tensor) -> Tensor:
    """[P, 1]: mean over scored members; 0 if there are none."""
    total = torch.where(scored, rewards, 0.0).sum(dim=1, keepdim=True)
    return total / scored.sum(dim=1, keepdim=True).clamp(min=1)


def _centred(rewards: Tensor, scored: Tensor) -> Tensor:
    return torch.where(scored, rewards - _mean(rewards, scored), 0.0)


def _where_signal(rewards: Tensor, advantages: Tensor) -> Tensor:
    return torch.where(has_signal(rewards)[:, None], advantages, 0.0)
