"""The metrics of a step's updates, gathered over its micro-batches."""

from __future__ import annotations

import math
import statistics
from typing import Any

from torch import Tensor

from r1lite.rl.aggregate import masked_sum
from r1lite.rl.losses import clip_rates


class Totals:
    """Sums over a step's updates."""

    def __init__(self) -> None:
        self.loss = self.kl = 0.0
        self.tokens = self.clipped_low = self.clipped_high = self.updates = self.skipped = self.bounded = 0
        self.drift = self.part_loss = 0.0
        self.drift_tokens = 0
        self.policy_kl: float | None = None
        self.out_of_memory = 0  # times that the micro-batches were halved
        self.stopped = 0  # updates that --stop-kl left out
        self.mismatch = Mismatch()
        self.norms: list[float] = []

    def add(self, loss: Tensor, ratio: Tensor, advantages: Tensor, mask: Tensor, bounds: tuple[float, float]) -> None:
        """Takes in a micro-batch: its share of the loss, and the ratios [B, T] that `bounds` hold back."""
        low, high = clip_rates(ratio, advantages, mask, lowest=bounds[0], highest=bounds[1])
        self.clipped_low += int(low)
        self.clipped_high += int(high)
        self.tokens += int(mask.sum())
        self.loss += float(loss.detach())
        self.part_loss += float(loss.detach())

    def add_drift(self, ratio: Tensor, mask: Tensor) -> None:
        """Takes in how far the policy has moved in this step, by the new/old ratio of each token.

        r - 1 - log r, on the old policy's samples, estimates KL(old || new) (k3).
        """
        self.drift += float(masked_sum(ratio - 1 - ratio.log(), mask))
        self.drift_tokens += int(mask.sum())

    def begin_part(self) -> None:
        """The next micro-batches are another update's."""
        self.drift, self.drift_tokens, self.part_loss = 0.0, 0, 0.0

    def end_part(self) -> float:
        """The policy's drift (nats a token) as this update saw it."""
        self.policy_kl = self.drift / max(1, self.drift_tokens)
        return self.policy_kl

    def add_update(self, norm: float | None) -> None:
        """Takes in an optimizer step: the gradient's norm, or None if it was skipped."""
        self.updates += 1
        if norm is None:
            self.skipped += 1
        else:
            self.norms.append(norm)

    def metrics(self) -> dict[str, Any]:
        """By the names of metrics.jsonl."""
        tokens = max(1, self.tokens)
        return {
            "loss": self.loss / max(1, self.updates) if math.isfinite(self.loss) else None,
            "grad_norm": statistics.fmean(self.norms) if self.norms else None,
            "kl": self.kl / tokens if math.isfinite(self.kl) else None,
            "clipped_low": self.clipped_low / tokens,
            "clipped_high": self.clipped_high / tokens,
            "policy_kl": self.policy_kl if self.policy_kl is not None and math.isfinite(self.policy_kl) else None,
            "updates": self.updates - self.skipped,
            "stopped_updates": self.stopped,
            "skipped_updates": self.skipped,
            "out_of_memory": self.out_of_memory,
            "importance_bounded": self.bounded / tokens,
            **self.mismatch.metrics(),
        }


class Mismatch:
    """How far the engine is from the trainer, over a step's first update."""

    def __init__(self) -> None:
        self.tokens = 0
        self.kl = self.ratio = self.logprob_max = 0.0
        self.ratio_min, self.ratio_max = math.inf, -math.inf

    def add(self, part: dict[str, float]) -> None:
        """Takes in `importance.mismatch` of a micro-batch."""
        tokens = int(part["tokens"])
        if tokens == 0:
            return
        self.tokens += tokens
        self.kl += part["kl"] * tokens
        self.ratio += part["weight_mean"] * tokens
        self.logprob_max = max(self.logprob_max, part["logprob_max"])
        self.ratio_min = min(self.ratio_min, part["weight_min"])
        self.ratio_max = max(self.ratio_max, part["weight_max"])

    def metrics(self) -> dict[str, Any]:
        """The ratio is trainer/engine of a token, before any bound."""
        known = self.tokens > 0
        values = {
            "mismatch_logprob_max": self.logprob_max,
            "mismatch_kl": self.kl / max(1, self.tokens),
            "mismatch_ratio_min": self.ratio_min,
            "mismatch_ratio_mean": self.ratio / max(1, self.tokens),
            "mismatch_ratio_max": self.ratio_max,
        }
        return {name: value if known and math.isfinite(value) else None for name, value in values.items()}
