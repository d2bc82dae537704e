"""`r1lite grpo`: reinforcement learning with rule-based rewards."""

from __future__ import annotations

from typing import Any

from r1lite.config import GRPOConfig
from r1lite.grpo.assembly import make_learner, train
from r1lite.training.estimate import show_estimate


def run(config: GRPOConfig) -> dict[str, Any]:
    """Trains a model and evaluates it before and after; see `grpo.assembly.train`.

    With --estimate it only prints the memory that this needs (`training.estimate`).
    """
    if config.estimate:
        return show_estimate(config)
    return train(config, make_learner)
