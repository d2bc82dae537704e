"""What every stage shares that trains on problems."""

from __future__ import annotations

from pydantic import Field

from r1lite.config.optimizer import OptimizerConfig
from r1lite.config.problems import ProblemsConfig
from r1lite.config.watchdog import WatchdogConfig


class TrainConfig(WatchdogConfig, OptimizerConfig, ProblemsConfig):
    """A model that is changed, and measured on problems before and after."""

    eval_every: int = Field(0, ge=0)
    """Evaluate, greedily and for pass@k, every this many steps too; 0: only before and after."""
