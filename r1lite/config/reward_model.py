"""Settings of `r1lite reward-model`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from r1lite.config.base import RunConfig
from r1lite.config.optimizer import OptimizerConfig
from r1lite.config.train import ShardConfig, WatchdogConfig


class RewardModelConfig(WatchdogConfig, ShardConfig, OptimizerConfig, RunConfig):
    """Train a Bradley-Terry reward model on pairs of a preferred and a rejected answer."""

    stage: ClassVar[str] = "reward-model"

    source: str | None = None
    """Pairs with the columns prompt or question, chosen and rejected (text, or chat messages): a JSONL (.gz) or Parquet
    file, a folder with train.* and test.*, or the id of a data set on the Hub."""
    test_source: str | None = None
    """File with the held-out pairs; by default the folder's test.*, the Hub's test split, or --hold-out of the
    source."""
    train_split: str = "train"
    """Split of the Hub data set to train on."""
    test_split: str = "test"
    """Split of the Hub data set with the held-out pairs; if it doesn't exist, --hold-out of the training split."""
    hold_out: float = Field(0.1, gt=0, lt=1)
    """Share of the prompts, chosen by a hash, whose pairs are held out if there are no other held-out pairs."""
    model: str | None = None
    """Hugging Face id or path of a causal language model, or of a reward model to train further; nano by default."""
    template: str | None = None
    """Layout of prompt and answer: chat, short, r1_zero, or your own text that contains {question}. By default chat if
    the tokenizer has a chat template, otherwise short. It is saved with the model."""
    max_tokens: int = Field(1024, ge=2)
    """Largest number of tokens of prompt and answer together."""
    overlong: Literal["error", "drop"] = "error"
    """Treatment of longer pairs. error: the run ends at the start; drop: they are left out and counted."""
    lr: float = Field(1e-5, gt=0)
    """Peak learning rate of AdamW; for nano 5e-4 by default."""
    epochs: float = Field(1.0, gt=0)
    """Number of passes over the pairs, each in a new order."""
    steps: int | None = Field(None, ge=1)
    """Number of optimizer steps, instead of --epochs."""
    batch_pairs: int = Field(32, ge=1)
    """Pairs per optimizer step."""
    margin: float = Field(0.0, ge=0)
    """Margin in the loss by which the chosen answer's reward should be higher."""
    margin_column: str | None = None
    """Column with a margin >= 0 for each pair, added to --margin."""
    centre_coef: float = Field(0.0, ge=0)
    """Weight of (chosen reward + rejected reward)^2 in the loss, which keeps rewards near 0; 0.01 is usual."""
    eval_every: int = Field(0, ge=0)
    """Measure on the held-out pairs also every this many steps; 0: only before and after training."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the forward pass; weights and optimizer stay float32. auto: float32 on CPU, bfloat16 on CUDA."""

    @model_validator(mode="after")
    def _has_pairs(self) -> RewardModelConfig:
        if self.source is None and not self.resume:
            raise ValueError("--source is required: the pairs to learn from (a file, a folder, or an id on the Hub)")
        return self
