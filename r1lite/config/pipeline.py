"""A pipeline of stages, as a recipe writes it."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from r1lite.config.base import Section


class PipelineConfig(Section):
    """Run a recipe of stages, each made of what earlier ones made, and compare the models at the end.

    The same command again goes on where it was stopped, be it by kill -9; finished stages are not run again."""

    stage: ClassVar[str] = "r1"

    out: str | None = None
    """Folder of the whole pipeline; by default a dated name under runs/. With one that exists, its pipeline goes on."""
    jobs: int = Field(1, ge=1)
    """Stages that run at the same time, where none needs the other."""
    check: bool = False
    """Only check the recipe and show its stages."""
    trust: bool = False
    """Go on with stages whose folders name code that the recipe does not."""
    quiet: bool = False
    """Print errors and the final table only."""
    common: dict[str, Any] = Field(default_factory=dict)
    """Recipes only: settings of every stage that has them."""
    models: dict[str, str] = Field(default_factory=dict)
    """Recipes only: models that are there already, by name: nano, a Hub id or a path."""
    stages: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: by name, in order: `stage` (grpo, ppo, sft, distill, reject, cold-start, pretrain), `inputs` (its
    model, teacher, tokenizer, data or rollouts, each the name of an earlier stage or of a model) and `settings`."""
    evaluate: dict[str, Any] = Field(default_factory=dict)
    """Recipes only: settings of the final evaluation."""
    compare: dict[str, str | dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: rows of the final table: what it is called, and which stage or model it is; or `model` and
    `settings` of an evaluation of its own."""
    observations: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Recipes only: what the table should show: `row`, `than` (another row), `measure` (accuracy, greedy, format,
    language) and `wanted` (higher, lower, kept)."""
