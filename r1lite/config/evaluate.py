"""Settings of `r1lite eval`."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, model_validator

from r1lite.config.on_ray import OnRayConfig


class EvalConfig(OnRayConfig):
    """Measure a model on test problems: greedy accuracy, pass@k and maj@k with intervals; or compare two models."""

    stage: ClassVar[str] = "eval"
    repeatable: ClassVar[frozenset[str]] = frozenset({"task", "source"})

    resume: bool = False
    """Show the results of the finished evaluation in --out. An unfinished one can't be resumed: start it again."""
    task: str = "gsm8k"
    """Task, or several as gsm8k,svamp or --task gsm8k --task svamp: names from r1lite tasks, reasoning_gym:NAME, or
    your own module:attr."""
    source: str | None = None
    """Source of the problems: hub, bundled, or your own file or folder; for several tasks gsm8k=PATH,svamp=PATH. By
    default chosen by task and model."""
    against: str | None = None
    """Compare problem by problem with this: the folder of another eval, or a model, which is measured too."""
    verifier: str | None = None
    """Formula over verifiers, such as "math * format"; a completion is right if it gets the highest value. By default
    the task's own verifier."""
    verifiers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: options of the formula's verifiers by name."""
    eval_problems: int = Field(100_000, ge=1)
    """Number of test problems, the first of the test set, answered greedily."""
    eval_temperature: float = Field(1.0, gt=0)
    """Sampling temperature for pass@k and maj@k."""
    maj_at: int | None = Field(None, ge=2)
    """Number of votes of maj@k, the first of a problem's samples; by default all --eval-samples."""

    @model_validator(mode="after")
    def _as_many_votes_as_samples(self) -> EvalConfig:
        if self.maj_at is not None and self.maj_at > self.eval_samples:
            raise ValueError(
                f"--maj-at must be <= --eval-samples = {self.eval_samples}, got {self.maj_at}: each vote is a sample"
            )
        if self.verifiers and self.verifier is None:
            raise ValueError("verifiers: these are options of the verifiers in verifier:, which is not set")
        if self.on != "local" and self.scoring != "local" and self.score_workers is None:
            raise ValueError(
                "--on and --scoring both start actors: set --score-workers (and --engine-actors), so that the scoring "
                "actors leave room for the engines"
            )
        return self

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks, in order."""
        return [name.strip() for name in self.task.split(",") if name.strip()]
