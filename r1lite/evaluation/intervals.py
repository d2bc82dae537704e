"""Rates with intervals, and tests of the difference between two models; plain Python, no tensors."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from r1lite.rl.passk import wilson_interval

_RESAMPLES = 4000
_FEW = 30  # with fewer, the 95 % interval of an accuracy spans more than a third of the scale


@dataclass(frozen=True, slots=True)
class Rate:
    """A mean over problems with its 95 % interval."""

    mean: float
    low: float
    high: float
    problems: int


def few(count: int, what: str, remedy: str) -> list[tuple[str, str]]:
    """Returns a warning, as a line of the display, if an accuracy on so few items says little; otherwise no line.

    Args:
        what: an item, in the singular.
    """
    if count >= _FEW:
        return []
    low, high = wilson_interval(count / 2, count)
    between = f"{100 * low:.0f}-{100 * high:.0f} %"
    said = f"only {count} {what}{'s' * (count != 1)}: an accuracy of 50 % on them has a 95 % interval of {between}"
    return [("warning", f"{said}; {remedy}")]


def mean_rate(values: Sequence[float]) -> Rate:
    """The mean of one value in [0, 1] per problem, with Wilson's interval for the effective number of trials.

    Problems are the clusters: several samples of a problem count as one value, their mean (arXiv:2411.00640, sec. 2.2).
    With v the variance of the values and m their mean, n problems are worth n_eff = m (1 - m) / (v / n) coin tosses.
    If all values are 0 or 1, v = m (1 - m), so n_eff = n and the interval is exactly Wilson's. Unlike the normal
    interval it stays within [0, 1] and has a positive width at 0 and at 1.

    Raises:
        ValueError: no values, or one outside [0, 1].
    """
    if not values or not all(0 <= value <= 1 for value in values):
        raise ValueError(f"need values in [0, 1], got {list(values)[:5]}")
    count = len(values)
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / count
    spread = mean * (1 - mean)
    trials = count * spread / variance if variance > 1e-12 else float(count)
    low, high = wilson_interval(mean * trials, trials)
    return Rate(mean, low, high, count)


def trials_of(low: float, high: float, rate: float) -> float:
    """The effective number of trials (n_eff of `mean_rate`) of a rate with this Wilson interval.

    Found by bisection on the interval's width, which falls with n.

    Raises:
        ValueError: not 0 <= low < high <= 1, or no n from 1 to 10^9 gives this width.
    """
    if not (0 <= rate <= 1 and 0 <= low < high <= 1):
        raise ValueError(f"need a rate and its interval in [0, 1], got {rate} and {low} to {high}")

    def wider(trials: float) -> bool:
        a, b = wilson_interval(rate * trials, trials)
        return b - a > high - low

    least, most = 1.0, 1e9
    if not wider(least) or wider(most):
        raise ValueError(f"{low} to {high} is not a Wilson interval of a rate {rate}")
    for _ in range(60):
        middle = math.sqrt(least * most)
        least, most = (middle, most) if wider(middle) else (least, middle)
    return most


@dataclass(frozen=True, slots=True)
class Paired:
    """Two models on the same problems: the mean difference b - a, its interval and its p-value."""

    difference: float
    low: float  # 95 % percentile bootstrap over problems
    high: float
    p_value: float  # two-sided
    test: str  # "McNemar exact" or "sign-flip permutation"
    a_only: int  # number of problems on which a is better
    b_only: int  # number of problems on which b is better
    problems: int


def paired(a: Sequence[float], b: Sequence[float], *, seed: int = 0) -> Paired:
    """Compares two models by one value in [0, 1] per problem each, in the same order.

    If all values are 0 or 1, the test is McNemar's exact test, otherwise random sign flips of the differences.

    Raises:
        ValueError: the lengths differ, or there are no values.
    """
    if len(a) != len(b) or not a:
        raise ValueError(f"need the same number of values, at least one, got {len(a)} and {len(b)}")
    differences = [y - x for x, y in zip(a, b, strict=True)]
    a_only, b_only = sum(d < 0 for d in differences), sum(d > 0 for d in differences)
    low, high = bootstrap_interval(differences, seed=seed)
    if all(value in (0, 1) for value in (*a, *b)):
        test, p_value = "McNemar exact", mcnemar_exact(a_only, b_only)
    else:
        test, p_value = "sign-flip permutation", sign_flip(differences, seed=seed)
    return Paired(math.fsum(differences) / len(differences), low, high, p_value, test, a_only, b_only, len(differences))


def mcnemar_exact(a_only: int, b_only: int) -> float:
    """Two-sided p-value of McNemar's exact test, from the problems on which exactly one model is right.

    p = min(1, 2 * sum_{i <= min(a, b)} C(a + b, i) / 2^(a + b)); 1 if there are no such problems.
    """
    if a_only < 0 or b_only < 0:
        raise ValueError(f"counts must be >= 0, got {a_only} and {b_only}")
    count = a_only + b_only
    tail = sum(math.comb(count, i) for i in range(min(a_only, b_only) + 1))
    return min(1.0, float(2 * tail / 2**count)) if count else 1.0


def sign_flip(differences: Sequence[float], *, resamples: int = _RESAMPLES, seed: int = 0) -> float:
    """Two-sided p-value of the sign-flip test: without an effect, each difference is as likely with the other sign.

    p = (1 + number of random flips with at least the observed |sum|) / (1 + resamples), so p is never 0.
    """
    moved = [abs(d) for d in differences if d]
    reached, rng, extreme = abs(math.fsum(differences)) - 1e-9, random.Random(seed), 0
    for _ in range(resamples):
        flips = rng.getrandbits(len(moved)) if moved else 0
        total = sum(d if flips >> i & 1 else -d for i, d in enumerate(moved))
        extreme += abs(total) >= reached
    return (1 + extreme) / (1 + resamples)


def bootstrap_interval(
    values: Sequence[float], *, resamples: int = _RESAMPLES, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean; draws whole problems with replacement."""
    if not values:
        raise ValueError("no values")
    rng, count = random.Random(seed), len(values)
    means = sorted(math.fsum(rng.choices(values, k=count)) / count for _ in range(resamples))
    cut = (1 - level) / 2
    return means[int(cut * resamples)], means[min(resamples - 1, int((1 - cut) * resamples))]
