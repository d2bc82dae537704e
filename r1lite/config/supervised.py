"""Supervised fine-tuning: settings that sft, dpo and distill share, and those of sft and dpo."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

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


class DPOConfig(SupervisedConfig):
    """Direct preference optimization (arXiv:2305.18290) and its identity form (IPO, arXiv:2310.12036) on pairs."""

    stage: ClassVar[str] = "dpo"

    data: str | None = None
    """Pairs: a JSONL, JSON or Parquet file, a folder, or OWNER/NAME on the Hub, with the columns chosen and rejected,
    and prompt or question; pairs.jsonl from r1lite reject has this form."""
    loss: Literal["dpo", "ipo"] = "dpo"
    """dpo: -log sigmoid(beta h); ipo: (h - 1/(2 beta))^2. h is the log-ratio to the reference of the chosen answer
    minus that of the rejected one; for ipo the means over tokens, as the authors later advised and as in TRL."""
    beta: float = Field(0.1, gt=0)
    """Strength of the pull towards the reference, which is the initial model."""
    label_smoothing: float = Field(0.0, ge=0, lt=0.5)
    """dpo: assumed share of pairs with a wrong label (conservative DPO)."""
    rows_per_step: int = Field(32, ge=1)
    """Pairs per optimizer step."""
    epochs: float = Field(1.0, gt=0)
    """Number of passes over the pairs, each in a new order."""
    packing: Literal["auto", "off"] = "auto"
    """Has no effect: pairs are never packed."""
    lr: float = Field(1e-6, gt=0)
    """Peak learning rate of AdamW; 1e-4 suits nano."""

    @model_validator(mode="after")
    def _smoothing_is_dpos(self) -> DPOConfig:
        if self.loss == "ipo" and self.label_smoothing:
            raise ValueError(f"--label-smoothing {self.label_smoothing:g} has no effect without --loss dpo")
        return self
