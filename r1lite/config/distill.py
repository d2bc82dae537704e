"""A smaller model from a larger one."""

from __future__ import annotations

import difflib
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from r1lite.config.loading import validated
from r1lite.config.reject import RejectConfig
from r1lite.config.supervised import SupervisedConfig
from r1lite.errors import UserError

# Of a student whose shape stands in the recipe: it has no files to be called by.
SHAPED = "student"
_OURS = ("out", "resume", "model", "rollouts")  # of the teacher's trajectories, and decided by the run


class DistillConfig(SupervisedConfig):
    """Distill a teacher into a student: by fine-tuning on the teacher's verified completions, or on-policy by the
    teacher's probabilities of what the student itself writes (GKD, arXiv:2306.13649)."""

    stage: ClassVar[str] = "distill"

    teacher: str | None = None
    """Hugging Face id or path of the model to learn from; nano for the bundled one."""
    method: Literal["off-policy", "on-policy"] = "off-policy"
    """off-policy: fine-tune on --data, or on what the teacher gets right when it is sampled here. on-policy: the
    student samples, and comes closer to the teacher's distribution at each token."""
    student_shape: dict[str, Any] = Field(default_factory=dict)
    """Recipes only: a new student with random weights, as changes to the teacher's model configuration, such as
    {hidden_size: 64, num_hidden_layers: 2}; in place of --model."""
    trajectories: dict[str, Any] = Field(default_factory=dict)
    """Recipes only: further settings of r1lite reject for the teacher's completions, where there is no --data; by
    default everything is kept that is right and well-formed."""
    max_problems: int | None = Field(None, ge=1)
    """Problems that the teacher is asked where there is no --data (the first ones); by default all."""
    samples: int = Field(4, ge=1)
    """Completions of the teacher per problem, where there is no --data."""
    beta: float = Field(0.5, ge=0, le=1)
    """Divergence of on-policy distillation: 0 = KL(teacher || student), 1 = KL(student || teacher), between them the
    generalised Jensen-Shannon divergence."""
    on_policy_share: float = Field(0.5, ge=0, le=1)
    """Share of each step's rows that the student samples (lambda); the others are the set's."""
    temperature: float = Field(1.0, gt=0)
    """The student samples at this temperature, and both distributions are compared at it."""
    chunk_tokens: int = Field(1024, ge=1)
    """Tokens whose logits exist at once, on-policy; gradients don't depend on it."""

    @model_validator(mode="after")
    def _there_is_a_teacher(self) -> DistillConfig:
        if self.resume:  # the run's own configuration was checked when it began
            return self
        if self.teacher is None and (self.method == "on-policy" or self.data is None or self.student_shape):
            raise ValueError("--teacher is missing: the model to learn from (or, off-policy, --data it has written)")
        if self.student_shape and self.model not in (None, SHAPED):
            raise ValueError(f"student_shape makes a new student, so --model {self.model} can't be one too")
        if self.trajectories and self.data is not None:
            raise ValueError("trajectories are settings for sampling the teacher; with --data nothing is sampled")
        if wrong := sorted(set(self.trajectories) & set(_OURS)):
            raise ValueError(f"trajectories: {', '.join(wrong)} can't be set here")
        if unknown := sorted(set(self.trajectories) - set(RejectConfig.model_fields)):
            near = difflib.get_close_matches(unknown[0], RejectConfig.model_fields, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise ValueError(f"trajectories: r1lite reject has no setting '{unknown[0]}'{hint}")
        try:
            self.reject_config("unused")
        except UserError as error:
            raise ValueError(f"trajectories: {str(error).removeprefix('--')}") from error
        return self

    @property
    def needs_set(self) -> bool:
        """True if rows are learnt from that the student doesn't write."""
        return self.method == "off-policy" or self.on_policy_share < 1

    def reject_config(self, out: str) -> RejectConfig:
        """How the teacher's completions are sampled and filtered. Raises UserError."""
        shared = set(RejectConfig.model_fields) & set(type(self).model_fields) - {*_OURS, "format", "temperature"}
        values = {
            **{key: getattr(self, key) for key in shared},
            **{"difficulty_window": False, "per_problem": None, "model": self.teacher, "out": out},
            **self.trajectories,
        }
        return validated(RejectConfig, values)
