"""Measures how time and memory grow with the length of the text, for fillings that are known to be slow."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from verifiers.audit.cases import FILLS, long_text
from verifiers.audit.patience import HANGS, Clock, is_late
from verifiers.core import Completion, Problem
from verifiers.pool import Pool

_SLOW_S = 1.0  # CPU time for one text; beyond it, longer texts of the same filling are not tried
_STEEP = 1.6  # exponent from which growth is not linear, with room for noise
_NOTICEABLE_S = 0.02
_REPEATS = 2  # measurements of a filling that seems steep: a busy machine must not look like a slow verifier


@dataclass(frozen=True, slots=True)
class Growth:
    """Cost of one filling."""

    fill: str
    sizes: tuple[int, ...]  # characters
    cpu_s: tuple[float | None, ...]  # None: past the deadline
    mib: float  # growth of the worker's peak memory over all of them
    exponent: float | None  # of time by size; None if all texts are too quick to tell

    @property
    def is_steep(self) -> bool:
        """True if all texts got a verdict and the time grows faster than the length."""
        last = self.cpu_s[-1]
        return self.exponent is not None and self.exponent > _STEEP and last is not None and last > _NOTICEABLE_S

    def fastest(self, again: Growth | None) -> Growth:
        """The smaller time of two measurements for each size, which load on the machine affects least."""
        if again is None or again.sizes != self.sizes or None in again.cpu_s:
            return self
        times = tuple(min(one or 0.0, other or 0.0) for one, other in zip(self.cpu_s, again.cpu_s, strict=True))
        return replace(self, cpu_s=times, exponent=exponent(self.sizes, times))

    @property
    def problem(self) -> str:
        """Description of the problem, or ""."""
        for size, spent in zip(self.sizes, self.cpu_s, strict=True):
            if spent is None:
                return f"no verdict within the deadline on {size:,} characters"
        last = self.cpu_s[-1] or 0.0
        if self.is_steep:
            return f"time grows like length^{self.exponent:.1f}: {last:.2f} s for {self.sizes[-1]:,} characters"
        if last > _SLOW_S * 5:
            return f"{last:.1f} s for {self.sizes[-1]:,} characters"
        return ""


def measure(pool: Pool, problem: Problem, sizes: Sequence[int], clock: Clock) -> list[Growth]:
    """Measures every filling at growing sizes, until it gets slow or the time is up.

    Args:
        pool: one worker, for `timed(reward)`.
    """
    found: list[Growth] = []
    list(pool.map([(problem, Completion("4"))] * 2))  # loading at the first call is not measured
    for fill in FILLS:
        growth = _measured(pool, problem, fill, sizes, clock)
        for _ in range(_REPEATS):
            if growth is None or not growth.is_steep:
                break
            growth = growth.fastest(_measured(pool, problem, fill, sizes, clock))
        if growth is None:
            return found
        found.append(growth)
        if sum(None in growth.cpu_s for growth in found) >= HANGS:
            return found
    return found


def _measured(pool: Pool, problem: Problem, fill: str, sizes: Sequence[int], clock: Clock) -> Growth | None:
    """Measures one filling; None if the time is up."""
    times: list[float | None] = []
    memory = 0.0
    for size in sizes:
        if clock.is_over:
            return None
        (score,) = pool.map([(problem, Completion(long_text(fill, size)))])
        if score.error:
            if is_late(score):
                times.append(None)
                break
            times.append(0.0)  # exceptions are findings of another family
            continue
        measured = json.loads(score.verdicts["v"].detail)
        times.append(measured["cpu_s"])
        memory += measured["mib"]
        if measured["cpu_s"] > _SLOW_S:
            break
    used = tuple(sizes[: len(times)])
    return Growth(fill, used, tuple(times), round(memory, 1), exponent(used, times))


def exponent(sizes: Sequence[int], times: Sequence[float | None]) -> float | None:
    """Returns the slope of log(time) over log(size) by least squares, over the times long enough to be significant."""
    points = [(math.log(n), math.log(t)) for n, t in zip(sizes, times, strict=True) if t is not None and t > 0.001]
    if len(points) < 2:
        return None
    return statistics.linear_regression(*zip(*points, strict=True)).slope
