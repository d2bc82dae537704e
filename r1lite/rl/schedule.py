"""Learning-rate schedules as functions of the step, so that no scheduler state has to be saved."""

from __future__ import annotations

import math


def learning_rate(
    step: int,
    *,
    peak: float,
    total_steps: int,
    warmup_steps: int = 0,
    schedule: str = "constant",
    min_ratio: float = 0.1,
) -> float:
    """The learning rate of step `step` (0-based).

    Warm-up rises linearly from peak / warmup_steps to peak. After it "constant" stays at peak, while "linear" and
    "cosine" fall to peak * min_ratio at the last step.

    Raises:
        ValueError: an unknown schedule.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, total_steps - 1 - warmup_steps)
    progress = min(1.0, progress)
    match schedule:
        case "constant":
            return peak
        case "linear":
            share = 1.0 - progress
        case "cosine":
            share = 0.5 * (1.0 + math.cos(math.pi * progress))
        case _:
            raise ValueError(f"unknown schedule '{schedule}'; known: constant, linear, cosine")
    return peak * (min_ratio + (1.0 - min_ratio) * share)
