"""Estimates of KL(policy || reference) from sampled tokens.

Shapes: log-probabilities [B, T], nats; d = ref - lp.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

Estimator = Literal["k1", "k2", "k3", "abs", "k1+", "k3+", "k3_corrected"]

_MAX_LOG = 20.0  # beyond it the exponential continues along its tangent: e^20 = 5e8 is far from overflow


def kl_k1(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """k1 = lp - ref, per token: unbiased, often negative (Schulman 2020, "Approximating KL divergence").

    As a loss its gradient is 0 on average: sum_y p(y) grad log p(y) = 0. Use it in the reward.
    """
    return logprobs - ref_logprobs


def kl_k2(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """k2 = d^2 / 2, per token, >= 0: biased as a value, but on policy its gradient is that of the reverse KL."""
    return 0.5 * (ref_logprobs - logprobs).square()


def kl_abs(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """|d|, per token: a penalty whose gradient does not depend on the distance (`abs` in verl); not a KL estimate."""
    return (logprobs - ref_logprobs).abs()


def kl_k3(logprobs: Tensor, ref_logprobs: Tensor, *, cap: float | None = None) -> Tensor:
    """k3 = e^d - d - 1, per token, >= 0: unbiased as a value, of low variance (arXiv:2402.03300 eq. 4).

    For d > 20 the exponential continues along its tangent: it cannot overflow, and the gradient 1 - e^d keeps its sign
    and at least its size at d = 20.

    Args:
        cap: the largest value, 10 in verl's `low_var_kl`. A token beyond it has no gradient, so a token that is much
            less likely than under the reference is never pulled back. None = no cap.
    """
    d = ref_logprobs - logprobs
    safe = d.clamp(max=_MAX_LOG)
    value = safe.exp() * (1 + (d - safe)) - d - 1
    return value if cap is None else value.clamp(max=cap)


def kl_estimate(
    logprobs: Tensor,
    ref_logprobs: Tensor,
    *,
    estimator: Estimator = "k3",
    ratio: Tensor | None = None,
    cap: float | None = None,
) -> Tensor:
    """The KL per token by the given estimator.

        k1, k2, k3, abs as above
        k1+, k3+        value of k1 or k3, gradient of k2 (straight-through, as in verl)
        k3_corrected    (pi / pi_old) k3 with a differentiable ratio: unbiased off policy, and its gradient is that of
                        the KL (DeepSeek-V3.2, arXiv:2512.02556)

    Args:
        ratio: pi / pi_old, [B, T]; for k3_corrected only.
        cap: the largest value of k3; for k3, k3+ and k3_corrected.

    Returns: [B, T].

    Raises:
        ValueError: k3_corrected without a ratio.
    """
    match estimator:
        case "k1":
            return kl_k1(logprobs, ref_logprobs)
        case "k2":
            return kl_k2(logprobs, ref_logprobs)
        case "k3":
            return kl_k3(logprobs, ref_logprobs, cap=cap)
        case "abs":
            return kl_abs(logprobs, ref_logprobs)
        case "k1+" | "k3+":
            k1 = estimator == "k1+"
            value = kl_k1(logprobs, ref_logprobs) if k1 else kl_k3(logprobs, ref_logprobs, cap=cap)
            k2 = kl_k2(logprobs, ref_logprobs)
            return value.detach() + k2 - k2.detach()
        case "k3_corrected":
            if ratio is None:
                raise ValueError("k3_corrected weighs the KL by the ratio new/old policy, but none was given")
            return ratio * kl_k3(logprobs, ref_logprobs, cap=cap)
