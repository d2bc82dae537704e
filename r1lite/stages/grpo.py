"""`r1lite grpo`: reinforcement learning from rewards that rules can check."""

from __future__ import annotations

from typing import Any

from r1lite.config import GRPOConfig
from r1lite.grpo.assembly import make_learner, train
from r1lite.training.estimate import show_estimate


def run(config: GRPOConfig) -> dict[str, Any]:
    """Trains, and measures before and after; everything lies in the run directory. See `training.train`.

    With --estimate it only says what memory that would take (`training.estimate`).
    """
    if config.estimate:
        return show_estimate(config)
    return train(config, make_learner)
