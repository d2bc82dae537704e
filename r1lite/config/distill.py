"""Settings of `r1lite distill`."""

from __future__ import annotations

import difflib
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from r1lite.config.loading import validated
from r1lite.config.reject import RejectConfig
from r1lite.config.supervised import SupervisedConfig
from r1lite.errors import UserError

# Name of a student whose shape is given in the recipe: such a student has no files that could name it.
SHAPED = "student"
_OF_EVALUATIONS = ("eval_problems", "eval_samples", "eval_sample_problems")  # which sampling the teacher doesn't make
_OURS = ("out", "resume", "model", "rollouts")  # settings of the teacher's trajectories that the run decides


class DistillConfig(SupervisedConfig):
    """Distill a teacher into a student: by fine-tuning on the teacher's verified completions, or on-policy with the
    teacher's probabilities of the student's own completions (GKD, arXiv:2306.13649)."""

    stage: ClassVar[str] = "distill"

    teacher: str | None = None
    """Hugging Face id or path of the teacher; nano for the bundled model."""
    method: Literal["off-policy", "on-policy"] = "off-policy"
    """off-policy: fine-tune on --data, or on right completions sampled from the teacher in this run. on-policy: the
    student samples completions and learns the teacher's distribution at each token."""
    student_shape: dict[str, Any] = Field(default_factory=dict)
    """Recipes only, instead of --model: a new student with random weights, given as changes to the teacher's model
    configuration, such as {hidden_size: 64, num_hidden_layers: 2}."""
    trajectories: dict[str, Any] = Field(default_factory=dict)
    """Recipes only, without --data: further settings of r1lite reject for the teacher's completions. By default its
    filters and its removal of duplicates apply, without a difficulty window or a limit per problem."""
    max_problems: int | None = Field(None, ge=1)
    """Sample the teacher, and on-policy the student, only on the first this many problems; by default on all."""
    samples: int = Field(4, ge=1)
    """Without --data: the teacher's completions per problem."""
    beta: float = Field(0.5, ge=0, le=1)
    """Divergence of on-policy distillation. 0: KL(teacher || student); 1: KL(student || teacher); in between: the
    generalised Jensen-Shannon divergence."""
    on_policy_share: float = Field(0.5, ge=0, le=1)
    """Share of each step's rows that the student samples (lambda); the other rows come from the set."""
    temperature: float = Field(1.0, gt=0)
    """Temperature of the student's sampling, and of both distributions in the comparison."""
    chunk_tokens: int = Field(1024, ge=1)
    """On-policy: number of tokens whose logits are in memory at the same time; gradients don't depend on it."""

    @model_validator(mode="after")
    def _there_is_a_teacher(self) -> DistillConfig:
        if self.resume:  # the run's own configuration was checked when it began
            return self
        if self.teacher is None and (self.method == "on-policy" or self.data is None or self.student_shape):
            raise ValueError("--teacher is missing: the model to learn from (or, off-policy, --data that it wrote)")
        if self.student_shape and self.model not in (None, SHAPED):
            raise ValueError(f"student_shape makes a new student, so --model {self.model} can't be set too")
        if self.trajectories and self.data is not None:
            raise ValueError("trajectories are settings for sampling the teacher, and with --data nothing is sampled")
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
        if self.method == "on-policy" and 0 < self.on_policy_share < 1 and self.own_rows in (0, self.rows_per_step):
            raise ValueError(
                f"--on-policy-share {self.on_policy_share:g} of --rows-per-step {self.rows_per_step} is "
                f"{self.own_rows} rows: raise --rows-per-step, or set --on-policy-share {int(self.own_rows > 0)}"
            )
        for name, why in self._idle():
            value = getattr(self, name)
            if value != type(self).model_fields[name].get_default(call_default_factory=True):
                flag = "trajectories: it" if name == "trajectories" else f"--{name.replace('_', '-')} {value}"
                raise ValueError(f"{flag} has no effect with {why}")
        return self

    @property
    def own_rows(self) -> int:
        """Number of rows per step that the student samples."""
        return round(self.on_policy_share * self.rows_per_step)

    def _idle(self) -> list[tuple[str, str]]:
        """Settings without effect, with the reason."""
        if self.method == "off-policy":
            student = ("beta", "on_policy_share", "temperature", "chunk_tokens")
            idle = dict.fromkeys(student, "--method off-policy")
        else:
            idle = dict.fromkeys(("packing", "packed_tokens"), "--method on-policy")
        if not self.needs_set:
            of_set = ("data", "data_split", "prompts", "long_rows", "allow_test_overlap", "samples", "trajectories")
            idle |= dict.fromkeys(of_set, "--on-policy-share 1: the student samples all rows")
        elif self.data is not None:
            idle["samples"] = "--data: the teacher is not sampled"
            if self.method == "off-policy" or self.on_policy_share == 0:
                idle["max_problems"] = "--data: no problem is sampled"
        return list(idle.items())

    @property
    def needs_set(self) -> bool:
        """True if the student also learns from rows that it doesn't sample itself."""
        return self.method == "off-policy" or self.on_policy_share < 1

    def reject_config(self, out: str) -> RejectConfig:
        """Settings for sampling and filtering the teacher's completions. Raises UserError."""
        other = {*_OURS, "format", "temperature", *_OF_EVALUATIONS}
        shared = set(RejectConfig.model_fields) & set(type(self).model_fields) - other
        values = {
            **{key: getattr(self, key) for key in shared},
            **{"difficulty_window": False, "per_problem": None, "model": self.teacher, "out": out},
            **self.trajectories,
        }
        return validated(RejectConfig, values)
