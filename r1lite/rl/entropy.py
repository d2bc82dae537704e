"""Entropy: the tokens of which the policy was least sure, and the weight of the entropy bonus.

Shapes: entropies and masks [B, T], nats; mask True = completion token.
"""

from __future__ import annotations

import math

from torch import Tensor

_ROUNDING = 1e-5  # relative: siblings have the same first entropy, but for the rounding of their micro-batches


def top_entropy(entropy: Tensor, mask: Tensor, *, threshold: float) -> Tensor:
    """The tokens at which the policy was least sure (arXiv:2506.01939), bool [B, T]; all that tie with the last one.

    Args:
        threshold: nats, of `entropy_threshold`.
    """
    return mask & (entropy >= threshold - _ROUNDING * abs(threshold))


def entropy_threshold(entropies: Tensor, share: float) -> float:
    """The lowest entropy among the tokens at or above the (1 - share) quantile of all entropies, [N] -> nats.

    Keeping all tokens >= it keeps those that a linearly interpolated quantile keeps (TRL), for any N and without
    rounding errors.
    """
    num_below = math.ceil((1 - share) * (entropies.numel() - 1) - 1e-9)
    return float(entropies.sort().values[num_below])


def adapted_entropy_coef(coef: float, entropy: float, *, target: float, change: float = 0.005) -> float:
    """The weight of the entropy bonus after a step (Skywork-OR1, arXiv:2505.22312).

        coef + change if entropy <= target else coef - change, within [0, 1]

    The bonus of a step is applied only if its entropy is at most the target.
    """
    return min(1.0, max(0.0, coef + change if entropy <= target else coef - change))
