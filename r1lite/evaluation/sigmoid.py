"""Forecasts learning: ScaleRL's curve of a held-out rate against compute, with bootstrap intervals (arXiv:2510.13786).

    R(C) = R0 + (A - R0) / (1 + (C_mid / C)^B),   R(0) = R0

R0 is the rate before training, A the limit for large compute, C_mid the compute at half of the rise, and B the
steepness. For given C_mid and B the curve is linear in R0 and A, which are solved for in closed form (variable
projection). C_mid and B are searched on a grid that is refined, so the result doesn't depend on starting values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST = 6  # fewest different amounts of compute, for four parameters
_EXPONENTS = (0.2, 20.0)
_BEYOND = 10.0  # C_mid is searched from the first amount of compute / this to the last amount * this
_GRID, _NARROWER, _ROUNDS = (56, 36), 7, 5
_SURE = 0.975
_RISE = 11.34  # 99 % quantile of chi-squared with three degrees of freedom
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Point:
    """A rate in [0, 1] measured after `compute` (>= 0, any unit), with the precision of `trials` coin tosses."""

    compute: float
    rate: float
    trials: float

    @property
    def error(self) -> float:
        """Standard error of the rate after a small shift towards 1/2 (Agresti and Coull 1998)."""
        rate = (self.rate * self.trials + 2) / (self.trials + 4)
        return math.sqrt(rate * (1 - rate) / self.trials)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A fitted curve. Values that the points don't determine are None, and `missing` gives the reason."""

    start: Estimate  # R0
    end: Estimate | None  # A
    midpoint: Estimate | None  # C_mid
    exponent: Estimate | None  # B
    missing: str
    midpoint_at_least: float  # lower end of C_mid's interval
    scatter: float  # scatter of the points about the curve in standard errors; about 1 without noise between runs
    drawn: list[tuple[float, Estimate]]  # the curve at some amounts of compute, up to the last one
    ahead: list[tuple[float, Estimate]]  # the curve at 2, 4 and 10 times the last amount; empty if A is None


def fit(points: Sequence[Point], *, resamples: int = 1000, seed: int = 0) -> Curve:
    """Fits the curve by weighted least squares, with intervals by the parametric bootstrap.

    A point's standard error is sqrt(R (1 - R) / trials) with R from the curve, so that a rate that is low by chance
    gets no extra weight; the first of two fits uses the measured rates.

    A replicate is the fitted curve with normal noise at each point: the standard error (the problems' binomial noise),
    times the scatter of the points about the curve, sqrt(chi^2 / degrees of freedom), if that is more than 1. So
    differences between runs count too, if they vary from point to point. Errors are assumed to be independent, and
    intervals are for the measured problems.

    Args:
        points: points of one or several runs, in any order.
        resamples: number of replicates, >= 40.
        seed: seed of their noise.

    Raises:
        ValueError: fewer than `FEWEST` different amounts of compute, or an invalid point.
    """
    xs = np.array([point.compute for point in points], float)
    ys = np.array([point.rate for point in points], float)
    trials = np.array([point.trials for point in points], float)
    if len(set(xs.tolist())) < FEWEST:
        raise ValueError(f"{FEWEST} different amounts of compute are needed, got {len(set(xs.tolist()))}")
    if not (np.isfinite(xs).all() and (xs >= 0).all() and (ys >= 0).all() and (ys <= 1).all() and (trials >= 1).all()):
        raise ValueError("need compute >= 0, rates in [0, 1] and trials >= 1")
    if resamples < 40:
        raise ValueError(f"resamples must be >= 40, got {resamples}")
    errors = np.array([point.error for point in points], float)
    found = _fitted(xs, ys[None], errors**-2)
    rates = (_curve(found, xs)[0] * trials + 0.5) / (trials + 1)  # shifted, since even a rate of 0 has an error
    errors = np.sqrt(rates * (1 - rates) / trials)
    weights = errors**-2
    found = _fitted(xs, ys[None], weights)
    expected = _curve(found, xs)[0]
    chi2 = float((weights * (ys - expected) ** 2).sum())
    scatter = math.sqrt(chi2 / max(1, len(xs) - 4))
    noise = np.random.default_rng(seed).standard_normal((resamples, len(xs))) * errors * max(1.0, scatter)
    others = _fitted(xs, expected + noise, weights)

    def estimate(column: int) -> Estimate:
        return _estimate(found[0, column], others[:, column])

    def at(compute: float) -> tuple[float, Estimate]:
        amount = np.array([compute])
        return compute, _estimate(_curve(found, amount)[0, 0], _curve(others, amount)[:, 0])

    last = float(xs.max())
    mean = float((weights * ys).sum() / weights.sum())
    rise = (float((weights * (ys - mean) ** 2).sum()) - chi2) / max(1.0, scatter) ** 2
    passed = float((others[:, 2] < last).mean())
    at_least = float(np.quantile(others[:, 2], 1 - _SURE))
    missing = ""
    if found[0, 1] <= found[0, 0] or rise < _RISE:
        missing = "no rise beyond noise: use more steps, or more test problems (--eval-sample-problems)"
    elif found[0, 2] >= last or passed < _SURE:
        missing = f"the midpoint is not certainly passed (in {passed:.0%} of the replicates): train longer"
    drawn = [at(float(x)) for x in np.linspace(0, last, 41)]
    if missing:
        return Curve(estimate(0), None, None, None, missing, at_least, scatter, drawn, [])
    ahead = [at(times * last) for times in (2, 4, 10)]
    return Curve(estimate(0), estimate(1), estimate(2), estimate(3), "", at_least, scatter, drawn, ahead)


def _estimate(value: float, replicates: Array) -> Estimate:
    low, high = np.quantile(replicates, (1 - _SURE, _SURE))
    return Estimate(float(value), float(low), float(high))


def _share(xs: Array, midpoint: Array, exponent: Array) -> Array:
    """1 / (1 + (C_mid / C)^B) for every pair of midpoint and exponent [..., 1] and amounts [n]; 0 at C = 0."""
    with np.errstate(divide="ignore", over="ignore"):
        share: Array = 1 / (1 + (midpoint / xs) ** exponent)
    return share


def _curve(parameters: Array, xs: Array) -> Array:
    """Rates [replicates, n] of parameters [replicates, 4]: R0, A, C_mid, B."""
    start, end, midpoint, exponent = (parameters[:, [column]] for column in range(4))
    found: Array = start + (end - start) * _share(xs, midpoint, exponent)
    return found


def _fitted(xs: Array, ys: Array, weights: Array) -> Array:
    """Parameters [replicates, 4] that fit the rates ys [replicates, n] best."""
    positive = xs[xs > 0]
    low = np.log([positive.min() / _BEYOND, _EXPONENTS[0]])
    high = np.log([positive.max() * _BEYOND, _EXPONENTS[1]])
    axes = [np.linspace(a, b, count) for a, b, count in zip(low, high, _GRID, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(1, -1, 2)
    spacing = np.array([axis[1] - axis[0] for axis in axes])
    around = np.stack(np.meshgrid(*[np.linspace(-1, 1, _NARROWER)] * 2, indexing="ij"), -1).reshape(1, -1, 2)
    for _ in range(_ROUNDS):
        start, end, cost = _linear(_share(xs, np.exp(grid[..., :1]), np.exp(grid[..., 1:])), ys, weights)
        rows, best = np.arange(len(ys)), cost.argmin(-1)
        place = grid[rows if len(grid) > 1 else 0, best]
        chosen = np.stack([start[rows, best], end[rows, best], *np.exp(place).T], -1)
        grid = np.clip(place[:, None] + around * spacing, low, high)
        spacing = spacing * 2 / (_NARROWER - 1)
    return chosen


def _linear(share: Array, ys: Array, weights: Array) -> tuple[Array, Array, Array]:
    """(R0, A, cost), each [replicates, grid], that fit best within 0 <= R0 <= A <= 1.

    Args:
        share: shape [replicates or 1, grid, n], the share of the rise.
        ys: shape [replicates, n], the rates.
    """
    rest, sums = 1 - share, "rgn,n->rg"
    aa, bb = np.einsum(sums, rest**2, weights), np.einsum(sums, share**2, weights)
    ab = np.einsum(sums, rest * share, weights)
    weighted = ys * weights
    ya, yb = _projected(rest, weighted), _projected(share, weighted)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = aa * bb - ab**2
        start, end = (bb * ya - ab * yb) / scale, (aa * yb - ab * ya) / scale
        start_if_full, end_if_none = np.clip((ya - ab) / aa, 0, 1), np.clip(yb / bb, 0, 1)
    mean = np.broadcast_to((weighted.sum(-1) / weights.sum())[:, None], start.shape)
    steep = ~np.isfinite(start) | ~np.isfinite(end)
    end_first = np.where(end > 1, 1.0, end)
    start = np.where(end > 1, start_if_full, start)
    end = np.where(start < 0, np.nan_to_num(end_if_none), end_first)
    start = np.maximum(start, 0)
    flat = steep | (end < start)
    start, end = np.where(flat, mean, start), np.where(flat, mean, end)
    squares = (ys * weighted).sum(-1)[:, None]
    cost = squares - 2 * (start * ya + end * yb) + start**2 * aa + 2 * start * end * ab + end**2 * bb
    return start, end, cost


def _projected(share: Array, weighted: Array) -> Array:
    """Weighted sums over the points, [replicates, grid]; all replicates may share one grid."""
    if len(share) == 1:
        found: Array = weighted @ share[0].T
        return found
    result: Any = np.einsum("rgn,rn->rg", share, weighted)
    return np.asarray(result, float)
