"""Reinforcement learning: settings that grpo and ppo share, and grpo's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticKnownError

from r1lite.config.base import Section
from r1lite.config.names import named
from r1lite.config.objective import ObjectiveConfig
from r1lite.config.presets import preset_values
from r1lite.config.rollout import INTERRUPTION_PHRASE, THINKING_END, RolloutConfig
from r1lite.config.train import TrainConfig


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


ESTIMATOR_NAMES = (
    *("grpo", "batch_scaled", "dr_grpo", "rloo", "reinforce", "reinforce_pp", "reinforce_pp_baseline", "opo"),
    *("optimal_token", "maxrl", "gdpo", "pass_at_k", "best_of_group", "a_star"),
)

WHITENED = ("reinforce_pp", "reinforce_pp_baseline")  # estimators that always whiten


class RLConfig(PlanningConfig, RolloutConfig, TrainConfig, ObjectiveConfig):
    """Settings of sampling groups, scoring them, and learning from the scores."""

    preset: str | None = None
    """Settings of a paper, such as dapo or r1_zero; your own settings override them. r1lite show-preset lists them."""
    reward: str | None = None
    """Reward: a formula over verifiers, such as "math + 0.1*format", or your own module:function; by default the
    task's."""
    overlong_penalty: float = Field(0.0, ge=0)
    """Subtract this times `overlong` from the reward; `overlong` is 0 up to 4/5 of --max-completion-tokens, then rises
    to 1 (DAPO)."""
    verifiers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Recipes only: options of the reward's verifiers by name; with the option `use`, the name is an alias."""
    max_unscored_rate: float = Field(0.1, ge=0, le=1)
    """The run stops when more than this share of a step's completions could not be scored."""
    steps: int = Field(500, ge=1)
    """Number of steps; one step samples prompts_per_step * group_size completions."""
    prompts_per_step: int = Field(16, ge=1)
    """Problems per step (P)."""
    group_size: int = Field(8, ge=2)
    """Completions per problem (G)."""
    temperature: float = Field(1.0, gt=0)
    """Sampling temperature; log-probabilities are those of the tempered distribution."""
    updates_per_rollout: int = Field(1, ge=1)
    """Number of passes over each step's completions."""
    minibatches: int = Field(1, ge=1)
    """Optimizer steps per pass; each gets whole groups."""
    record_tokens: bool = False
    """Record each token's log-probability, entropy and advantage before the update in rollouts/. The report colours
    tokens by them. Costs one more pass of the model over each step's completions."""
    retire_solved: float | None = Field(None, gt=0, le=1)
    """Stop sampling a problem once this share of a group's completions solved it (ScaleRL: 0.9)."""
    stop_kl: float | None = Field(None, gt=0)
    """End a step's updates early when the KL of --stop-kl-to exceeds this (nats per token)."""
    stop_kl_to: Literal["old", "reference"] = "old"
    """KL that --stop-kl bounds. old: KL(policy before the step || policy); reference: KL(policy || reference). With
    reference, a step always makes its first update, so that the KL in the loss can lower the KL again."""
    fp32_head: bool = False
    """Compute logits from hidden states in float32 even if --dtype is lower (MiniMax-M1, ScaleRL)."""
    padding_free: bool = False
    """Concatenate prompts and completions to one sequence without padding. A prompt is computed once per completion, so
    this suits short prompts and completions of very different lengths. On GPUs in bfloat16, uses PyTorch's
    variable-length attention."""
    advantage: str
    """Advantage estimator; each algorithm has its own."""

    @model_validator(mode="after")
    def _attention_without_padding(self) -> RLConfig:
        if self.padding_free and self.attn_implementation != "auto":
            raise ValueError(
                f"--padding-free has its own attention, so --attn-implementation must be auto, not "
                f"{self.attn_implementation}"
            )
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _preset_underneath(cls, values: Any, handler: Any) -> Any:
        """Puts a preset's values above the defaults. They don't count as set, so later layers see the user's keys."""
        if not isinstance(values, dict) or values.get("preset") is None:
            return handler(values)
        config = handler({**preset_values(str(values["preset"]), cls.stage), **values})
        config.__pydantic_fields_set__.intersection_update(values)
        return config

    def _contradictions(self) -> Iterator[str]:
        yield from super()._contradictions()
        if self.max_staleness > 0 and (self.dynamic_sampling or self.curriculum):
            yield (
                f"--max-staleness {self.max_staleness} samples before the last step is scored, but "
                f"{'--dynamic-sampling' if self.dynamic_sampling else '--curriculum'} chooses problems from its scores"
            )
        if self.max_staleness > 0 and self.importance == "off" and self.ratio_to == "old":
            yield (
                f"--max-staleness {self.max_staleness} learns from tokens of earlier weights, but --importance off "
                "treats them as tokens of the newest weights: use --importance token, or --ratio-to engine"
            )
        yield from self._interruptions()
        if self.retire_solved is not None and (self.curriculum or self.max_staleness > 0):
            yield (
                f"--retire-solved chooses problems by the pass rates of the last steps; "
                f"{'so does --curriculum: choose one' if self.curriculum else '--max-staleness samples before them'}"
            )
        if self.dynamic_sampling and self.group_size < 2:
            yield "--dynamic-sampling skips groups whose rewards are all equal, and a group of one always is"
        if self.minibatches > self.prompts_per_step:
            yield (
                f"--minibatches must be <= --prompts-per-step = {self.prompts_per_step}, got {self.minibatches}: "
                "a group is never split"
            )
        if self.stop_kl is not None and self.updates_per_rollout * self.minibatches == 1:
            yield (
                f"--stop-kl {self.stop_kl} ends a step's updates early, but a step has only one update: set "
                "--updates-per-rollout or --minibatches above 1"
            )
        if self.stop_kl_to == "reference" and (self.stop_kl is None or self.kl_coef == 0):
            yield "--stop-kl-to reference needs --stop-kl, and a reference: --kl-coef above 0"
        if self.loss == "reinforce" and self.updates_per_rollout * self.minibatches > 1:
            yield (
                f"--loss reinforce learns only from samples of the current policy, but --updates-per-rollout "
                f"{self.updates_per_rollout} and --minibatches {self.minibatches} update the policy several times: use "
                "--loss clip"
            )
        if not self.resume:  # a run that began with such settings may still be continued
            yield from self._without_effect()

    def _without_effect(self) -> Iterator[str]:
        """Yields messages for settings that were changed but have no effect, which points to a misunderstanding."""
        fields, preset = type(self).model_fields, preset_values(self.preset, self.stage) if self.preset else {}
        for name, (holds, what) in self._needs().items():
            if getattr(self, name) not in (fields[name].default, preset.get(name)) and not holds:
                yield f"--{name.replace('_', '-')} has no effect without {what}"
        if self.kl_coef > 0 and self.kl_in == "loss" and self.kl_estimator == "k1":
            yield "--kl-estimator k1 has no effect with --kl-in loss: its gradient is 0 on average; use k2 or k3"

    def policy_lr_at(self, step: int) -> float:
        """Learning rate of the policy in step `step` (0-based)."""
        return self.lr_at(step, self.steps)

    def _needs(self) -> dict[str, tuple[bool, str]]:
        corrects, adapter = self.ratio_to == "old", self.lora_rank > 0
        return {
            **super()._needs(),
            "gamma": (self.advantage in ("reinforce_pp", "gae"), "--advantage reinforce_pp, or r1lite ppo"),
            "ratio_to": (
                self.loss not in ("reinforce", "a_star"),
                f"the ratio to the old policy, which --loss {self.loss} does not have; use --importance token",
            ),
            **{f"importance_{name}": (corrects, "--ratio-to old") for name in ("mode", "low", "high")},
            "min_lr_ratio": (self.lr_schedule != "constant", "--lr-schedule linear or cosine"),
            "lora_alpha": (adapter, "--lora-rank"),
            "lora_targets": (adapter, "--lora-rank"),
        }

    def _interruptions(self) -> Iterator[str]:
        after, phrase = self.interrupt_thinking_after, self.interruption_phrase
        if after is None and phrase != INTERRUPTION_PHRASE:
            yield "--interruption-phrase has no effect without --interrupt-thinking-after"
        if after is not None and after >= self.max_completion_tokens:
            yield (
                f"--interrupt-thinking-after must be < --max-completion-tokens = {self.max_completion_tokens}, got "
                f"{after}: otherwise no tokens are left for the answer"
            )
        if THINKING_END not in phrase:
            yield f"--interruption-phrase {phrase!r} must contain {THINKING_END}, which ends the thinking"
        if after is not None and self.stop_text is not None and self.stop_text in phrase:
            yield (
                f"--interruption-phrase contains --stop-text {self.stop_text!r}, which would end the completion before "
                "its answer"
            )


class GRPOConfig(RLConfig):
    """Group relative policy optimization (arXiv:2402.03300) with rewards from verifiers."""

    stage: ClassVar[str] = "grpo"

    advantage: str = "grpo"
    """Advantage estimator: grpo, batch_scaled, dr_grpo, rloo, reinforce, reinforce_pp, reinforce_pp_baseline, opo,
    optimal_token, maxrl, gdpo, pass_at_k, best_of_group, a_star, or your own module:function. r1lite/rl/README.md has
    the formulas. For a critic use r1lite ppo."""
    group_size: int = Field(8, ge=1)
    """Completions per problem (G); 1 is allowed only with --value-samples."""
    advantage_k: int = Field(4, ge=1)
    """pass_at_k: size k of a group's subsets; the best completion of a subset counts."""
    value_beta: float = Field(0.5, gt=0)
    """a_star: beta of the optimal value: near 0 it is the best reward, for a large beta the mean reward."""
    advantage_ddof: Literal[0, 1] = 1
    """Standard deviations divide by N - this (grpo, batch_scaled, gdpo, best_of_group)."""
    advantage_eps: float = Field(1e-4, ge=0)
    """Added to what rewards are divided by, in units of the reward (grpo, batch_scaled, gdpo, best_of_group, maxrl)."""

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

    def _contradictions(self) -> Iterator[str]:
        kl_in_reward = self.kl_in == "reward" and self.kl_coef > 0
        yield from super()._contradictions()
        if self.advantage == "maxrl" and kl_in_reward:
            yield "--advantage maxrl needs rewards >= 0, and --kl-in reward can make them negative; use --kl-in loss"
        if self.advantage == "gdpo" and kl_in_reward:
            yield "--advantage gdpo normalises the terms of the reward formula, and the KL isn't one; use --kl-in loss"
        if self.advantage == "pass_at_k" and self.advantage_k > self.group_size:
            yield f"--advantage-k {self.advantage_k} is more than --group-size {self.group_size} completions"
        if (self.loss == "a_star") != (self.advantage == "a_star"):
            yield (
                "--loss a_star and --advantage a_star belong together: the loss fits log-ratios to rewards minus the "
                "optimal value"
            )
        if self.value_samples > 0 and self.moves_reference:
            yield (
                f"--value-samples {self.value_samples} are sampled from the initial reference, which "
                "--reference-refresh-steps and --reference-decay replace; use 0, which takes the group's own rewards"
            )

    def _needs(self) -> dict[str, tuple[bool, str]]:
        scaled = ("grpo", "batch_scaled", "gdpo", "best_of_group")
        divided = (*scaled, "maxrl")
        return {
            **super()._needs(),
            "advantage_k": (self.advantage == "pass_at_k", "--advantage pass_at_k"),
            "value_beta": (self.advantage == "a_star", "--advantage a_star"),
            "advantage_ddof": (self.advantage in scaled, f"--advantage {', '.join(scaled)}"),
            "advantage_eps": (self.advantage in divided, f"--advantage {', '.join(divided)}"),
        }

    @property
    def has_token_advantages(self) -> bool:
        """True if tokens of one completion may have different advantages."""
        return self.whiten_advantages or self.advantage in (*WHITENED, "optimal_token")
