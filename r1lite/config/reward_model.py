"""Learning a reward from pairs."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from r1lite.config.base import RunConfig
from r1lite.config.optimizer import OptimizerConfig
from r1lite.config.shard import ShardConfig
from r1lite.config.watchdog import WatchdogConfig


class RewardModelConfig(WatchdogConfig, ShardConfig, OptimizerConfig, RunConfig):
    """Train a Bradley-Terry reward model on pairs of a preferred and a rejected answer."""

    stage: ClassVar[str] = "reward-model"

    source: str | None = None
    """Pairs with the columns prompt, chosen and rejected (text, or chat messages): a JSONL (.gz) or Parquet file, a
    folder with train.* and test.*, or the id of a data set on the Hub."""
    test_source: str | None = None
    """File with the held-out pairs; by default the folder's test.*, the Hub's test split, or --hold-out of the
    source."""
    train_split: str = "train"
    """The Hub data set's split to train on."""
    test_split: str = "test"
    """The Hub data set's split that is held out; if there is none, --hold-out of the other."""
    hold_out: float = Field(0.1, gt=0, lt=1)
    """Share of the prompts, chosen by a hash, whose pairs are held out where nothing else is."""
    model: str | None = None
    """Hugging Face id or path of a causal language model, or of a reward model to go on from; nano by default."""
    template: str | None = None
    """Layout of prompt and answer: chat, short, r1_zero, or your own text with {question} in it. By default chat if the
    tokenizer has a chat template, otherwise short. It is kept with the model."""
    max_tokens: int = Field(1024, ge=2)
    """Longest prompt and answer together, in tokens."""
    overlong: Literal["error", "drop"] = "error"
    """What becomes of pairs that are longer: refused at the start, or left out and counted."""
    lr: float = Field(1e-5, gt=0)
    """Peak learning rate of AdamW; 5e-4 for nano where none is given."""
    epochs: int = Field(1, ge=1)
    """Passes over the pairs."""
    batch_pairs: int = Field(32, ge=1)
    """Pairs of one optimizer step."""
    margin: float = Field(0.0, ge=0)
    """The loss asks the chosen answer's reward to be higher by this."""
    margin_column: str | None = None
    """Column with a margin >= 0 for each pair, added to --margin."""
    centre_coef: float = Field(0.0, ge=0)
    """Weight of (reward of the chosen + reward of the rejected)^2, which keeps rewards near 0; 0.01 is usual."""
    eval_every: int = Field(0, ge=0)
    """Measure on the held-out pairs every this many steps too; 0: only before and after."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the forward pass; weights and optimizer stay float32. auto: float32 on CPU, bfloat16 on CUDA."""

    @model_validator(mode="after")
    def _has_pairs(self) -> RewardModelConfig:
        if self.source is None and not self.resume:
            raise ValueError("--source is needed: the pairs to learn from (a file, a folder, or an id on the Hub)")
        return self
