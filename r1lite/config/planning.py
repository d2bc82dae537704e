"""What a run would hold, asked before there is one."""

from __future__ import annotations

from pydantic import Field, model_validator

from r1lite.config.base import Section


class PlanningConfig(Section):
    """Questions that are answered from the model's configuration, without its weights."""

    estimate: bool = False
    """Say what memory each rank and each engine would hold, and suggest a layout; nothing is loaded, written or run."""
    estimate_ranks: int | None = Field(None, ge=1, le=100_000)
    """With --estimate: for so many ranks; by default as many as the launcher has started."""
    estimate_gpus: int | None = Field(None, ge=1, le=100_000)
    """With --estimate: suggest a layout for so many GPUs of --estimate-gib each."""
    estimate_gib: float | None = Field(None, gt=0, le=100_000)
    """Memory of each of --estimate-gpus, in GiB."""

    @model_validator(mode="after")
    def _only_with_estimate(self) -> PlanningConfig:
        if not self.estimate and (self.estimate_ranks or self.estimate_gpus or self.estimate_gib):
            raise ValueError("--estimate-ranks, --estimate-gpus and --estimate-gib are questions of --estimate")
        if (self.estimate_gpus is None) != (self.estimate_gib is None):
            raise ValueError("--estimate-gpus and --estimate-gib belong together: so many GPUs of so many GiB")
        return self
