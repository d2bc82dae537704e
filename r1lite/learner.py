"""What a step learns from its groups: GRPO's update.

Shapes: B rows, T completion tokens.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from r1lite.batch import MicroBatch, Row, deal, micro_batches
from r1lite.config import GRPOConfig
from r1lite.errors import RunError
from r1lite.policy import Policy, Trainer
from r1lite.rl import losses
from r1lite.rl.advantages import group_relative
from r1lite.rl.importance import importance_ratio, importance_weights, mismatch
from r1lite.rl.schedule import learning_rate
from r1lite.trajectory import Group

_MAX_NONFINITE = 3  # updates in a row
_MAX_MISMATCH = 0.02  # nats, in float32, where decoding and training differ by rounding alone (1e-5 is usual)


class Learner(Protocol):
    """Turns rewards into advantages and advantages into new weights. Everything it must remember is in its state."""

    policy: Policy

    def advantages(self, rewards: Tensor) -> Tensor:
        """[P, G] rewards (NaN = unscored) -> [P, G]: how much better each completion did; 0 = nothing to learn."""

    def learn(self, groups: Sequence[Group], step: int) -> dict[str, Any]:
        """Changes the policy. Returns the update's metrics."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the policy's weights."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The reverse."""


@dataclass(slots=True)
class GRPOLearner:
    """Group relative policy optimization (arXiv:2402.03300)."""

    config: GRPOConfig
    policy: Policy
    trainer: Trainer
    reference: Policy | None  # for the KL term
    nonfinite: int = 0  # updates without a finite gradient, in a row

    def advantages(self, rewards: Tensor) -> Tensor:
        """[P, G] rewards -> [P, G] group-relative advantages."""
        return group_relative(rewards, scale=self.config.advantage_scale)

    def state_dict(self) -> dict[str, Any]:
        """Optimizer moments and the count of bad updates."""
        return {"optimizer": self.trainer.optimizer.state_dict(), "nonfinite": self.nonfinite}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The reverse."""
        self.trainer.optimizer.load_state_dict(state["optimizer"])
        self.nonfinite = state["nonfinite"]

    def learn(self, groups: Sequence[Group], step: int) -> dict[str, Any]:
        """Updates the policy on the groups: `updates_per_rollout` passes over `minibatches` parts.

        Returns: the update's metrics.

        Raises:
            RunError: no finite gradient three times in a row, or the sampler's weights aren't the trainer's.
        """
        config = self.config
        lr = learning_rate(
            step,
            peak=config.lr,
            total_steps=config.steps,
            warmup_steps=config.warmup_steps,
            schedule=config.lr_schedule,
            min_ratio=config.min_lr_ratio,
        )
        parts = [
            self._part([groups[i] for i in hand]) for hand in deal(len(groups), config.minibatches, key=lambda i: i)
        ]
        parts = [part for part in parts if part.batches]
        single = config.updates_per_rollout * len(parts) == 1
        if not single:
            for part in parts:
                part.old_logprobs = self._frozen_logprobs(self.policy, part)
        if self.reference is not None:
            for part in parts:
                part.ref_logprobs = self._frozen_logprobs(self.reference, part)
        totals = _Totals()
        for _ in range(config.updates_per_rollout):
            for part in parts:
                for n, batch in enumerate(part.batches):
                    loss = self._loss(part, n, batch, totals)
                    loss.backward()  # type: ignore[no-untyped-call]
                norm = self.trainer.step(lr)
                self.nonfinite = 0 if norm is not None else self.nonfinite + 1
                totals.add_update(norm)
                if self.nonfinite >= _MAX_NONFINITE:
                    raise RunError(
                        f"step {step + 1}: the gradient was not finite {_MAX_NONFINITE} times in a row; "
                        "the weights are those before it. Try a lower --lr or --dtype float32"
                    )
        exact = self.policy.dtype == torch.float32 and not config.biased_sampling and config.max_staleness == 0
        if exact and totals.mismatch.logprob_max > _MAX_MISMATCH:
            raise RunError(
                f"step {step + 1}: the sampler's log-probabilities differ from the trainer's by "
                f"{totals.mismatch.logprob_max:.3g} nats, more than {_MAX_MISMATCH}: it does not sample from the "
                "trainer's weights"
            )
        return {"lr": lr, **totals.metrics()}

    def _part(self, groups: Sequence[Group]) -> _Part:
        """The rows of these groups that carry a gradient; all scored tokens count in the mean.

        A group whose rewards are equal has advantage 0, so without a KL term its gradient is 0 and isn't computed.
        """
        scored = [(group, r) for group in groups for r in group.rollouts if r.score.reward is not None]
        taught = [
            (group, rollout)
            for group, rollout in scored
            if (rollout.advantage != 0 or self.reference is not None) and rollout.completion.token_ids
        ]
        rows = [Row(group.prompt_ids, r.completion.token_ids, r.advantage) for group, r in taught]
        config, model = self.config, self.policy.model
        return _Part(
            batches=micro_batches(rows, config.micro_batch_tokens, self.policy.pad_id, model.device),
            engine_logprobs=[r.completion.logprobs for _, r in taught],
            num_tokens=sum(len(r.completion.token_ids) for _, r in scored),
        )

    @torch.no_grad()
    def _frozen_logprobs(self, policy: Policy, part: _Part) -> list[Tensor]:
        return [policy.logprobs(batch) for batch in part.batches]

    def _loss(self, part: _Part, n: int, batch: MicroBatch, totals: _Totals) -> Tensor:
        """This micro-batch's share of the token-mean loss over the whole part."""
        config = self.config
        logprobs = self.policy.logprobs(batch)  # [B, T]
        # With one update a rollout, the policy that sampled is the policy that learns.
        old = part.old_logprobs[n] if part.old_logprobs else logprobs.detach()
        ratio = losses.policy_ratio(logprobs, old)
        per_token = losses.clipped_surrogate(
            ratio, batch.advantages, clip_low=config.clip_low, clip_high=config.clip_high
        )
        engine = part.engine_logprobs_of(batch)
        if config.importance in ("token", "sequence", "geometric"):
            raw = importance_ratio(old, engine, batch.mask, level=config.importance)
            low, high = config.importance_low, config.importance_high
            per_token = per_token * importance_weights(raw, mode=config.importance_mode, low=low, high=high)
            bounded = ((raw < low) | (raw > high)) & batch.mask
            totals.bounded += int(bounded.sum())
        if part.ref_logprobs:
            kl = losses.kl_k3(logprobs, part.ref_logprobs[n])
            per_token = per_token + config.kl_coef * kl
            totals.kl += float(losses.masked_sum(kl.detach(), batch.mask))
        loss = losses.masked_sum(per_token, batch.mask) / part.num_tokens
        low, high = losses.clip_rates(
            ratio, batch.advantages, batch.mask, clip_low=config.clip_low, clip_high=config.clip_high
        )
        totals.clipped_low += int(low)
        totals.clipped_high += int(high)
        totals.tokens += int(batch.mask.sum())
        totals.loss += float(loss.detach())
        if not totals.updates:  # the weights are still those that sampled
            totals.mismatch.add(mismatch(old, engine, batch.mask))
        return loss


@dataclass(slots=True)
class _Part:
    """What one optimizer step learns from."""

    batches: list[MicroBatch]
    engine_logprobs: list[tuple[float, ...]]  # by row
    num_tokens: int  # all scored completion tokens: the denominator of the token mean
    old_logprobs: list[Tensor] | None = None  # by micro-batch, [B, T]
    ref_logprobs: list[Tensor] | None = None

    def engine_logprobs_of(self, batch: MicroBatch) -> Tensor:
        """[B, T] log-probabilities as the engine gave them; NaN where it gave none."""
        rows = [torch.tensor(self.engine_logprobs[i][: batch.mask.shape[1]]) for i in batch.rows]
        padded = torch.full(batch.mask.shape, math.nan)
        for b, row in enumerate(rows):
            padded[b, : len(row)] = row
        return padded.to(batch.mask.device)


class _Mismatch:
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


class _Totals:
    """Sums over a step's updates."""

    def __init__(self) -> None:
        self.loss = self.kl = 0.0
        self.tokens = self.clipped_low = self.clipped_high = self.updates = self.skipped = self.bounded = 0
        self.mismatch = _Mismatch()
        self.norms: list[float] = []

    def add_update(self, norm: float | None) -> None:
        self.updates += 1
        if norm is None:
            self.skipped += 1
        else:
            self.norms.append(norm)

    def metrics(self) -> dict[str, Any]:
        tokens = max(1, self.tokens)
        return {
            "loss": self.loss / max(1, self.updates) if math.isfinite(self.loss) else None,
            "grad_norm": statistics.fmean(self.norms) if self.norms else None,
            "kl": self.kl / tokens if math.isfinite(self.kl) else None,
            "clipped_low": self.clipped_low / tokens,
            "clipped_high": self.clipped_high / tokens,
            "updates": self.updates - self.skipped,
            "skipped_updates": self.skipped,
            "importance_bounded": self.bounded / tokens,
            **self.mismatch.metrics(),
        }
