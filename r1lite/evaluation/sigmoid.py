"""Where learning goes: ScaleRL's curve of a held-out rate against compute, with bootstrap intervals (arXiv:2510.13786).

    R(C) = R0 + (A - R0) / (1 + (C_mid / C)^B),   R(0) = R0

R0 is the rate before training, A the one that more compute approaches, C_mid the compute at half of the way, B how
steep the rise is. For given C_mid and B the curve is linear in R0 and A, which are solved for in closed form (variable
projection); C_mid and B are searched on a grid that is narrowed, so that no starting value decides what is found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST = 6  # different amounts of compute, for four parameters
_EXPONENTS = (0.2, 20.0)
_BEYOND = 10.0  # C_mid is searched from the first amount of compute / this to the last one times this
_GRID, _NARROWER, _ROUNDS = (56, 36), 7, 5
_SURE = 0.975
_RISE = 11.34  # chi-squared of three degrees of freedom that chance exceeds one time in a hundred
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Point:
    """A rate in [0, 1] that was measured after `compute` (>= 0, any unit), as sure as that of `trials` coin tosses."""

    compute: float
    rate: float
    trials: float

    @property
    def error(self) -> float:
        """Standard error, from the rate moved a little towards 1/2 (Agresti and Coull 1998)."""
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
    """A fitted curve. What the points don't tell is None, and `missing` says why."""

    start: Estimate  # R0
    end: Estimate | None  # A
    midpoint: Estimate | None  # C_mid
    exponent: Estimate | None  # B
    missing: str
    midpoint_at_least: float  # lower end of C_mid's interval
    scatter: (
        float  # of the points about the curve, in their standard errors; about 1 if only the problems' noise is there
    )
    drawn: list[tuple[float, Estimate]]  # the curve at some amounts of compute, up to the last one
    ahead: list[tuple[float, Estimate]]  # at 2, 4 and 10 times the last one; empty where A is not named


def fit(points: Sequence[Point], *, resamples: int = 1000, seed: int = 0) -> Curve:
    """Weighted least squares, and intervals by the parametric bootstrap.

    A point's standard error is sqrt(R (1 - R) / trials) with R of the curve, since a rate that came out low by chance
    must not count for more; the first of two fits takes the measured rates.

    A replicate is the fitted curve with normal noise at each point: that standard error (the problems' binomial noise),
    times the scatter of the points about the curve where that is more than 1,
    sqrt(chi^2 / degrees of freedom). So what differs from run to run counts too, as far as it changes from point to
    point. Errors are taken as independent, and intervals are about the problems that were measured.

    Args:
        points: of one run or of several, in any order.
        resamples: replicates, >= 40.
        seed: of their noise.

    Raises:
        ValueError: fewer than `FEWEST` different amounts of compute, or a point that makes no sense.
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
    rates = (_curve(found, xs)[0] * trials + 0.5) / (trials + 1)  # a curve that begins at 0 is not known without error
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
        missing = "no rise beyond noise: more steps, or more test problems (--eval-sample-problems)"
    elif found[0, 2] >= last or passed < _SURE:
        missing = f"the midpoint is not passed for sure (by {passed:.0%} of the replicates): go on until it is"
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
        share: [replicates or 1, grid, n], how much of the way is gone.
        ys: [replicates, n].
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
    """Sums over the points [replicates, grid]; one grid may serve all replicates."""
    if len(share) == 1:
        found: Array = weighted @ share[0].T
        return found
    result: Any = np.einsum("rgn,rn->rg", share, weighted)
    return np.asarray(result, float)
