"""pass@k and confidence intervals."""

from __future__ import annotations

import math


def pass_at_k(num_samples: int, num_correct: int, k: int) -> float:
    """Unbiased probability that at least one of k samples is right (arXiv:2107.03374 eq. 1): 1 - C(n-c, k) / C(n, k).

    Raises:
        ValueError: k > num_samples, or impossible counts.
    """
    if not 0 <= num_correct <= num_samples or not 1 <= k <= num_samples:
        raise ValueError(f"need 0 <= correct <= samples and 1 <= k <= samples, got {num_correct}, {num_samples}, {k}")
    return 1.0 - math.comb(num_samples - num_correct, k) / math.comb(num_samples, k)


def wilson_interval(successes: float, trials: float, *, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval of a rate (95 % by default); valid near 0 and 1, where the normal interval is not.

    `successes` may be a sum of values in [0, 1]; the interval is then slightly too wide.
    """
    if trials <= 0:
        raise ValueError("no trials")
    rate = successes / trials
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials**2)) / (1 + z * z / trials)
    return max(0.0, centre - half), min(1.0, centre + half)
