"""Settings of sampling in training, and of corrections for an engine that differs from the trainer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from r1lite.config.base import Section

THINKING_END = "</think>"
INTERRUPTION_PHRASE = "Okay, time is up. Let me stop thinking and formulate a final answer now. </think>"


class RolloutConfig(Section):
    """Sampling in training, the engine's mismatch with the trainer, and how far the engine may run ahead."""

    top_p: float = Field(1.0, gt=0, le=1)
    """Sample only from the most probable tokens that hold this share of the mass; needs --biased-sampling."""
    top_k: int = Field(0, ge=0)
    """Sample only from this many most probable tokens; 0: from all; needs --biased-sampling."""
    min_p: float = Field(0.0, ge=0, lt=1)
    """Leave out tokens less probable than this share of the most probable token; needs --biased-sampling."""
    biased_sampling: bool = False
    """Allow --top-p, --top-k and --min-p, although the trainer's probabilities are those of the whole distribution.
    --importance auto then weights tokens by the mass that the engine kept; tokens that it cut are never learnt."""
    importance: Literal["auto", "off", "token", "sequence", "geometric"] = "auto"
    """Weight the policy loss by the ratio of trainer and engine probability: per token, by a completion's product, or
    by its geometric mean. auto: token if the engine has its own weights, runs ahead or cuts its distribution, else
    off."""
    importance_mode: Literal["truncate", "mask"] = "truncate"
    """Treatment of weights outside the bounds. truncate: clip to the bound; mask: set to 0, so nothing is learnt."""
    importance_low: float = Field(0.0, ge=0, le=1)
    """Lower bound of the importance weight."""
    importance_high: float = Field(2.0, ge=1)
    """Upper bound of the importance weight."""
    ratio_to: Literal["old", "engine"] = "old"
    """Denominator of the loss's ratio. old: the policy before the step, with --importance as correction for the engine;
    engine: the engine's own log-probabilities, so that clips and gates bound staleness too."""
    max_staleness: int = Field(0, ge=0)
    """With N > 0, servers sample the groups of the next N steps while the trainer learns. Unfinished completions
    continue with new weights; a group with a token from weights more than N steps old is dropped. 0: strictly on
    policy."""
    replay_order: str | None = None
    """Directory of a run with the same settings and --max-staleness, whose order is repeated: each step learns from the
    same groups, sampled by the same weight versions. The result is identical byte for byte if the engine is
    deterministic."""
    interrupt_thinking_after: int | None = Field(None, ge=1)
    """In training, append --interruption-phrase to a completion that has not ended its thinking (</think>) after this
    many tokens, then sample its answer. The phrase's tokens are not learnt (ScaleRL: 12,288)."""
    interruption_phrase: str = INTERRUPTION_PHRASE
    """Text that --interrupt-thinking-after appends; it must contain </think>."""
    canary_tokens: int = Field(16, ge=0)
    """After every change of weights, compare the log-probabilities of engine and trainer on two completions of this
    many tokens each; 0: no such check."""
    canary_tolerance: float | None = Field(None, gt=0)
    """Largest difference that the canary allows, in nats; by default 16 times the largest difference measured so far in
    the run, at most 0.002 in float32 and 0.5 in bfloat16."""

    prove_weights_every: int = Field(5, ge=0)
    """Compare vLLM's weights with the trainer's byte for byte every this many changes of weights, and after the first
    change (vLLM 0.32; about a second per GB on each side). 0: never."""

    @model_validator(mode="after")
    def _order_of_what_is_sampled_ahead(self) -> RolloutConfig:
        if self.replay_order is not None and not self.max_staleness:
            raise ValueError("--replay-order is for runs with --max-staleness: other runs have only one order")
        return self

    @model_validator(mode="after")
    def _one_correction(self) -> RolloutConfig:
        if self.ratio_to == "engine" and self.importance in ("token", "sequence", "geometric"):
            raise ValueError(
                f"--ratio-to engine corrects for the engine through the loss's ratio; --importance {self.importance} "
                "would correct twice"
            )
        return self

    @model_validator(mode="after")
    def _unbiased(self) -> RolloutConfig:
        changed = [
            f"--{name.replace('_', '-')} {getattr(self, name)}"
            for name, off in (("top_p", 1.0), ("top_k", 0), ("min_p", 0.0))
            if getattr(self, name) != off
        ]
        if changed and not self.biased_sampling:
            raise ValueError(
                f"{', '.join(changed)}: the engine would sample from a cut distribution while the trainer learns the "
                "whole one, so every probability ratio would be biased; leave it off in training, or accept the bias "
                "with --biased-sampling"
            )
        return self
