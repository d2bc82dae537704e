"""Packing: several rows in one sequence that do not attend to each other; positions restart at each row.

transformers derives the rows' bounds from the position ids and masks attention to blocks (without this, training on
packed rows learns from unrelated text: arXiv:2407.09105). Models that carry a state along a sequence would still mix
rows, so each model is tested first.

Shapes: B packed sequences, W their length, N completion tokens of all rows.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r1lite.model import vocabulary_size
from r1lite.model.batch import Row


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """Rows that go through the model together, several to a sequence."""

    input_ids: Tensor  # [B, W] int64
    position_ids: Tensor  # [B, W] int64, from 0 at each row; padding is a separate row
    where: Tensor  # [N] int64, position in the flattened [B * W] whose logits predict each trained token
    token_ids: Tensor  # [N] int64
    num_rows: int


def packed_batches(rows: Sequence[Row], *, width: int, max_tokens: int, pad_id: int, device: Any) -> list[PackedBatch]:
    """Packs rows into sequences of `width` tokens, and as many sequences into a batch as fit `max_tokens`.

    A row longer than the width gets its own sequence, and a sequence above the budget its own batch.
    """
    sequences = fit([_length(row) for row in rows], width)
    longest = [sum(_length(rows[i]) for i in sequence) for sequence in sequences]
    order = sorted(range(len(sequences)), key=lambda i: (-longest[i], i))
    batches: list[list[int]] = []
    for i in order:  # longest first, so that the first sequence of a batch sets its width
        if batches and (len(batches[-1]) + 1) * longest[batches[-1][0]] <= max_tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    return [_collate([[rows[r] for r in sequences[i]] for i in batch], pad_id, device) for batch in batches]


def fit(lengths: Sequence[int], width: int) -> list[list[int]]:
    """Indices of the rows of each sequence: longest first, each into the fullest sequence that still has room."""
    open_by_room: dict[int, list[int]] = {}  # room left -> sequences
    sequences: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        room = min((room for room in open_by_room if room >= lengths[i]), default=None)
        if room is None:
            sequences.append([])
            chosen, room = len(sequences) - 1, max(width, lengths[i])
        else:
            chosen = open_by_room[room].pop(0)
            if not open_by_room[room]:
                del open_by_room[room]
        sequences[chosen].append(i)
        left = room - lengths[i]
        if left:
            open_by_room.setdefault(left, []).append(chosen)
    return sequences


def packed_states(backbone: Any, batch: PackedBatch) -> Tensor:
    """[N, H] hidden states from which the completion tokens are predicted."""
    hidden = backbone(input_ids=batch.input_ids, position_ids=batch.position_ids, use_cache=False).last_hidden_state
    return hidden.flatten(0, 1).index_select(0, batch.where)  # type: ignore[no-any-return]


def packed_logits(model: Any, batch: PackedBatch) -> Tensor:
    """[N, V] logits that predict the completion tokens, for models that can't be split."""
    width = batch.input_ids.shape[1]
    columns = torch.unique(batch.where % width)  # the head runs only at positions where some row has a completion token
    logits = model(
        input_ids=batch.input_ids, position_ids=batch.position_ids, use_cache=False, logits_to_keep=columns
    ).logits
    column = torch.searchsorted(columns, batch.where % width)
    return logits[batch.where // width, column]  # type: ignore[no-any-return]


@torch.no_grad()
def keeps_rows_apart(model: Any) -> bool:
    """True if a packed row gets the same logits as the row alone."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model  # peft's wrapper accepts any argument
    if "position_ids" not in inspect.signature(inner.forward).parameters:
        return False
    last = vocabulary_size(model) - 1
    first, second = Row((0, last // 2), (last, 0)), Row((last, 1), (last // 3, 1, 2))
    together, alone = (
        torch.cat(
            [
                packed_logits(model, batch)
                for batch in packed_batches(rows, width=width, max_tokens=width, pad_id=0, device=model.device)
            ]
        )
        for rows, width in (([second, first], 9), ([second, first], 1))
    )
    return torch.allclose(together, alone, rtol=1e-3, atol=1e-3)


def _length(row: Row) -> int:
    return len(row.prompt_ids) + len(row.token_ids) - 1  # the last token is predicted, but not an input


def _collate(sequences: list[list[Row]], pad_id: int, device: Any) -> PackedBatch:
    width = max(sum(map(_length, rows)) for rows in sequences)
    input_ids = torch.full((len(sequences), width), pad_id)
    position_ids = torch.zeros_like(input_ids)
    where: list[int] = []
    learnt: list[int] = []
    for b, rows in enumerate(sequences):
        start = 0
        for row in rows:
            size = _length(row)
            input_ids[b, start : start + size] = torch.tensor((*row.prompt_ids, *row.token_ids)[:-1])
            position_ids[b, start : start + size] = torch.arange(size)
            positions = range(b * width + start + len(row.prompt_ids) - 1, b * width + start + size)
            where += itertools.compress(positions, row.loss_mask or itertools.repeat(True))
            learnt += itertools.compress(row.token_ids, row.loss_mask or itertools.repeat(True))
            start += size
        position_ids[b, start:] = torch.arange(width - start)
    return PackedBatch(
        input_ids.to(device),
        position_ids.to(device),
        torch.tensor(where).to(device),
        torch.tensor(learnt).to(device),
        num_rows=sum(map(len, sequences)),
    )
