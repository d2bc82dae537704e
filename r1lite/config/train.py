"""What every stage shares that trains on problems."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from r1lite.config.optimizer import OptimizerConfig
from r1lite.config.problems import ProblemsConfig
from r1lite.config.shard import ShardConfig
from r1lite.config.watchdog import WatchdogConfig


class TrainConfig(WatchdogConfig, ShardConfig, OptimizerConfig, ProblemsConfig):
    """A model that is changed, and measured on problems before and after."""

    eval_every: int = Field(0, ge=0)
    """Evaluate, greedily and for pass@k, every this many steps too; 0: only before and after."""
    keep_rollouts: Literal["all"] | Annotated[int, Field(ge=0)] = "all"
    """Keep the completions of all steps, or of so many newest ones (0: none). Those that are removed are lost to the
    report, `replay`, `r1lite reject` and trackers; the doctor and --resume don't need them."""
    checkpoint_dtype: Literal["float32", "own"] = "float32"
    """Precision of the weights in checkpoints: float32, as they are trained, or the one that the model's files had,
    such as bfloat16. The exact weights then lie in trainer.pt, so that --resume still goes on bit by bit."""
    offload_optimizer: bool = False
    """On a GPU: keep AdamW's moments and a copy of the weights that learn in the CPU's memory, and compute the update
    there: 8 bytes a weight less, for a slower step."""
    offload_reference: bool = False
    """On a GPU: keep the layers of the reference (distill: of the teacher) in the CPU's memory, and copy each to the
    GPU when it is its turn."""
    lora_rank: int = Field(0, ge=0)
    """Train adapters of this rank in place of the model's own weights, which serve as the reference too (needs peft);
    0: train all weights."""
    lora_alpha: float = Field(32.0, gt=0)
    """What an adapter adds is multiplied by this / --lora-rank."""
    lora_targets: str = "all-linear"
    """Layers that get an adapter: all-linear (all but the head), or names such as q_proj,v_proj."""
    base_quantization: Literal["none", "nf4"] = "none"
    """Hold the weights below an adapter in 4 bits (QLoRA, needs bitsandbytes): an eighth of what they take
    otherwise, for more time a step. An engine, and checkpoints, get them dequantized."""

    @model_validator(mode="after")
    def _quantized_below_an_adapter(self) -> TrainConfig:
        if self.base_quantization != "none" and not self.lora_rank:
            raise ValueError(
                f"--base-quantization {self.base_quantization} needs --lora-rank: weights in 4 bits can't be trained"
            )
        return self
