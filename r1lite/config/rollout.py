"""How tokens are drawn in training, and what is done about an engine that is not quite the trainer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from r1lite.config.base import Section

THINKING_END = "</think>"
INTERRUPTION_PHRASE = "Okay, time is up. Let me stop thinking and formulate a final answer now. </think>"


class RolloutConfig(Section):
    """Sampling in training, the engine's mismatch, and how far ahead of the trainer it may run."""

    top_p: float = Field(1.0, gt=0, le=1)
    """Draw only from the most probable tokens with this share of the mass; needs --biased-sampling."""
    top_k: int = Field(0, ge=0)
    """Draw only from this many most probable tokens, 0: from all; needs --biased-sampling."""
    min_p: float = Field(0.0, ge=0, lt=1)
    """Leave out tokens less probable than this share of the most probable one; needs --biased-sampling."""
    biased_sampling: bool = False
    """Accept --top-p, --top-k and --min-p: the trainer's probabilities are those of the whole distribution.
    --importance auto then weights each token by the mass that the engine kept; nothing is learnt of what it cut."""
    importance: Literal["auto", "off", "token", "sequence", "geometric"] = "auto"
    """Weight the policy loss by trainer/engine probability, per token, by a completion's product, or by its geometric
    mean. auto: token where the engine has weights of its own, runs ahead or cuts its distribution, else off."""
    importance_mode: Literal["truncate", "mask"] = "truncate"
    """What becomes of weights outside the bounds: cut to the bound, or 0 (nothing is learnt there)."""
    importance_low: float = Field(0.0, ge=0, le=1)
    """Lower bound of the importance weight."""
    importance_high: float = Field(2.0, ge=1)
    """Upper bound of the importance weight."""
    ratio_to: Literal["old", "engine"] = "old"
    """What the loss's ratio compares the policy with: itself before the step, while --importance weighs the engine's
    difference from that; or the engine that sampled, at once, so that clips and gates bound staleness too."""
    max_staleness: int = Field(0, ge=0)
    """N: servers sample on while a step is learnt from, the groups of the next N steps; what they are at goes on with
    new weights, and a group with a token from weights more than N steps old is dropped. 0: strictly on policy."""
    replay_order: str | None = None
    """Directory of a run with the same settings and --max-staleness, which is done once more in its order: each step
    learns from the same groups, sampled by the same versions. Ends with the same bytes where the engine repeats
    itself."""
    interrupt_thinking_after: int | None = Field(None, ge=1)
    """In training, a completion that has not ended its thinking (</think>) after this many tokens gets
    --interruption-phrase, and its answer is sampled on. The phrase's own tokens are not learnt (ScaleRL: 12,288)."""
    interruption_phrase: str = INTERRUPTION_PHRASE
    """What --interrupt-thinking-after puts in; it must hold </think>."""
    canary_tokens: int = Field(16, ge=0)
    """Tokens of each of the two completions whose log-probabilities are compared between engine and trainer after
    every change of weights; 0: no such check."""
    canary_tolerance: float | None = Field(None, gt=0)
    """Largest difference allowed there, in nats; by default 16 times the largest that was measured in the run, at most
    0.002 in float32 and 0.5 in bfloat16."""

    prove_weights_every: int = Field(5, ge=0)
    """Changes of weights from one comparison of vLLM's weights with the trainer's, byte for byte, to the next; the
    first change is always compared (vLLM 0.32; a GB takes about a second on each side). 0: never."""

    @model_validator(mode="after")
    def _order_of_what_is_sampled_ahead(self) -> RolloutConfig:
        if self.replay_order is not None and not self.max_staleness:
            raise ValueError("--replay-order is for runs with --max-staleness: others have one order only")
        return self

    @model_validator(mode="after")
    def _one_correction(self) -> RolloutConfig:
        if self.ratio_to == "engine" and self.importance in ("token", "sequence", "geometric"):
            raise ValueError(
                f"--ratio-to engine corrects for the engine by the loss's ratio; --importance {self.importance} would "
                "do it twice"
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
                f"{', '.join(changed)}: the engine would draw from a cut distribution while the trainer learns about "
                "the whole one, so every probability ratio would be biased; leave it off in training, or take the "
                "bias on with --biased-sampling"
            )
        return self
