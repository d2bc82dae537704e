"""Groups to tensors, in micro-batches of a bounded number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Row:
    """One completion to train on."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    loss_mask: tuple[bool, ...] | None = None  # which of token_ids are learnt, the others are only read; None = all

    @property
    def num_learnt(self) -> int:
        """How many tokens the loss counts."""
        return len(self.token_ids) if self.loss_mask is None else sum(self.loss_mask)


@dataclass(slots=True)
class MicroBatch:
    """Rows that go through the model together. N distinct prompts, B rows, T tokens of the longest completion."""

    prompts: list[tuple[int, ...]]  # [N], distinct
    prompt_of_row: Tensor  # [B] int64, index into prompts
    token_ids: Tensor  # [B, T] int64, padded on the right
    valid_mask: Tensor  # [B, T] bool, False = padding
    loss_mask: Tensor  # [B, T] bool, True = a token that is learnt
    rows: list[int]  # [B] index of each row among those given to `micro_batches`


def cost(batch: MicroBatch) -> int:
    """Tokens that go through the model, padding and shared prompts included."""
    return len(batch.prompts) * max(map(len, batch.prompts)) + batch.token_ids.numel()


def micro_batches(rows: Sequence[Row], max_tokens: int, pad_id: int, device: Any) -> list[MicroBatch]:
    """Cuts rows into micro-batches of at most `max_tokens` tokens each, padding and shared prompts included.

    Two orders are tried, and the one that costs fewer tokens is taken: whole groups, which share their prompt, or
    completions by length, which waste less padding. A single row above the budget gets a micro-batch of its own.
    """
    by_length = sorted(range(len(rows)), key=lambda i: (len(rows[i].token_ids), rows[i].prompt_ids, i))
    longest: dict[tuple[int, ...], int] = {}
    for row in rows:
        longest[row.prompt_ids] = max(longest.get(row.prompt_ids, 0), len(row.token_ids))
    by_group = sorted(
        range(len(rows)),
        key=lambda i: (longest[rows[i].prompt_ids], rows[i].prompt_ids, len(rows[i].token_ids), i),
    )
    plans = [_cut(rows, order, max_tokens) for order in (by_group, by_length)]
    plan = min(plans, key=lambda plan: sum(_cost(rows, part) for part in plan))
    return [_collate(rows, part, pad_id, device) for part in plan]


def _cost(rows: Sequence[Row], part: Sequence[int]) -> int:
    prompts = {rows[i].prompt_ids for i in part}
    return len(prompts) * max(map(len, prompts)) + len(part) * max(len(rows[i].token_ids) for i in part)


def _cut(rows: Sequence[Row], order: Sequence[int], max_tokens: int) -> list[list[int]]:
    parts: list[list[int]] = []
    for i in order:
        if parts and _cost(rows, [*parts[-1], i]) <= max_tokens:
            parts[-1].append(i)
        else:
            parts.append([i])
    return parts


def _collate(rows: Sequence[Row], part: list[int], pad_id: int, device: Any) -> MicroBatch:
    prompts = list(dict.fromkeys(rows[i].prompt_ids for i in part))
    place = {prompt: n for n, prompt in enumerate(prompts)}
    width = max(len(rows[i].token_ids) for i in part)
    token_ids = torch.full((len(part), width), pad_id)
    valid_mask = torch.zeros(len(part), width, dtype=torch.bool)
    loss_mask = torch.zeros_like(valid_mask)
    for b, i in enumerate(part):
        row, length = rows[i], len(rows[i].token_ids)
        token_ids[b, :length] = torch.tensor(row.token_ids)
        valid_mask[b, :length] = True
        loss_mask[b, :length] = True if row.loss_mask is None else torch.tensor(row.loss_mask)
    return MicroBatch(
        prompts=prompts,
        prompt_of_row=torch.tensor([place[rows[i].prompt_ids] for i in part], device=device),
        token_ids=token_ids.to(device),
        valid_mask=valid_mask.to(device),
        loss_mask=loss_mask.to(device),
        rows=part,
    )


def deal(num_items: int, num_hands: int, key: Callable[[int], int]) -> list[list[int]]:
    """Deals items 0..num_items-1 to hands of nearly equal size, in the order of `key`."""
    order = sorted(range(num_items), key=key)
    return [order[hand::num_hands] for hand in range(num_hands)]
