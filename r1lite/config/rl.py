"""Reinforcement learning: what grpo and ppo share, and what is their own."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticKnownError

from r1lite.config.names import named
from r1lite.config.objective import ObjectiveConfig
from r1lite.config.planning import PlanningConfig
from r1lite.config.presets import preset_values
from r1lite.config.rollout import INTERRUPTION_PHRASE, THINKING_END, RolloutConfig
from r1lite.config.train import TrainConfig

ESTIMATOR_NAMES = (
    *("grpo", "batch_scaled", "dr_grpo", "rloo", "reinforce", "reinforce_pp", "reinforce_pp_baseline", "opo"),
    *("optimal_token", "maxrl", "gdpo", "pass_at_k", "best_of_group", "a_star"),
)


class RLConfig(PlanningConfig, RolloutConfig, TrainConfig, ObjectiveConfig):
    """Sampling groups, scoring them, and learning from the scores."""

    preset: str | None = None
    """Settings of a paper, such as dapo or r1_zero, below what you give yourself; r1lite show-preset lists them."""
    reward: str | None = None
    """Formula over verifiers, such as "math + 0.1*format"; by default the task's. Your own: module:function."""
    overlong_penalty: float = Field(0.0, ge=0)
    """Take this times `overlong` off the reward: 0 up to 4/5 of --max-completion-tokens, then rising to 1 (DAPO)."""
    verifiers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: options of the reward's verifiers by name; `use` among them makes the name an alias."""
    max_unscored_rate: float = Field(0.1, ge=0, le=1)
    """The run stops when more than this share of a step's completions could not be scored."""
    steps: int = Field(500, ge=1)
    """Steps; one step samples prompts_per_step * group_size completions."""
    prompts_per_step: int = Field(16, ge=1)
    """Problems a step (P)."""
    group_size: int = Field(8, ge=2)
    """Completions per problem (G)."""
    temperature: float = Field(1.0, gt=0)
    """Sampling temperature; log-probabilities are those of the tempered distribution."""
    updates_per_rollout: int = Field(1, ge=1)
    """Passes over each step's completions."""
    minibatches: int = Field(1, ge=1)
    """Optimizer steps a pass; whole groups are dealt out to them."""
    record_tokens: bool = False
    """Keep in rollouts/ what the trainer saw at each token before it learnt from it: log-probability, entropy,
    advantage. The report colours tokens by them. Costs one more pass of the model over each step's completions."""
    retire_solved: float | None = Field(None, gt=0, le=1)
    """Sample problems no more once this share of a group's completions solved them (ScaleRL: 0.9)."""
    stop_kl: float | None = Field(None, gt=0)
    """End a step's updates early when the KL of --stop-kl-to passes this (nats a token)."""
    stop_kl_to: Literal["old", "reference"] = "old"
    """old: KL(policy before the step || policy); reference: KL(policy || reference), of which a step makes its first
    update all the same, so that the KL in the loss can lead back."""
    fp32_head: bool = False
    """Compute logits from hidden states in float32 although --dtype is lower (MiniMax-M1, ScaleRL)."""
    padding_free: bool = False
    """Learn from completions that lie end to end in one sequence, each behind its own prompt: no padding is computed,
    a prompt is computed once for each of its completions. For completions of very different lengths, with short
    prompts; on GPUs, in bfloat16, PyTorch's attention for rows of any length."""
    advantage: str
    """From rewards to advantages; each algorithm has its own."""

    @model_validator(mode="after")
    def _attention_without_padding(self) -> RLConfig:
        if self.padding_free and self.attn_implementation != "auto":
            raise ValueError(
                f"--padding-free brings an attention of its own, and --attn-implementation is "
                f"{self.attn_implementation}: leave it at auto"
            )
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _preset_underneath(cls, values: Any, handler: Any) -> Any:
        """Presets lie above the defaults, and count as not given: what was given stays known for later layers."""
        if not isinstance(values, dict) or values.get("preset") is None:
            return handler(values)
        config = handler({**preset_values(str(values["preset"]), cls.stage), **values})
        config.__pydantic_fields_set__.intersection_update(values)
        return config

    def _contradictions(self) -> list[tuple[bool, str]]:
        return [
            *super()._contradictions(),
            (
                self.max_staleness > 0 and (self.dynamic_sampling or self.curriculum),
                f"--max-staleness {self.max_staleness} samples before the last step is scored, but "
                f"{'--dynamic-sampling' if self.dynamic_sampling else '--curriculum'} chooses problems by its scores",
            ),
            (
                self.max_staleness > 0 and self.importance == "off" and self.ratio_to == "old",
                f"--max-staleness {self.max_staleness} learns from tokens of earlier weights, which --importance off "
                "takes for those of the newest: use --importance token, or --ratio-to engine",
            ),
            *self._interruptions(),
            (
                self.retire_solved is not None and (self.curriculum or self.max_staleness > 0),
                f"--retire-solved chooses problems by what the last steps measured; "
                f"{'--curriculum does so too: choose one' if self.curriculum else '--max-staleness cannot wait'}",
            ),
            (
                self.dynamic_sampling and self.group_size < 2,
                "--dynamic-sampling passes over groups whose rewards are all equal, but a single one always is",
            ),
            (
                self.minibatches > self.prompts_per_step,
                f"--minibatches must be <= --prompts-per-step = {self.prompts_per_step}, got {self.minibatches}: "
                "a group is never split",
            ),
            (
                self.stop_kl is not None and self.updates_per_rollout * self.minibatches == 1,
                f"--stop-kl {self.stop_kl} ends a step's updates early, but there is only one: it needs "
                "--updates-per-rollout or --minibatches above 1",
            ),
            (
                self.stop_kl_to == "reference" and (self.stop_kl is None or self.kl_coef == 0),
                "--stop-kl-to reference needs --stop-kl, and a reference: --kl-coef above 0",
            ),
            (
                self.loss == "reinforce" and self.updates_per_rollout * self.minibatches > 1,
                f"--loss reinforce learns only from what the current policy sampled; --updates-per-rollout "
                f"{self.updates_per_rollout} and --minibatches {self.minibatches} change it between: use --loss clip",
            ),
        ]

    def _interruptions(self) -> list[tuple[bool, str]]:
        after, phrase = self.interrupt_thinking_after, self.interruption_phrase
        return [
            (
                after is None and phrase != INTERRUPTION_PHRASE,
                "--interruption-phrase has no effect without --interrupt-thinking-after",
            ),
            (
                after is not None and after >= self.max_completion_tokens,
                f"--interrupt-thinking-after must be < --max-completion-tokens = {self.max_completion_tokens}, got "
                f"{after}: there would be no room for an answer",
            ),
            (
                THINKING_END not in phrase,
                f"--interruption-phrase {phrase!r} must hold {THINKING_END}, which ends the thinking",
            ),
            (
                after is not None and self.stop_text is not None and self.stop_text in phrase,
                f"--interruption-phrase holds --stop-text {self.stop_text!r}, which ends a completion: no answer would "
                "follow it",
            ),
        ]


class GRPOConfig(RLConfig):
    """Group relative policy optimization (arXiv:2402.03300) from rewards that rules can check."""

    stage: ClassVar[str] = "grpo"

    advantage: str = "grpo"
    """From rewards to advantages: grpo, batch_scaled, dr_grpo, rloo, reinforce, reinforce_pp, reinforce_pp_baseline,
    opo, optimal_token, maxrl, gdpo, pass_at_k, best_of_group, a_star, or your own, module:function;
    r1lite/rl/README.md says how each does it. Critics are for r1lite ppo."""
    group_size: int = Field(8, ge=1)
    """Completions per problem (G); a single one only with --value-samples."""
    advantage_k: int = Field(4, ge=1)
    """pass_at_k: size of the subsets of a group whose best member counts."""
    value_beta: float = Field(0.5, gt=0)
    """a_star: from rewards to the optimal value: towards 0 the best of them, for large ones their mean."""
    advantage_ddof: Literal[0, 1] = 1
    """Standard deviations divide by N - this (grpo, batch_scaled, gdpo)."""
    advantage_eps: float = Field(1e-4, ge=0)
    """Added to what rewards are divided by, in units of the reward (grpo, batch_scaled, gdpo, maxrl)."""

    @field_validator("group_size")
    @classmethod
    def _siblings(cls, size: int, info: ValidationInfo) -> int:
        if size < 2 and not info.data.get("value_samples"):
            raise PydanticKnownError("greater_than_equal", {"ge": 2})
        return size

    @field_validator("advantage")
    @classmethod
    def _known_advantage(cls, advantage: str) -> str:
        if advantage == "gae":
            raise ValueError("--advantage gae needs a critic: r1lite ppo has one")
        return named("advantage", advantage, ESTIMATOR_NAMES)

    def _contradictions(self) -> list[tuple[bool, str]]:
        kl_in_reward = self.kl_in == "reward" and self.kl_coef > 0
        return [
            *super()._contradictions(),
            (
                self.advantage == "maxrl" and kl_in_reward,
                "--advantage maxrl needs rewards >= 0, and --kl-in reward can make them negative; use --kl-in loss",
            ),
            (
                self.advantage == "gdpo" and kl_in_reward,
                "--advantage gdpo normalises parts of the reward formula, and the KL is none; use --kl-in loss",
            ),
            (
                self.advantage == "pass_at_k" and self.advantage_k > self.group_size,
                f"--advantage-k {self.advantage_k} is more than --group-size {self.group_size} completions",
            ),
            (
                (self.loss == "a_star") != (self.advantage == "a_star"),
                "--loss a_star and --advantage a_star belong together: log-ratios are fitted to rewards less the "
                "optimal value",
            ),
            (
                self.advantage != "pass_at_k" and self.advantage_k != type(self).model_fields["advantage_k"].default,
                "--advantage-k has no effect without --advantage pass_at_k",
            ),
            (
                self.value_samples > 0 and (self.reference_refresh_steps > 0 or self.reference_decay < 1),
                f"--value-samples {self.value_samples} are of the reference that the run begins with, which "
                "--reference-refresh-steps and --reference-decay replace; leave it at 0, the group's own rewards",
            ),
            (
                self.advantage != "a_star" and self.value_beta != type(self).model_fields["value_beta"].default,
                "--value-beta has no effect without --advantage a_star",
            ),
        ]

    @property
    def has_token_advantages(self) -> bool:
        """True if tokens of one completion may have different advantages."""
        return self.whiten_advantages or self.advantage.startswith("reinforce_pp") or self.advantage == "optimal_token"
