"""Sums over the micro-batches of updates; `+` merges those of two updates or of two ranks."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field, fields
from typing import Any

from torch import Tensor

from r1lite.grpo.losses import TokenLoss
from r1lite.rl.aggregate import masked_sum


@dataclass(slots=True)
class Mismatch:
    """The difference between engine and trainer, in log-probabilities of tokens."""

    tokens: int = 0
    kl: float = 0.0
    ratio: float = 0.0
    logprob_max: float = 0.0
    ratio_min: float = math.inf
    ratio_max: float = -math.inf

    @classmethod
    def of(cls, measured: dict[str, float]) -> Mismatch:
        """From `importance.mismatch` of a micro-batch."""
        tokens = int(measured["tokens"])
        if tokens == 0:
            return cls()
        return cls(
            tokens,
            measured["kl"] * tokens,
            measured["weight_mean"] * tokens,
            measured["logprob_max"],
            measured["weight_min"],
            measured["weight_max"],
        )

    def __add__(self, other: Mismatch) -> Mismatch:
        return Mismatch(
            self.tokens + other.tokens,
            self.kl + other.kl,
            self.ratio + other.ratio,
            max(self.logprob_max, other.logprob_max),
            min(self.ratio_min, other.ratio_min),
            max(self.ratio_max, other.ratio_max),
        )

    def metrics(self) -> dict[str, Any]:
        """Metrics by name; the ratio is trainer/engine of a token, before any bound."""
        known = self.tokens > 0
        values = {
            "mismatch_logprob_max": self.logprob_max,
            "mismatch_kl": self.kl / max(1, self.tokens),
            "mismatch_ratio_min": self.ratio_min,
            "mismatch_ratio_mean": self.ratio / max(1, self.tokens),
            "mismatch_ratio_max": self.ratio_max,
        }
        return {name: value if known and math.isfinite(value) else None for name, value in values.items()}


@dataclass(slots=True)
class UpdateSums:
    """Sums over the micro-batches of one update, or of several."""

    loss: float = 0.0
    kl: float = 0.0  # to the reference
    drift: float = 0.0  # to the policy before the first update
    reference_drift: float = 0.0  # of the current policy, from the reference
    tokens: int = 0
    clipped_low: int = 0
    clipped_high: int = 0
    bounded: int = 0  # tokens whose importance ratio lies outside its bounds
    passes: int = 0  # over a minibatch: one for each update, also for those that were not made
    updates: int = 0
    skipped: int = 0  # updates without a finite gradient
    norms: list[float] = field(default_factory=list)  # of the gradients
    mismatch: Mismatch = field(default_factory=Mismatch)

    def __add__(self, other: UpdateSums) -> UpdateSums:
        return UpdateSums(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})

    def add(self, loss: Tensor, token_loss: TokenLoss, mask: Tensor) -> None:
        """Adds a micro-batch's part of the loss, and the tokens that the policy loss holds back."""
        self.clipped_low += int((token_loss.held_low & mask).sum())
        self.clipped_high += int((token_loss.held_high & mask).sum())
        self.tokens += int(mask.sum())
        self.loss += float(loss.detach())

    def add_drift(self, ratio: Tensor, mask: Tensor) -> None:
        """Adds the policy's movement in this step, from the new/old ratio of each token.

        r - 1 - log r, on the old policy's samples, estimates KL(old || new) (k3).
        """
        self.drift += float(masked_sum(ratio - 1 - ratio.log(), mask))

    def add_step(self, norm: float | None) -> None:
        """Adds an optimizer step: the gradient's norm, or None if it was skipped."""
        self.updates += 1
        if norm is None:
            self.skipped += 1
        else:
            self.norms.append(norm)

    @property
    def reference_kl(self) -> float:
        """KL between the policy and the reference when this update began, in nats per token: the mean k3."""
        return self.reference_drift / max(1, self.tokens)

    @property
    def policy_kl(self) -> float:
        """KL from the old policy to the current one, in nats per token."""
        return self.drift / max(1, self.tokens)

    def metrics(self) -> dict[str, Any]:
        """Metrics by their names in metrics.jsonl."""
        tokens = max(1, self.tokens)
        return {
            "loss": self.loss / max(1, self.passes) if math.isfinite(self.loss) else None,
            "grad_norm": statistics.fmean(self.norms) if self.norms else None,
            "kl": self.kl / tokens if math.isfinite(self.kl) else None,
            "clipped_low": self.clipped_low / tokens,
            "clipped_high": self.clipped_high / tokens,
            "updates": self.updates - self.skipped,
            "skipped_updates": self.skipped,
            "importance_bounded": self.bounded / tokens,
            **self.mismatch.metrics(),
        }
