"""Supervised fine-tuning: settings that sft, dpo and distill share."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from r1lite.config.train import TrainConfig


class SupervisedConfig(TrainConfig):
    """The training set of prompts with completions, and the order of its rows."""

    data: str | None = None
    """Training set: a JSONL, JSON or Parquet file, a folder with train.jsonl or train.parquet, or OWNER/NAME on the
    Hub. Rows have the form messages, ShareGPT, Alpaca, prompt/completion or question/answer."""
    data_split: str = "train"
    """Split of the set (or file of the folder) to learn from."""
    prompts: Literal["auto", "verbatim"] = "auto"
    """How prompts are built. auto: a question is put into --template, a `prompt` without a `question` is used as it is.
    verbatim: `prompt` is always used as it is, and conversations get no added instruction."""
    long_rows: Literal["error", "drop"] = "error"
    """Treatment of rows longer than --max-prompt-tokens, --max-completion-tokens or the model's context. error: the run
    ends; drop: they are left out."""
    allow_test_overlap: bool = False
    """Train even if the set contains questions of the evaluation; by default this is an error."""
    rows_per_step: int = Field(32, ge=1)
    """Rows per optimizer step."""
    epochs: float = Field(2.0, gt=0)
    """Number of passes over the set, each in a new order."""
    steps: int | None = Field(None, ge=1)
    """Number of optimizer steps, instead of --epochs."""
    packing: Literal["auto", "on", "off"] = "auto"
    """Pack several rows into one sequence; rows don't attend to one another. auto: on with CUDA, if the model supports
    it."""
    packed_tokens: int = Field(2048, ge=1)
    """Length of a packed sequence, in tokens; a longer row gets its own sequence."""
    lr: float = Field(5e-5, gt=0)
    """Peak learning rate of AdamW."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "cosine"
    """Learning-rate schedule after the warm-up, over all steps."""


class SFTConfig(SupervisedConfig):
    """Fine-tune a model on prompts with completions; the loss counts only the completions' tokens."""

    stage: ClassVar[str] = "sft"
