"""Sampled completions as tensors: the minibatches, each the input of one optimizer step.

Shapes: P prompts, G group, B rows, T completion tokens.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r1lite.distributed.world import World
from r1lite.model.batch import MicroBatch, Row, cost, deal
from r1lite.model.out_of_memory import MicroBatchBudget
from r1lite.rl.losses import by_token
from r1lite.types import Group, Rollout
from verifiers import Completion

Index = tuple[int, int]  # (prompt, completion of the prompt)
Cut = Callable[[Sequence[Row], int], Sequence[MicroBatch]]  # rows and the tokens of a micro-batch at most
_MEASURED = ("old_logprobs", "ref_logprobs", "old_entropy", "old_square_mass", "old_values")


@dataclass(slots=True)
class RolloutBatch:
    """A micro-batch with its measurements before the first update. Values at padding positions are undefined."""

    inputs: MicroBatch
    indices: list[Index]  # [B]
    rewards: Tensor  # [B]
    right: Tensor  # [B] bool, by the task's own verdict
    engine_logprobs: Tensor  # [B, T], of the engine that sampled; NaN if it returned none
    old_logprobs: Tensor | None = None  # [B, T], of the policy before the first update; None = the current policy
    ref_logprobs: Tensor | None = None  # [B, T]; None = no KL
    old_entropy: Tensor | None = None  # [B, T]
    old_square_mass: Tensor | None = None  # [B, T], sum of the squared probabilities of all tokens
    old_values: Tensor | None = None  # [B, T], the critic's
    returns: Tensor | None = None  # [B, T], targets of the critic
    advantages: Tensor | None = None  # [B], or [B, T] if each token has its own
    chosen: Tensor | None = None  # [B, T] bool, tokens of high covariance among those of the minibatch

    @property
    def num_rows(self) -> int:
        """B."""
        return len(self.indices)

    @property
    def cost(self) -> int:
        """Number of tokens that go through the model, padding included."""
        return cost(self.inputs)

    def unmeasured(self) -> RolloutBatch:
        """The same rows without any measurement."""
        nothing: dict[str, Any] = dict.fromkeys(_MEASURED)
        return dataclasses.replace(self, **nothing)

    def measured(self) -> dict[str, Tensor]:
        """The models' measurements before the first update, on the CPU."""
        return {name: value.cpu() for name in _MEASURED if (value := getattr(self, name)) is not None}

    def take(self, measured: Mapping[str, Tensor]) -> None:
        """Sets the measurements that another rank made."""
        for name, value in measured.items():
            setattr(self, name, value.to(self.inputs.token_ids.device))

    def as_dict(self) -> dict[str, Any]:
        """All values as a dict of plain values and tensors."""
        inputs = {name: getattr(self.inputs, name) for name in ("prompts", "prompt_of_row", "token_ids", "loss_mask")}
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "inputs"}
        return {**inputs, **{name: value for name, value in values.items() if value is not None}}


@dataclass(slots=True)
class Minibatch:
    """The input of one optimizer step. The counts are known before its first backward pass."""

    micro_batches: list[RolloutBatch]
    counted: dict[int, tuple[int, int]]  # prompt -> counted tokens and rows, including rows with gradient 0, which
    # are not computed
    right_tokens: dict[int, int]  # prompt -> tokens of right completions among them

    @property
    def num_tokens(self) -> int:
        """Number of counted tokens."""
        return sum(tokens for tokens, _ in self.counted.values())

    @property
    def num_right_tokens(self) -> int:
        """Number of counted tokens of right completions."""
        return sum(self.right_tokens.values())

    @property
    def num_rows(self) -> int:
        """Number of counted completions."""
        return sum(rows for _, rows in self.counted.values())

    @property
    def num_prompts(self) -> int:
        """Number of prompts with a counted completion."""
        return len(self.counted)

    def prompt_tokens(self, micro_batch: RolloutBatch) -> Tensor:
        """[B]: number of counted tokens of each row's prompt."""
        counts = [self.counted[prompt][0] for prompt, _ in micro_batch.indices]
        return torch.tensor(counts, device=micro_batch.inputs.token_ids.device)

    def choose_tokens(self, choose: Callable[[Tensor, Tensor], Tensor]) -> None:
        """Marks tokens as `chosen`, by a function of all N tokens' old log-probabilities and advantages, [N] each.

        The tokens are in the order of their completions, independent of the micro-batches.
        """
        rows = sorted(
            ((index, one, row) for one in self.micro_batches for row, index in enumerate(one.indices)),
            key=lambda entry: entry[0],
        )
        logprobs, advantages = [], []
        for _, one, row in rows:
            assert one.old_logprobs is not None
            assert one.advantages is not None
            mask = one.inputs.loss_mask[row]
            logprobs.append(one.old_logprobs[row, mask])
            advantages.append(by_token(one.advantages)[row].expand(mask.shape)[mask])
        chosen = choose(torch.cat(logprobs), torch.cat(advantages))
        for (_, one, row), of_row in zip(rows, chosen.split([len(part) for part in logprobs]), strict=True):
            if one.chosen is None:
                one.chosen = torch.zeros_like(one.inputs.loss_mask)
            one.chosen[row] = torch.zeros_like(one.chosen[row]).masked_scatter(one.inputs.loss_mask[row], of_row)

    def within(self, max_tokens: int) -> list[RolloutBatch]:
        """Halves micro-batches of more than `max_tokens` tokens, down to single rows; returns all of them."""
        self.micro_batches = [small for one in self.micro_batches for small in _within(one, max_tokens)]
        return self.micro_batches

    def measure(
        self, measure: Callable[[RolloutBatch], None], budget: MicroBatchBudget, world: World, step: int
    ) -> int:
        """Each rank measures its micro-batches, then all exchange results. Returns: how often memory ran out.

        Args:
            measure: sets the values of a micro-batch that are not measured yet.
        """
        mine: dict[int, RolloutBatch] = {}

        def add(number: int, micro_batch: RolloutBatch) -> None:
            measure(micro_batch)
            mine[number] = micro_batch

        times = budget.go_through(self.within, add, mine.clear, step=step, idle=lambda one: measure(one.unmeasured()))
        if world.size > 1:
            for known in world.all_gather_object({number: one.measured() for number, one in mine.items()}):
                for number, values in known.items():
                    self.micro_batches[number].take(values)
        return times


def make_minibatches(
    groups: Sequence[Group],
    count: int,
    *,
    counts: Callable[[Rollout], bool],
    has_gradient: Callable[[Index], bool],
    max_tokens: int,
    cut: Cut,
) -> list[Minibatch]:
    """Deals whole groups to `count` minibatches; leaves out minibatches without a row that has a gradient.

    Args:
        counts: whether a completion counts in the loss's mean.
        has_gradient: whether its gradient may differ from 0.
        max_tokens: tokens of one micro-batch.
        cut: of the policy, `Policy.micro_batches`.
    """
    minibatches = []
    for hand in deal(len(groups), count, key=lambda i: i):
        inside = [
            (p, g)
            for p in hand
            for g, rollout in enumerate(groups[p].rollouts)
            if rollout.completion.token_ids and counts(rollout)
        ]
        learnt = [index for index in inside if has_gradient(index)]
        made = _micro_batches(groups, learnt, max_tokens, cut)
        if made:
            counted: dict[int, tuple[int, int]] = {}
            right = dict.fromkeys((p for p, _ in inside), 0)
            for p, g in inside:
                tokens, rows = counted.get(p, (0, 0))
                rollout = groups[p].rollouts[g]
                length = rollout.completion.num_sampled
                counted[p] = (tokens + length, rows + 1)
                right[p] += length if rollout.correct else 0
            minibatches.append(Minibatch(made, counted, right))
    return minibatches


def every_completion(groups: Sequence[Group], *, max_tokens: int, cut: Cut) -> Minibatch:
    """All completions with a token, for measurements: nothing is counted, and unscored ones have the reward NaN."""
    indices = [(p, g) for p, group in enumerate(groups) for g, r in enumerate(group.rollouts) if r.completion.token_ids]
    return Minibatch(_micro_batches(groups, indices, max_tokens, cut), {}, {})


def _micro_batches(groups: Sequence[Group], indices: list[Index], max_tokens: int, cut: Cut) -> list[RolloutBatch]:
    rollouts = [groups[p].rollouts[g] for p, g in indices]
    rows = [
        Row(groups[p].prompt_ids, rollout.completion.token_ids, _sampled(rollout.completion))
        for (p, _), rollout in zip(indices, rollouts, strict=True)
    ]
    made = []
    for inputs in cut(rows, max_tokens):
        device = inputs.token_ids.device
        engine = torch.full(inputs.token_ids.shape, math.nan)
        for row, i in enumerate(inputs.rows):
            known = rollouts[i].completion.logprobs
            engine[row, : len(known)] = torch.tensor(known)
        earned = [rollouts[i].score.reward for i in inputs.rows]
        rewards = torch.tensor([math.nan if reward is None else reward for reward in earned])
        right = torch.tensor([bool(rollouts[i].correct) for i in inputs.rows])
        of_rows = [indices[i] for i in inputs.rows]
        made.append(RolloutBatch(inputs, of_rows, rewards.to(device), right.to(device), engine.to(device)))
    return made


def _sampled(completion: Completion) -> tuple[bool, ...] | None:
    """Mask of the sampled tokens, which are learnt, against the inserted ones; None = all are sampled."""
    start, end = completion.inserted
    if start == end:
        return None
    return tuple(not start <= t < end for t in range(len(completion.token_ids)))


def reshuffled(
    minibatches: Sequence[Minibatch], generator: random.Random, *, max_tokens: int, cut: Cut
) -> list[Minibatch]:
    """The same completions and measurements, in as many minibatches with other combinations of prompts.

    Later passes over a rollout then average over other prompts (PPO, arXiv:1707.06347 algorithm 1).
    """
    counted = {prompt: counts for minibatch in minibatches for prompt, counts in minibatch.counted.items()}
    right = {prompt: tokens for minibatch in minibatches for prompt, tokens in minibatch.right_tokens.items()}
    rows: dict[int, list[RolloutBatch]] = {prompt: [] for prompt in counted}
    for minibatch in minibatches:
        for one in minibatch.micro_batches:
            for row, (prompt, _) in enumerate(one.indices):
                rows[prompt].append(_narrowed(one, range(row, row + 1)))
    order = sorted(counted)
    generator.shuffle(order)
    made = []
    for hand in deal(len(order), len(minibatches), key=lambda i: i):
        prompts = [order[i] for i in hand]
        inside = [row for prompt in prompts for row in rows[prompt]]
        if inside:
            counts = {prompt: counted[prompt] for prompt in prompts}
            of_right = {prompt: right[prompt] for prompt in prompts}
            made.append(Minibatch(_together(inside, max_tokens, cut), counts, of_right))
    return made


def _together(singles: Sequence[RolloutBatch], max_tokens: int, cut: Cut) -> list[RolloutBatch]:
    """Micro-batches of one row each -> micro-batches of at most `max_tokens` tokens."""
    rows = [
        Row(one.inputs.prompts[0], tuple(one.inputs.token_ids[0].tolist()), tuple(one.inputs.loss_mask[0].tolist()))
        for one in singles
    ]
    made = []
    for inputs in cut(rows, max_tokens):
        parts = [singles[i] for i in inputs.rows]
        width = inputs.token_ids.shape[1]
        known = {
            field.name: torch.cat([_widened(getattr(part, field.name), width) for part in parts])
            for field in dataclasses.fields(RolloutBatch)
            if isinstance(getattr(parts[0], field.name), Tensor)
        }
        made.append(RolloutBatch(inputs=inputs, indices=[part.indices[0] for part in parts], **known))
    return made


def _widened(values: Tensor, width: int) -> Tensor:
    """[1] is returned as it is; [1, t] -> [1, width]."""
    return values if values.ndim == 1 else torch.nn.functional.pad(values, (0, width - values.shape[1]))


def _within(micro_batch: RolloutBatch, max_tokens: int) -> list[RolloutBatch]:
    if micro_batch.cost <= max_tokens or micro_batch.num_rows == 1:
        return [micro_batch]
    return [small for half in halves(micro_batch) for small in _within(half, max_tokens)]


def halves(micro_batch: RolloutBatch) -> list[RolloutBatch]:
    """Splits the micro-batch in two by rows, with its measurements. Raises ValueError if it has a single row."""
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
        layout=inputs.layout,
    )
    known = {
        field.name: value[chosen] if value.ndim == 1 else value[chosen, :width]
        for field in dataclasses.fields(micro_batch)
        if isinstance(value := getattr(micro_batch, field.name), Tensor)
    }
    return dataclasses.replace(micro_batch, inputs=narrow, indices=micro_batch.indices[chosen], **known)


def to_rows(values: Tensor, micro_batch: RolloutBatch) -> Tensor:
    """[P, G] values of completions -> [B], for the rows of a micro-batch."""
    return torch.stack([values[index] for index in micro_batch.indices]).to(micro_batch.inputs.token_ids.device)


def to_groups(values: Sequence[Tensor], micro_batches: Sequence[RolloutBatch], like: Tensor) -> Tensor:
    """[B] values of each micro-batch -> [P, G], the shape of `like`; 0 for completions in no micro-batch."""
    by_group = torch.zeros_like(like)
    for micro_batch, of_rows in zip(micro_batches, values, strict=True):
        for index, value in zip(micro_batch.indices, of_rows.tolist(), strict=True):
            by_group[index] = value
    return by_group
