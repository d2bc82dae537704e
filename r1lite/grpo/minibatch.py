"""What was sampled, as tensors: the minibatches that one optimizer step each learns from.

Shapes: P prompts, G group, B rows, T completion tokens.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r1lite.model.batch import MicroBatch, Row, cost, deal, micro_batches
from r1lite.types import Group, Rollout

Index = tuple[int, int]  # which prompt, which completion of it


@dataclass(slots=True)
class RolloutBatch:
    """A micro-batch, and what is known of it before the first update. Values at padding positions are undefined."""

    inputs: MicroBatch
    indices: list[Index]  # [B]
    rewards: Tensor  # [B]
    engine_logprobs: Tensor  # [B, T], of the engine that sampled; NaN where it gave none
    old_logprobs: Tensor | None = None  # [B, T], of the policy before the first update; None = of the one at hand
    ref_logprobs: Tensor | None = None  # [B, T]; None = no KL
    old_entropy: Tensor | None = None  # [B, T]
    old_values: Tensor | None = None  # [B, T], the critic's
    returns: Tensor | None = None  # [B, T], targets of the critic
    advantages: Tensor | None = None  # [B], or [B, T] where each token has its own

    @property
    def num_rows(self) -> int:
        """B."""
        return len(self.indices)

    @property
    def cost(self) -> int:
        """Tokens that go through the model, padding and shared prompts included."""
        return cost(self.inputs)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values and tensors."""
        inputs = {name: getattr(self.inputs, name) for name in ("prompts", "prompt_of_row", "token_ids", "loss_mask")}
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "inputs"}
        return {**inputs, **{name: value for name, value in values.items() if value is not None}}


@dataclass(slots=True)
class Minibatch:
    """What one optimizer step learns from. The counts are known before its first backward pass."""

    micro_batches: list[RolloutBatch]
    num_tokens: int  # of all completions that count, also of those whose gradient is 0 and isn't computed
    num_rows: int

    def within(self, max_tokens: int) -> list[RolloutBatch]:
        """Halves micro-batches of more than `max_tokens` tokens, down to single rows; returns all of them."""
        self.micro_batches = [small for one in self.micro_batches for small in _within(one, max_tokens)]
        return self.micro_batches


def make_minibatches(
    groups: Sequence[Group],
    count: int,
    *,
    counts: Callable[[Rollout], bool],
    has_gradient: Callable[[Index], bool],
    max_tokens: int,
    pad_id: int,
    device: Any,
) -> list[Minibatch]:
    """Deals whole groups to `count` minibatches; those without any row with a gradient are left out.

    Args:
        counts: whether a completion counts in the loss's mean.
        has_gradient: whether its gradient may differ from 0.
        max_tokens: of one micro-batch.
    """
    minibatches = []
    for hand in deal(len(groups), count, key=lambda i: i):
        inside = [
            (p, g)
            for p in hand
            for g, rollout in enumerate(groups[p].rollouts)
            if rollout.completion.token_ids and counts(rollout)
        ]
        made = _micro_batches(groups, [index for index in inside if has_gradient(index)], max_tokens, pad_id, device)
        if made:
            num_tokens = sum(len(groups[p].rollouts[g].completion.token_ids) for p, g in inside)
            minibatches.append(Minibatch(made, num_tokens, len(inside)))
    return minibatches


def _micro_batches(
    groups: Sequence[Group], indices: list[Index], max_tokens: int, pad_id: int, device: Any
) -> list[RolloutBatch]:
    rollouts = [groups[p].rollouts[g] for p, g in indices]
    rows = [
        Row(groups[p].prompt_ids, rollout.completion.token_ids)
        for (p, _), rollout in zip(indices, rollouts, strict=True)
    ]
    made = []
    for inputs in micro_batches(rows, max_tokens, pad_id, device):
        engine = torch.full(inputs.token_ids.shape, math.nan)
        for row, i in enumerate(inputs.rows):
            known = rollouts[i].completion.logprobs
            engine[row, : len(known)] = torch.tensor(known)
        rewards = torch.tensor([rollouts[i].score.reward for i in inputs.rows])
        made.append(RolloutBatch(inputs, [indices[i] for i in inputs.rows], rewards.to(device), engine.to(device)))
    return made


def _within(micro_batch: RolloutBatch, max_tokens: int) -> list[RolloutBatch]:
    if micro_batch.cost <= max_tokens or micro_batch.num_rows == 1:
        return [micro_batch]
    return [small for half in halves(micro_batch) for small in _within(half, max_tokens)]


def halves(micro_batch: RolloutBatch) -> list[RolloutBatch]:
    """The micro-batch in two, by rows, with all that is known of it. Raises ValueError if it has a single row."""
    count = micro_batch.num_rows
    if count < 2:
        raise ValueError("a single completion can't be halved")
    return [_narrowed(micro_batch, rows) for rows in (range(count // 2), range(count // 2, count))]


def _narrowed(micro_batch: RolloutBatch, rows: range) -> RolloutBatch:
    inputs, chosen = micro_batch.inputs, slice(rows.start, rows.stop)
    width = int(inputs.valid_mask[chosen].any(dim=0).sum())
    numbers = inputs.prompt_of_row[chosen].tolist()
    used = sorted(set(numbers))
    narrow = MicroBatch(
        prompts=[inputs.prompts[n] for n in used],
        prompt_of_row=torch.tensor([used.index(n) for n in numbers], device=inputs.token_ids.device),
        token_ids=inputs.token_ids[chosen, :width],
        valid_mask=inputs.valid_mask[chosen, :width],
        loss_mask=inputs.loss_mask[chosen, :width],
        rows=inputs.rows[chosen],
    )
    known = {
        field.name: value[chosen] if value.ndim == 1 else value[chosen, :width]
        for field in dataclasses.fields(micro_batch)
        if isinstance(value := getattr(micro_batch, field.name), Tensor)
    }
    return dataclasses.replace(micro_batch, inputs=narrow, indices=micro_batch.indices[chosen], **known)


def to_rows(values: Tensor, micro_batch: RolloutBatch) -> Tensor:
    """[P, G] values of completions -> [B], those of a micro-batch's rows."""
    return torch.stack([values[index] for index in micro_batch.indices]).to(micro_batch.inputs.token_ids.device)


def to_groups(values: Sequence[Tensor], micro_batches: Sequence[RolloutBatch], like: Tensor) -> Tensor:
    """Values [B] of each micro-batch in turn -> [P, G], the shape of `like`; 0 for completions in none."""
    by_group = torch.zeros_like(like)
    for micro_batch, of_rows in zip(micro_batches, values, strict=True):
        for index, value in zip(micro_batch.indices, of_rows.tolist(), strict=True):
            by_group[index] = value
    return by_group
