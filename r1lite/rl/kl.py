"""Estimates of KL(policy || reference) from sampled tokens.

Shapes: log-probabilities [B, T], nats; d = ref - lp.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

Estimator = Literal["k1", "k2", "k3", "k1+", "k3+", "k3_corrected"]

_MAX_LOG, _MAX_K3 = 20.0, 10.0  # verl's `low_var_kl`: one token must not overflow a run


def kl_k1(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """k1 = lp - ref, per token: unbiased, often negative (Schulman 2020, "Approximating KL divergence").

    As a loss its gradient is 0 on average: sum_y p(y) grad log p(y) = 0. Its place is the reward.
    """
    return logprobs - ref_logprobs


def kl_k2(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """k2 = d^2 / 2, per token, >= 0: biased as a value, but on policy its gradient is that of the reverse KL."""
    return 0.5 * (ref_logprobs - logprobs).square()


def kl_k3(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """k3 = e^d - d - 1, per token, >= 0: unbiased as a value, of low variance (arXiv:2402.03300 eq. 4).

    d is clamped to +-20 and the result to at most 10, as in verl's `low_var_kl`: one token must not overflow a run.
    """
    d = (ref_logprobs - logprobs).clamp(-_MAX_LOG, _MAX_LOG)
    return (d.exp() - d - 1).clamp(max=_MAX_K3)


def kl_estimate(
    logprobs: Tensor,
    ref_logprobs: Tensor,
    *,
    estimator: Estimator = "k3",
    ratio: Tensor | None = None,
) -> Tensor:
    """The KL per token by one of the estimators.

        k1, k2, k3      as above
        k1+, k3+        value of k1 or k3, gradient of k2 (straight-through, as in verl)
        k3_corrected    (pi / pi_old) k3, the ratio differentiable: unbiased off policy, and its gradient is that of
                        the KL (DeepSeek-V3.2, arXiv:2512.02556)

    Args:
        ratio: pi / pi_old, [B, T]; for k3_corrected only.

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
            return kl_k3(logprobs, ref_logprobs)
        case "k1+" | "k3+":
            value = (kl_k1 if estimator == "k1+" else kl_k3)(logprobs, ref_logprobs)
            k2 = kl_k2(logprobs, ref_logprobs)
            return value.detach() + k2 - k2.detach()
        case "k3_corrected":
            if ratio is None:
                raise ValueError("k3_corrected weighs the KL by the ratio new/old policy, but none was given")
            return ratio * kl_k3(logprobs, ref_logprobs)
