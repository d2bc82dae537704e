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
    lora_rank: int = Field(0, ge=0)
    """Train adapters of this rank in place of the model's own weights, which serve as the reference too (needs peft);
    0: train all weights."""
    lora_alpha: float = Field(32.0, gt=0)
    """What an adapter adds is multiplied by this / --lora-rank."""
    lora_targets: str = "all-linear"
    """Layers that get an adapter: all-linear (all but the head), or names such as q_proj,v_proj."""
