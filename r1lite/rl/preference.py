"""Learning from preference pairs: the Bradley-Terry loss, DPO and IPO, and the calibration of a reward model.

Shapes: N pairs; `chosen` and `rejected` are the model's raw rewards, [N]. For DPO and IPO they are the rewards that
the policy implies: log-ratios of the compared completions to the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


def bradley_terry(
    chosen: Tensor, rejected: Tensor, *, margins: Tensor | float = 0.0, centre_coef: float = 0.0
) -> Tensor:
    """Loss of each pair under P(chosen is preferred) = sigmoid(r_c - r_r), to be minimized.

        -log sigmoid(r_c - r_r - margin) + centre_coef (r_c + r_r)^2

    The margin is the distance asked for (Llama 2, arXiv:2307.09288 sec. 3.2.2). Only differences count, so the level
    of the rewards is free; the second term keeps it near 0 (arXiv:2312.09244; `center_rewards_coefficient` in TRL).

    Args:
        margins: [N] or one number, >= 0, in units of the reward (nats of the odds).

    Returns: [N].
    """
    loss = -F.logsigmoid(chosen - rejected - margins)
    return loss + centre_coef * (chosen + rejected).square() if centre_coef else loss


def dpo(chosen: Tensor, rejected: Tensor, *, beta: float = 0.1, smoothing: float = 0.0) -> Tensor:
    """Direct preference optimization: the Bradley-Terry loss of the policy's own reward (arXiv:2305.18290 eq. 7).

        h = l_c - l_r;   -(1 - e) log sigmoid(beta h) - e log sigmoid(-beta h)

    Args:
        chosen, rejected: l = sum_t (lp - ref) of each completion, [N], nats.
        beta: > 0; how strongly the policy is held to the reference.
        smoothing: e in [0, 0.5): the share of pairs whose label is assumed wrong (conservative DPO).

    Returns: [N].
    """
    h = beta * (chosen - rejected)
    return -(1 - smoothing) * F.logsigmoid(h) - smoothing * F.logsigmoid(-h)


def ipo(chosen: Tensor, rejected: Tensor, *, beta: float = 0.1) -> Tensor:
    """Identity preference optimization: aims at a fixed margin, which then stops growing (arXiv:2310.12036 eq. 17).

        (l_c - l_r - 1 / (2 beta))^2

    Args:
        chosen, rejected: log-ratios to the reference, [N]: sums over a completion's tokens as in the paper, or their
            means, as the authors advised later and TRL does.

    Returns: [N].
    """
    return (chosen - rejected - 1 / (2 * beta)).square()


@dataclass(frozen=True, slots=True)
class Bin:
    """Pairs of similar confidence."""

    low: float  # confidence, [low, high)
    high: float
    count: int
    confidence: float  # mean
    accuracy: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well a reward model's odds predict preferences on pairs."""

    accuracy: float  # share of pairs whose chosen answer gets the higher reward; a tie counts half
    ties: int
    loss: float  # -log P(chosen), nats
    brier: float  # mean (1 - P(chosen))^2; 0.25 = no information
    ece: float  # expected calibration error: mean |accuracy - confidence| over the bins, weighted by their pairs
    bins: tuple[Bin, ...]  # those that hold pairs


def calibration(chosen: Tensor, rejected: Tensor, *, num_bins: int = 10) -> Calibration:
    """Accuracy and calibration of P = sigmoid(r_c - r_r) (expected calibration error: arXiv:1706.04599 sec. 2).

    Each pair is a bet on the answer with the higher reward, with confidence max(P, 1 - P) in [0.5, 1]; bins have equal
    width.

    Raises:
        ValueError: no pairs, or a reward that is not finite.
    """
    difference = (chosen - rejected).double()
    if not difference.numel() or not bool(torch.isfinite(difference).all()):
        raise ValueError(f"calibration needs pairs with finite rewards, got {difference.numel()} pairs")
    p = torch.sigmoid(difference)
    confidence = torch.maximum(p, 1 - p)
    right = (difference > 0).double() + 0.5 * (difference == 0)
    width = 0.5 / num_bins
    bin_of_pair = ((confidence - 0.5) / width).long().clamp(max=num_bins - 1)
    bins = []
    for n in range(num_bins):
        inside = bin_of_pair == n
        if bool(inside.any()):
            bins.append(
                Bin(
                    low=0.5 + n * width,
                    high=0.5 + (n + 1) * width,
                    count=int(inside.sum()),
                    confidence=float(confidence[inside].mean()),
                    accuracy=float(right[inside].mean()),
                )
            )
    total = difference.numel()
    return Calibration(
        accuracy=float(right.mean()),
        ties=int((difference == 0).sum()),
        loss=float(-F.logsigmoid(difference).mean()),
        brier=float((1 - p).square().mean()),
        ece=sum(b.count * abs(b.accuracy - b.confidence) for b in bins) / total,
        bins=tuple(bins),
    )
