"""Settings that all stages share that train a model and evaluate it on problems."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from r1lite.config.base import Section
from r1lite.config.optimizer import OptimizerConfig
from r1lite.config.problems import ProblemsConfig


class ShardConfig(Section):
    """Replicated or sharded models."""

    shard: Literal["none", "grad", "full"] = "none"
    """With several ranks (torchrun). none: each rank holds the whole model, and gradients are summed; full: each rank
    holds a shard of weights, gradients and optimizer state, and a layer's weights are gathered when they are needed
    (FSDP2); grad: like full, but weights stay gathered from the forward to the backward pass."""
    shard_copies: int = Field(1, ge=1)
    """With --shard full or grad: number of copies of the model among the ranks, for example one per machine (HSDP). A
    copy is held by consecutive ranks, which exchange weights; copies exchange only gradients."""

    def in_parts(self, ranks: int) -> bool:
        """True if this many ranks hold models in parts."""
        return ranks > 1 and self.shard != "none"

    @model_validator(mode="after")
    def _copies_of_parts(self) -> ShardConfig:
        if self.shard_copies > 1 and self.shard == "none":
            raise ValueError(
                f"--shard-copies {self.shard_copies} with --shard none: each rank already holds a whole copy; use "
                "--shard full"
            )
        return self


class WatchdogConfig(Section):
    """Seconds without progress after which a run ends and prints the stacks of its threads; 0: never."""

    stall_load_s: float = Field(3600.0, ge=0)
    """Time limit in seconds for loading the model and the problems. When it is exceeded, the run ends and prints the
    stacks of its threads. 0: no limit."""
    stall_rollout_s: float = Field(3600.0, ge=0)
    """The same for sampling the completions of one step, or one part of an evaluation."""
    stall_score_s: float = Field(1800.0, ge=0)
    """The same for scoring the completions of one step."""
    stall_train_s: float = Field(3600.0, ge=0)
    """The same for the updates of one step."""
    stall_save_s: float = Field(1800.0, ge=0)
    """The same for writing a checkpoint or the records of a step."""
    stall_rank_s: float = Field(120.0, ge=0)
    """With several ranks: seconds without a heartbeat of a rank after which the run ends; 0: never."""


class TrainConfig(WatchdogConfig, ShardConfig, OptimizerConfig, ProblemsConfig):
    """Evaluation, checkpoints, CPU offloading and LoRA."""

    eval_problems: int = Field(1000, ge=0)
    """Number of test problems, the first of the test set, answered greedily before and after training. 0: no
    evaluation at all, whatever --eval-every is."""
    eval_every: int = Field(0, ge=0)
    """Evaluate, greedily and for pass@k, also every this many steps; 0: only before and after training
    (--eval-problems 0: never)."""
    keep_rollouts: Literal["all"] | Annotated[int, Field(ge=0)] = "all"
    """Keep the completions of all steps, or of this many newest steps (0: none). The report, `replay`, `r1lite reject`
    and trackers can't show removed completions; the doctor and --resume don't need them."""
    checkpoint_dtype: Literal["float32", "own"] = "float32"
    """Precision of the weights in checkpoints. float32: as trained; own: that of the model's files, such as bfloat16.
    With own, trainer.pt also holds the exact weights, so that --resume stays bit-identical."""
    offload_optimizer: bool = False
    """On a GPU: keep AdamW's moments and a copy of the trained weights in CPU memory, and compute the update there.
    Saves 8 bytes of GPU memory per weight; steps are slower."""
    offload_reference: bool = False
    """On a GPU: keep the layers of the reference (distill: of the teacher) in CPU memory, and copy each layer to the
    GPU when it is needed."""
    lora_rank: int = Field(0, ge=0)
    """Train LoRA adapters of this rank (needs peft). The model's own weights stay fixed and are also the reference.
    Checkpoints hold weights with the adapter merged in, and the adapter alone in adapter/. 0: train all weights."""
    lora_alpha: float = Field(32.0, gt=0)
    """The adapter's output is multiplied by this / --lora-rank."""
    lora_targets: str = "all-linear"
    """Layers with an adapter: all-linear (all but the head), or names such as q_proj,v_proj."""
    base_quantization: Literal["none", "nf4"] = "none"
    """nf4: hold the base weights under an adapter in 4 bits (QLoRA, needs bitsandbytes): an eighth of the memory, but
    slower steps. Engines and checkpoints get dequantized weights."""

    @model_validator(mode="after")
    def _quantized_below_an_adapter(self) -> TrainConfig:
        if self.base_quantization != "none" and not self.lora_rank:
            raise ValueError(
                f"--base-quantization {self.base_quantization} needs --lora-rank: weights in 4 bits can't be trained"
            )
        return self
