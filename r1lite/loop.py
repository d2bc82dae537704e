"""One GRPO step, from prompts to new weights.

Shapes: P prompts, G group, B = P*G completions, T completion tokens.
"""

from __future__ import annotations

import collections
import functools
import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r1lite.batch import MicroBatch, Row, deal, micro_batches
from r1lite.config import GRPOConfig
from r1lite.errors import RunError
from r1lite.policy import Policy, Trainer
from r1lite.rl import losses
from r1lite.rl.advantages import group_relative
from r1lite.rl.sampling import completion_seed
from r1lite.rl.schedule import learning_rate
from r1lite.rollout import RolloutEngine, Sampling
from r1lite.signals import StopSignal
from r1lite.solve import Judge, Prompt
from r1lite.trajectory import Group, Rollout

_MAX_NONFINITE = 3  # updates in a row
_MAX_MISMATCH = 0.02  # nats, in float32, where decoding and training differ by rounding alone (1e-5 is usual)


@dataclass(slots=True)
class Loop:
    """What a step needs. `step` counts from 0 and is all there is to the position in the data."""

    config: GRPOConfig
    prompts: Sequence[Prompt]
    judge: Judge
    engine: RolloutEngine
    policy: Policy
    trainer: Trainer
    reference: Policy | None  # for the KL term
    stop: StopSignal
    nonfinite: int = 0  # updates without a finite gradient, in a row

    def step(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        """Samples, scores, learns, and gives the engine the new weights.

        Returns: the groups, and the step's metrics.

        Raises:
            RunError: too many completions could not be scored, or no finite gradient three times in a row.
            Interrupted: while sampling; nothing has changed then.
        """
        started = time.perf_counter()
        chosen = choose_prompts(self.prompts, step, self.config.prompts_per_step, self.config.seed)
        with self.stop.interruptible():
            sampled = self._sample(chosen, step)
        if not all(math.isfinite(logprob) for row in sampled for c in row for logprob in c.logprobs):
            raise RunError(
                f"step {step + 1}: the model's log-probabilities are not finite. The last checkpoint stands; "
                "try a lower --lr"
            )
        generated = time.perf_counter()
        groups = self._score(chosen, sampled)
        scored = time.perf_counter()
        learnt = self._learn(groups, step)
        self.engine.load_weights(self.policy.named_weights(), version=step + 1)
        ended = time.perf_counter()
        metrics = {
            **_rollout_metrics(groups),
            **learnt,
            "generate_s": generated - started,
            "score_s": scored - generated,
            "train_s": ended - scored,
            "step_s": ended - started,
        }
        return groups, metrics

    def _sample(self, chosen: Sequence[Prompt], step: int) -> list[list[Any]]:
        config = self.config
        # The place in the step tells a problem's groups apart where a small set comes round twice in one step.
        seeds = [
            [completion_seed(config.seed, f"train-{p}", step, prompt.problem.id, g) for g in range(config.group_size)]
            for p, prompt in enumerate(chosen)
        ]
        sampling = Sampling(config.temperature, config.max_completion_tokens, config.stop_text)
        return self.engine.generate([prompt.token_ids for prompt in chosen], seeds, sampling)  # [P][G]

    def _score(self, chosen: Sequence[Prompt], sampled: list[list[Any]]) -> list[Group]:
        pairs = [(prompt.problem, c) for prompt, row in zip(chosen, sampled, strict=True) for c in row]
        scores = self.judge.score(pairs)
        unscored = [score.error or "every verifier abstained" for score in scores if score.reward is None]
        if len(unscored) > self.config.max_unscored_rate * len(scores):
            raise RunError(
                f"{len(unscored)} of {len(scores)} completions could not be scored, more than --max-unscored-rate "
                f"{self.config.max_unscored_rate}; the first: {unscored[0]}"
            )
        rewards = torch.tensor(
            [math.nan if score.reward is None else score.reward for score in scores], dtype=torch.float32
        ).view(len(chosen), -1)  # [P, G]
        advantages = group_relative(rewards, scale=self.config.advantage_scale)  # [P, G]
        rollouts = [
            Rollout(
                completion,
                score,
                advantage,
                self.judge.is_correct(problem, completion, score),
                self.judge.is_well_formed(problem, completion, score),
            )
            for (problem, completion), score, advantage in zip(
                pairs, scores, advantages.flatten().tolist(), strict=True
            )
        ]
        size = rewards.shape[1]
        return [
            Group(prompt.problem, prompt.text, prompt.token_ids, tuple(rollouts[p * size : (p + 1) * size]))
            for p, prompt in enumerate(chosen)
        ]

    def _learn(self, groups: Sequence[Group], step: int) -> dict[str, Any]:
        """Updates the policy on the groups: `updates_per_rollout` passes over `minibatches` parts."""
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
        if self.policy.dtype == torch.float32 and totals.mismatch > _MAX_MISMATCH:
            raise RunError(
                f"step {step + 1}: the sampler's log-probabilities differ from the trainer's by {totals.mismatch:.3g} "
                f"nats, more than {_MAX_MISMATCH}: it does not sample from the trainer's weights"
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
            totals.mismatch = max(totals.mismatch, _mismatch(old, batch, part.engine_logprobs))
        return loss


@dataclass(slots=True)
class _Part:
    """What one optimizer step learns from."""

    batches: list[MicroBatch]
    engine_logprobs: list[tuple[float, ...]]  # by row
    num_tokens: int  # all scored completion tokens: the denominator of the token mean
    old_logprobs: list[Tensor] | None = None  # by micro-batch, [B, T]
    ref_logprobs: list[Tensor] | None = None


class _Totals:
    """Sums over a step's updates."""

    def __init__(self) -> None:
        self.loss = self.kl = self.mismatch = 0.0
        self.tokens = self.clipped_low = self.clipped_high = self.updates = self.skipped = 0
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
            "mismatch_logprob_max": self.mismatch if math.isfinite(self.mismatch) else None,
        }


def choose_prompts(prompts: Sequence[Prompt], step: int, count: int, seed: int) -> list[Prompt]:
    """The prompts of a step: each epoch goes through all of them in an order of its own."""
    chosen: list[Prompt] = []
    position = step * count
    while len(chosen) < count:
        epoch, offset = divmod(position + len(chosen), len(prompts))
        order = _epoch_order(seed, epoch, len(prompts))
        chosen += [prompts[i] for i in order[offset : offset + count - len(chosen)]]
    return chosen


@functools.lru_cache(maxsize=2)
def _epoch_order(seed: int, epoch: int, count: int) -> list[int]:
    order = list(range(count))
    random.Random(f"{seed}-{epoch}").shuffle(order)
    return order


def _mismatch(logprobs: Tensor, batch: MicroBatch, engine_logprobs: Sequence[tuple[float, ...]]) -> float:
    """Largest |log p(trainer) - log p(engine)| of a token, in nats."""
    differences = [
        (row[: len(engine_logprobs[i])] - torch.tensor(engine_logprobs[i])).abs().max()
        for row, i in zip(logprobs.detach().cpu(), batch.rows, strict=True)
    ]
    return float(torch.stack(differences).max())


def _rollout_metrics(groups: Sequence[Group]) -> dict[str, Any]:
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    rewards = [r.score.reward for r in rollouts if r.score.reward is not None]
    lengths = [len(r.completion.token_ids) for r in rollouts]
    parts: dict[str, list[float]] = collections.defaultdict(list)
    reasons: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for rollout in rollouts:
        for name, verdict in rollout.score.verdicts.items():
            reasons[name][verdict.reason] += 1
            if verdict.score is not None:
                parts[name].append(verdict.score)
    return {
        "reward": _mean(rewards),
        "reward_std": statistics.pstdev(rewards) if rewards else None,
        "accuracy": _mean([r.correct for r in rollouts if r.correct is not None]),
        "format_rate": _mean([r.well_formed for r in rollouts if r.well_formed is not None]),
        "completion_tokens": statistics.fmean(lengths),
        "completion_tokens_max": max(lengths),
        "truncated": _mean([r.completion.finish_reason == "length" for r in rollouts]),
        # -log p of sampled tokens estimates the entropy without another pass over the vocabulary.
        "entropy": _mean([-logprob for r in rollouts for logprob in r.completion.logprobs]),
        "groups_without_signal": _mean([not group.has_signal for group in groups]),
        "unscored": _mean([r.score.reward is None for r in rollouts]),
        "tokens": sum(lengths),
        "parts": {name: _mean(values) for name, values in parts.items()},
        "reasons": {name: dict(sorted(counts.items())) for name, counts in reasons.items()},
    }


def _mean(values: Sequence[float | None]) -> float | None:
    return statistics.fmean(values) if values else None  # type: ignore[type-var]
