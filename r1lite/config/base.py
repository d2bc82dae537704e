"""Base classes of the stages' configurations."""

from __future__ import annotations

import typing
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from r1lite.config.bounds import beyond


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
    """Flags that may be repeated; their values are joined by commas. Of any other flag, the last value counts."""

    @model_validator(mode="before")
    @classmethod
    def _no_truth_values_for_numbers(cls, values: Any) -> Any:
        """Rejects booleans for numeric fields: YAML's `lr: yes` must not become 1.0."""
        for name, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(name)
            if isinstance(value, bool) and field is not None and _is_number(field.annotation):
                raise ValueError(f"--{name.replace('_', '-')} must be a number, got {value}")
        return values

    @model_validator(mode="after")
    def _within_reason(self) -> Section:
        if wrong := beyond(self):
            raise ValueError("\n".join(wrong))
        return self


def _is_number(annotation: Any) -> bool:
    kinds = {annotation, *typing.get_args(annotation)}
    return bool(kinds & {int, float}) and bool not in kinds


class RunConfig(Section):
    """Settings of every stage that writes a run directory."""

    out: str | None = Field(None, min_length=1)
    """Run directory; by default a dated name under runs/."""
    resume: bool = False
    """Continue the run in --out (without --out: the newest under runs/) from its last checkpoint."""
    trust: bool = False
    """Allow files in a run or a data set to name code from outside r1lite, and import it. Without --trust such files
    are refused; see SECURITY.md."""
    seed: int = Field(0, ge=0)
    """Random seed of the order of problems and of every sampled token."""
    device: str = "auto"
    """Device: auto, cpu, cuda or cuda:N."""
    threads: int | None = Field(None, ge=1, le=512)
    """Number of CPU threads; by default OMP_NUM_THREADS if it is set, otherwise one per available core, at most 8. Runs
    with the same number give bit-identical results."""
    report: bool = True
    """Write report.html into the run directory at the end; `r1lite report` writes it at any time."""
    quiet: bool = False
    """Print errors and the final summary only."""
    verbose: bool = False
    """Print one line per step, and messages about the work between steps."""

    @model_validator(mode="after")
    def _one_loudness(self) -> RunConfig:
        if self.quiet and self.verbose:
            raise ValueError("--quiet and --verbose contradict each other")
        return self
