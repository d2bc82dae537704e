"""Fine-tuning on given text: what sft and distill share, and what is sft's own."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from r1lite.config.train import TrainConfig


class SupervisedConfig(TrainConfig):
    """A set of prompts with completions, and how it is gone through."""

    data: str | None = None
    """The set: a JSONL, JSON or Parquet file, a folder with train.jsonl or train.parquet, or OWNER/NAME on the Hub;
    its rows in the form messages, ShareGPT, Alpaca, prompt/completion or question/answer."""
    data_split: str = "train"
    """Which split (or file of the folder) of the set is learnt from."""
    prompts: Literal["auto", "verbatim"] = "auto"
    """What is before a completion. auto: questions are put into --template, a `prompt` without a `question` stands as
    it is. verbatim: `prompt` always stands as it is, and a conversation without our instruction."""
    long_rows: Literal["error", "drop"] = "error"
    """What becomes of rows above --max-prompt-tokens, --max-completion-tokens or the model's context."""
    allow_test_overlap: bool = False
    """Go on though questions of the evaluation stand in the set; by default that is refused."""
    rows_per_step: int = Field(32, ge=1)
    """Rows an optimizer step."""
    epochs: float = Field(2.0, gt=0)
    """Passes over the set, each in an order of its own."""
    steps: int | None = Field(None, ge=1)
    """Optimizer steps, in place of --epochs."""
    packing: Literal["auto", "on", "off"] = "auto"
    """Several rows in one sequence, none of which sees another. auto: with CUDA, where the model can do it."""
    packed_tokens: int = Field(2048, ge=1)
    """Length of a packed sequence; a longer row has one to itself."""
    lr: float = Field(5e-5, gt=0)
    """Peak learning rate of AdamW."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "cosine"
    """Schedule of the learning rate after the warm-up, over all steps."""


class SFTConfig(SupervisedConfig):
    """Fine-tune a model on prompts with completions; the loss is that of the completions alone."""

    stage: ClassVar[str] = "sft"
