"""Settings of memory estimates before a run."""

from __future__ import annotations

from pydantic import Field, model_validator

from r1lite.config.base import Section


class PlanningConfig(Section):
    """Estimates from the model's configuration, without its weights."""

    estimate: bool = False
    """Print the estimated memory of each rank and each engine, and suggest a layout. Nothing is loaded, written or
    run."""
    estimate_ranks: int | None = Field(None, ge=1, le=100_000)
    """With --estimate: number of ranks; by default as many as the launcher started."""
    estimate_gpus: int | None = Field(None, ge=1, le=100_000)
    """With --estimate: suggest a layout for this many GPUs with --estimate-gib each."""
    estimate_gib: float | None = Field(None, gt=0, le=100_000)
    """Memory of each GPU of --estimate-gpus, in GiB."""

    @model_validator(mode="after")
    def _only_with_estimate(self) -> PlanningConfig:
        if not self.estimate and (self.estimate_ranks or self.estimate_gpus or self.estimate_gib):
            raise ValueError("--estimate-ranks, --estimate-gpus and --estimate-gib need --estimate")
        if (self.estimate_gpus is None) != (self.estimate_gib is None):
            raise ValueError("--estimate-gpus and --estimate-gib belong together: the number of GPUs and their GiB")
        return self
