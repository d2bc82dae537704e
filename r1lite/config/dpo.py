"""Settings of `r1lite dpo`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from r1lite.config.supervised import SupervisedConfig


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
