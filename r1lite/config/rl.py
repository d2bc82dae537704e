"""Reinforcement learning: what grpo and ppo share, and what is their own."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from r1lite.config.rollout import RolloutConfig
from r1lite.config.train import TrainConfig


class RLConfig(RolloutConfig, TrainConfig):
    """Sampling groups, scoring them, and learning from the scores."""

    reward: str | None = None
    """Formula over verifiers, such as "math + 0.1*format"; by default the task's. Your own: module:function."""
    verifiers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: options of the reward's verifiers by name; `use` among them makes the name an alias."""
    score_workers: int | None = Field(None, ge=0)
    """Processes that score completions under a deadline, and are replaced when they hang or crash; 0: score in the
    training process. By default 0 for the verifiers of ours and 1 for yours."""
    score_timeout_s: float = Field(30.0, gt=0)
    """Seconds after which a completion that is scored in another process is given up, and left unscored."""
    max_unscored_rate: float = Field(0.1, ge=0, le=1)
    """The run stops when more than this share of a step's completions could not be scored."""
    steps: int = Field(500, ge=1)
    """Steps; one step samples prompts_per_step * group_size completions."""
    prompts_per_step: int = Field(16, ge=1)
    """Problems a step (P)."""
    group_size: int = Field(8, ge=2)
    """Completions per problem (G)."""
    temperature: float = Field(1.0, gt=0)
    """Sampling temperature; log-probabilities are those of the tempered distribution."""
    updates_per_rollout: int = Field(1, ge=1)
    """Passes over each step's completions."""
    minibatches: int = Field(1, ge=1)
    """Optimizer steps a pass; whole groups are dealt out to them."""
    clip_low: float = Field(0.2, ge=0, lt=1)
    """The ratio new/old policy is clipped below at 1 - this."""
    clip_high: float = Field(0.2, ge=0)
    """The ratio new/old policy is clipped above at 1 + this."""
    kl_coef: float = Field(0.0, ge=0)
    """Weight of KL(policy || reference), estimator k3; 0 keeps no reference model in memory."""

    @model_validator(mode="after")
    def _minibatches_hold_groups(self) -> RLConfig:
        if self.minibatches > self.prompts_per_step:
            raise ValueError(
                f"--minibatches must be <= --prompts-per-step = {self.prompts_per_step}, got {self.minibatches}: "
                "a group is never split"
            )
        return self


class GRPOConfig(RLConfig):
    """Group relative policy optimization (arXiv:2402.03300) from rewards that rules can check."""

    stage: ClassVar[str] = "grpo"

    advantage_scale: Literal["std", "none"] = "std"
    """Divide group-centred rewards by the group's standard deviation (GRPO), or not (Dr. GRPO)."""
