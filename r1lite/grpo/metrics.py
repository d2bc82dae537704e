"""Metrics of a step's groups."""

from __future__ import annotations

import collections
import statistics
from collections.abc import Sequence
from typing import Any

from r1lite.types import Group
from verifiers import Completion


def rollout_metrics(groups: Sequence[Group]) -> dict[str, Any]:
    """Rewards, lengths and rates of all sampled completions; r1lite/rl/README.md documents each."""
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
        "interrupted": _mean([r.completion.inserted != (0, 0) for r in rollouts]),
        # -log p of sampled tokens estimates the entropy without another pass over the vocabulary.
        "entropy": _mean([-logprob for r in rollouts for logprob in _of_sampled(r.completion)]),
        "groups_without_signal": _mean([not group.has_signal for group in groups if len(group.rollouts) > 1]),
        "unscored": _mean([r.score.reward is None for r in rollouts]),
        "tokens": sum(lengths),
        "parts": {name: _mean(values) for name, values in parts.items()},
        "reasons": {name: dict(sorted(counts.items())) for name, counts in reasons.items()},
    }


def _of_sampled(completion: Completion) -> tuple[float, ...]:
    """Log-probabilities of the sampled tokens, without those of inserted tokens."""
    start, end = completion.inserted
    return completion.logprobs[:start] + completion.logprobs[end:]


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None
