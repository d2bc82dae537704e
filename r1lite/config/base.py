"""What every configuration is, and what every stage with a run directory shares."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Section(BaseModel):
    """Base of every stage's configuration."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )

    stage: ClassVar[str]  # the sub-command
    repeatable: ClassVar[frozenset[str]] = frozenset()
    """Flags that may be given several times: the values are joined by commas. Of others the last one counts."""


class RunConfig(Section):
    """What every stage that makes a run directory shares."""

    out: str | None = None
    """Run directory; by default a dated name under runs/."""
    resume: bool = False
    """Continue the run in --out (without --out: the newest under runs/) from its last checkpoint."""
    seed: int = Field(0, ge=0)
    """Decides the order of problems and every sampled token."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""
    threads: int | None = Field(None, ge=1, le=512)
    """CPU threads; by default one per available core, at most 8. Results are bit-identical for
    the same number."""
    quiet: bool = False
    """Print errors and the final summary only."""
    verbose: bool = False
    """Print one line for every step, and what is done in between."""

    @model_validator(mode="after")
    def _one_loudness(self) -> RunConfig:
        if self.quiet and self.verbose:
            raise ValueError("--quiet and --verbose contradict each other")
        return self
