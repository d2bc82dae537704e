"""Learning from pairs without a reward model."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from r1lite.config.supervised import SupervisedConfig


class DPOConfig(SupervisedConfig):
    """Direct preference optimization (arXiv:2305.18290) and its identity form (IPO, arXiv:2310.12036) on pairs."""

    stage: ClassVar[str] = "dpo"

    data: str | None = None
    """Pairs: a JSONL, JSON or Parquet file, a folder, or OWNER/NAME on the Hub, with the columns chosen and rejected,
    and prompt or question; pairs.jsonl of r1lite reject is one."""
    loss: Literal["dpo", "ipo"] = "dpo"
    """dpo: -log sigmoid(beta h); ipo: (h - 1/(2 beta))^2. h: log-ratios to the reference, chosen less rejected; of ipo
    their means over tokens, as the authors came to advise and TRL has it."""
    beta: float = Field(0.1, gt=0)
    """How strongly the policy is held to the reference, which is the model it began as."""
    label_smoothing: float = Field(0.0, ge=0, lt=0.5)
    """dpo: the share of pairs whose label is taken to be wrong (conservative DPO)."""
    rows_per_step: int = Field(32, ge=1)
    """Pairs an optimizer step."""
    epochs: float = Field(1.0, gt=0)
    """Passes over the pairs, each in an order of its own."""
    packing: Literal["auto", "off"] = "auto"
    """Pairs are not packed: both settings mean the same."""
    lr: float = Field(1e-6, gt=0)
    """Peak learning rate of AdamW; 1e-4 suits nano."""

    @model_validator(mode="after")
    def _smoothing_is_dpos(self) -> DPOConfig:
        if self.loss == "ipo" and self.label_smoothing:
            raise ValueError(f"--label-smoothing {self.label_smoothing:g} has no effect without --loss dpo")
        return self
