"""Optimizer, checkpoint and tracker settings that all training stages share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from r1lite.config.base import Section
from r1lite.config.names import HubRepository
from r1lite.rl.schedule import learning_rate


class OptimizerConfig(Section):
    """AdamW, its learning rate, micro-batches, checkpoints and trackers."""

    lr: float = Field(1e-6, gt=0)
    """Peak learning rate of AdamW."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning-rate schedule after the warm-up, over --steps."""
    min_lr_ratio: float = Field(0.1, ge=0, le=1)
    """Final learning rate of linear and cosine, as a share of the peak."""
    warmup_steps: int = Field(0, ge=0)
    """Steps of linear warm-up."""
    weight_decay: float = Field(0.0, ge=0)
    """AdamW's decoupled weight decay."""
    adam_beta1: float = Field(0.9, ge=0, lt=1)
    """AdamW's decay of the first moment."""
    adam_beta2: float = Field(0.999, ge=0, lt=1)
    """AdamW's decay of the second moment."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Gradients with a larger global norm are scaled down to this norm."""
    micro_batch_tokens: int = Field(16384, ge=1)
    """Tokens of one forward and backward pass, padding included; gradients don't depend on it."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""
    save_every: int = Field(25, ge=1)
    """Steps between checkpoints; one is also written at the end and on SIGINT or SIGTERM."""
    keep_checkpoints: int = Field(2, ge=1)
    """Number of newest checkpoints to keep."""
    accept_lost_records: bool = False
    """With --resume: continue even if earlier metrics, rollouts or all checkpoints are lost."""

    log_to: list[str] = Field([])
    """Trackers that receive the run's metrics as it runs: mlflow, tensorboard, trackio, wandb, or your own (entry point
    r1lite.trackers). A tracker that fails is dropped with a warning; `r1lite log` sends a finished run."""
    log_project: str = "r1lite"
    """Project or experiment name in the trackers."""

    push_to_hub: HubRepository | None = None
    """Upload the trained model and its card to this repository on the Hugging Face Hub (a new one is private)."""

    def lr_at(self, step: int, total_steps: int, *, peak: float | None = None) -> float:
        """Learning rate of step `step` (0-based) of `total_steps`; `peak` is `lr` by default."""
        return learning_rate(
            step,
            peak=self.lr if peak is None else peak,
            total_steps=total_steps,
            warmup_steps=self.warmup_steps,
            schedule=self.lr_schedule,
            min_ratio=self.min_lr_ratio,
        )
