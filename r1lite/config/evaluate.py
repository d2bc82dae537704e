"""The stage that only measures."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, model_validator

from r1lite.config.on_ray import OnRayConfig


class EvalConfig(OnRayConfig):
    """Measure a model on test problems: greedy accuracy, pass@k, maj@k, each with its interval; or compare two."""

    stage: ClassVar[str] = "eval"
    repeatable: ClassVar[frozenset[str]] = frozenset({"task", "source"})

    task: str = "gsm8k"
    """One task or several, as gsm8k,svamp or --task gsm8k --task svamp: see r1lite tasks; reasoning_gym:NAME; your own
    as module:attr."""
    source: str | None = None
    """Where the problems come from: hub, bundled, or a file or folder of your own; for several tasks
    gsm8k=PATH,svamp=PATH. By default what fits the task and the model."""
    against: str | None = None
    """Compare with this one, problem by problem: the folder of another eval, or a model to be measured as well."""
    verifier: str | None = None
    """Formula over verifiers that says what is right (its highest value is), such as "math * format"; by default the
    task's own verifier."""
    verifiers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: options of the formula's verifiers by name."""
    eval_problems: int = Field(100_000, ge=1)
    """Test problems answered greedily (at most; the first ones of the test set)."""
    eval_temperature: float = Field(1.0, gt=0)
    """Temperature of the samples; --seed decides them."""
    maj_at: int | None = Field(None, ge=2)
    """Votes of maj@k, the first ones of the samples; by default all --eval-samples."""

    @model_validator(mode="after")
    def _as_many_votes_as_samples(self) -> EvalConfig:
        if self.maj_at is not None and self.maj_at > self.eval_samples:
            raise ValueError(
                f"--maj-at must be <= --eval-samples = {self.eval_samples}, got {self.maj_at}: each vote is a sample"
            )
        if self.verifiers and self.verifier is None:
            raise ValueError("verifiers: options are for the names in verifier:, and there is no such formula")
        if self.on != "local" and self.scoring != "local" and self.score_workers is None:
            raise ValueError(
                "--on and --scoring both take actors: say how many by --score-workers (and --engine-actors), so that "
                "those that score leave room for the engines"
            )
        return self

    @property
    def tasks(self) -> list[str]:
        """The tasks by name, in order."""
        return [name.strip() for name in self.task.split(",") if name.strip()]
