"""Rows of tokens to tensors, in micro-batches of a bounded number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

# How rows go through the model: completions after their prompt, which is computed once; or each completion with its
# own prompt, padded; or the same without padding, concatenated into one sequence.
RowLayout = Literal["shared prompts", "whole rows", "end to end"]


@dataclass(frozen=True, slots=True)
class Row:
    """One completion to train on."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    loss_mask: tuple[bool, ...] | None = None  # tokens that the loss counts; the others are only read; None = all

    @property
    def num_learnt(self) -> int:
        """Number of tokens that the loss counts."""
        return len(self.token_ids) if self.loss_mask is None else sum(self.loss_mask)


@dataclass(slots=True)
class MicroBatch:
    """Rows that go through the model together: N distinct prompts, B rows, T tokens of the longest completion."""

    prompts: list[tuple[int, ...]]  # [N], distinct
    prompt_of_row: Tensor  # [B] int64, index into prompts
    token_ids: Tensor  # [B, T] int64, padded on the right
    valid_mask: Tensor  # [B, T] bool, False = padding
    loss_mask: Tensor  # [B, T] bool, True = a token that the loss counts
    rows: list[int]  # [B] index of each row in the input of `micro_batches`
    layout: RowLayout = "shared prompts"


def cost(batch: MicroBatch) -> int:
    """Number of tokens that go through the model, padding included."""
    prompts = [len(batch.prompts[n]) for n in batch.prompt_of_row.tolist()]
    sizes = batch.valid_mask.sum(dim=1).tolist()
    return _tokens(batch.layout, prompts, sizes, [len(prompt) for prompt in batch.prompts])


def micro_batches(
    rows: Sequence[Row], max_tokens: int, pad_id: int, device: Any, layout: RowLayout = "shared prompts"
) -> list[MicroBatch]:
    """Splits rows into micro-batches of at most `max_tokens` tokens each, padding included.

    Two orders are compared, and the one with fewer tokens is used: whole groups, which share their prompt, or
    completions by length, which need less padding. A single row above the budget gets its own micro-batch.
    """
    by_length = sorted(range(len(rows)), key=lambda i: (len(rows[i].token_ids), rows[i].prompt_ids, i))
    longest: dict[tuple[int, ...], int] = {}
    for row in rows:
        longest[row.prompt_ids] = max(longest.get(row.prompt_ids, 0), len(row.token_ids))
    by_group = sorted(
        range(len(rows)),
        key=lambda i: (longest[rows[i].prompt_ids], rows[i].prompt_ids, len(rows[i].token_ids), i),
    )
    plans = [_cut(rows, order, max_tokens, layout) for order in (by_group, by_length)]
    plan = min(plans, key=lambda plan: sum(_cost(rows, part, layout) for part in plan))
    return [_collate(rows, part, pad_id, device, layout) for part in plan]


def _tokens(layout: RowLayout, prompts: Sequence[int], sizes: Sequence[int], distinct: Sequence[int]) -> int:
    """Number of tokens of B rows.

    Args:
        prompts, sizes: [B] tokens of each row's prompt and completion.
        distinct: [N] tokens of the distinct prompts.
    """
    if layout == "end to end":
        return sum(prompts) + sum(sizes)
    if layout == "whole rows":
        return len(prompts) * (max(prompts) + max(sizes))
    return len(distinct) * max(distinct) + len(sizes) * max(sizes)


def _cost(rows: Sequence[Row], part: Sequence[int], layout: RowLayout) -> int:
    prompts, sizes = [len(rows[i].prompt_ids) for i in part], [len(rows[i].token_ids) for i in part]
    distinct = {rows[i].prompt_ids for i in part} if layout == "shared prompts" else ()
    return _tokens(layout, prompts, sizes, [len(prompt) for prompt in distinct])


def _cut(rows: Sequence[Row], order: Sequence[int], max_tokens: int, layout: RowLayout) -> list[list[int]]:
    parts: list[list[int]] = []
    for i in order:
        if parts and _cost(rows, [*parts[-1], i], layout) <= max_tokens:
            parts[-1].append(i)
        else:
            parts.append([i])
    return parts


def _collate(rows: Sequence[Row], part: list[int], pad_id: int, device: Any, layout: RowLayout) -> MicroBatch:
    prompts = list(dict.fromkeys(rows[i].prompt_ids for i in part))
    index_of = {prompt: n for n, prompt in enumerate(prompts)}
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
        prompt_of_row=torch.tensor([index_of[rows[i].prompt_ids] for i in part], device=device),
        token_ids=token_ids.to(device),
        valid_mask=valid_mask.to(device),
        loss_mask=loss_mask.to(device),
        rows=part,
        layout=layout,
    )


def deal(num_items: int, num_hands: int, key: Callable[[int], int]) -> list[list[int]]:
    """Deals items 0..num_items-1 to hands of nearly equal size, in the order of `key`."""
    order = sorted(range(num_items), key=key)
    return [order[hand::num_hands] for hand in range(num_hands)]
