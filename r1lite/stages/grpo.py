"""`r1lite grpo` and `r1lite ppo`: reinforcement learning with rule-based rewards, without or with a critic."""

from __future__ import annotations

from typing import Any

from r1lite.config import RLConfig
from r1lite.grpo.assembly import make_learner, train
from r1lite.training.estimate import show_estimate


def run(config: RLConfig) -> dict[str, Any]:
    """Trains a model and evaluates it before and after; see `grpo.assembly.train`.

    With --estimate it only prints the memory that this needs (`training.estimate`).
    """
    return show_estimate(config) if config.estimate else train(config, make_learner)
