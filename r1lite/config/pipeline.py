"""Settings of `r1lite r1`: a pipeline of stages, written as a recipe."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from r1lite.config.base import Section


class PipelineConfig(Section):
    """Run a recipe of stages that build on each other's results, and compare the models at the end.

    The same command resumes a pipeline that was stopped, even by kill -9; finished stages are not run again."""

    stage: ClassVar[str] = "r1"

    out: str | None = Field(None, min_length=1)
    """Folder of the pipeline; by default a dated name under runs/. If it exists, its pipeline is resumed."""
    jobs: int = Field(1, ge=1)
    """Largest number of independent stages that run at the same time."""
    check: bool = False
    """Only check the recipe and print its stages."""
    trust: bool = False
    """Also resume stages whose folders name code that the recipe doesn't name."""
    quiet: bool = False
    """Print errors and the final table only."""
    common: dict[str, Any] = Field(default_factory=dict)
    """Recipes only: settings for every stage that has them."""
    models: dict[str, str] = Field(default_factory=dict)
    """Recipes only: existing models by name: nano, a Hub id or a path."""
    stages: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: the stages by name, in order. Each has `stage` (grpo, ppo, sft, dpo, distill, reject, cold-start,
    pretrain), `inputs` (its model, teacher, tokenizer, data or rollouts, each the name of an earlier stage or of a
    model) and `settings`."""
    evaluate: dict[str, Any] = Field(default_factory=dict)
    """Recipes only: settings of the final evaluation."""
    compare: dict[str, str | dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: rows of the final table by title: each the name of a stage or a model, or `model` and `settings` of
    a separate evaluation."""
    observations: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Recipes only: expected differences between rows of the table: `row`, `than` (another row), `measure` (accuracy,
    greedy, format, language) and `wanted` (higher, lower, kept)."""
