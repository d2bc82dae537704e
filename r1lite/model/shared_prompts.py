"""Keys and values of prompts, stored once for all completions of a prompt during decoding on a CPU.

Attention over a prompt is then one product for its whole group, which reads the prompt's keys once instead of per row.

Shapes: N prompts, L their longest, G the most rows of one prompt, R rows; K key heads, Q query heads of each, d width.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

ARGUMENT = "shared_prompts"  # of the model's forward pass, which passes it on to the attention


@dataclass(slots=True)
class SharedPrompts:
    """The prompts of R rows that are being decoded."""

    keys: list[Tensor]  # of each layer, [N, K, d, L]: with this layout the product takes half the time
    values: list[Tensor]  # of each layer, [N, K, L, d]
    mask: Tensor  # [N, L] bool, False = padding
    prompt_of_row: Tensor  # [R] index into N
    size: int  # G
    slot_of_row: Tensor | None  # [R] index of each row into N * G; None = every slot is used, in this order
    padding: Tensor | None  # [R, 1, 1, L] bool, True = padding; None = there is none

    @classmethod
    def of(cls, keys: list[Tensor], values: list[Tensor], mask: Tensor, prompt_of_row: Tensor) -> SharedPrompts:
        """Builds the shared prompts; prompts without a row are left out."""
        used, prompt_of_row = prompt_of_row.unique(return_inverse=True)
        if len(used) < len(mask):
            keys, values = ([states.index_select(0, used) for states in of_layers] for of_layers in (keys, values))
            mask = mask[used]
        counts = prompt_of_row.bincount()
        size, order = int(counts.max()), prompt_of_row.argsort(stable=True)
        rank = torch.empty_like(order)  # index of a row among those of its prompt
        rank[order] = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[prompt_of_row[order]]
        slot_of_row = prompt_of_row * size + rank
        whole = len(slot_of_row) == len(mask) * size and bool(
            (slot_of_row == torch.arange(len(slot_of_row), device=slot_of_row.device)).all()
        )
        padding = None if bool(mask.all()) else ~mask[prompt_of_row][:, None, None]
        return cls(keys, values, mask, prompt_of_row, size, None if whole else slot_of_row, padding)

    def select(self, rows: Tensor) -> SharedPrompts:
        """The prompts of these rows, in this order."""
        return SharedPrompts.of(self.keys, self.values, self.mask, self.prompt_of_row[rows])

    def scores(self, query: Tensor, layer: int) -> Tensor:
        """q k^T over the prompts: [R, K, Q, d] -> [R, K, Q, L]."""
        return self.apart(self.together(query) @ self.keys[layer], query.shape[2])

    def read(self, weights: Tensor, layer: int) -> Tensor:
        """Weighted sums of the prompts' values: [R, K, Q, L] -> [R, K, Q, d]."""
        return self.apart(self.together(weights) @ self.values[layer], weights.shape[2])

    def together(self, rows: Tensor) -> Tensor:
        """[R, K, Q, *] -> [N, K, G * Q, *]; zeros for prompts with fewer rows than G."""
        if self.slot_of_row is not None:
            rows = rows.new_zeros(len(self.mask) * self.size, *rows.shape[1:]).index_copy_(0, self.slot_of_row, rows)
        by_group: Tensor = rows.unflatten(0, (-1, self.size))
        return by_group.transpose(1, 2).flatten(2, 3)

    def apart(self, groups: Tensor, num_queries: int) -> Tensor:
        """[N, K, G * Q, *] -> [R, K, Q, *]."""
        by_row: Tensor = groups.unflatten(2, (self.size, num_queries))
        rows = by_row.transpose(1, 2).flatten(0, 1)
        return rows if self.slot_of_row is None else rows.index_select(0, self.slot_of_row)


def takes_shared_prompts(model: Any) -> bool:
    """True if the model's forward pass passes additional arguments to the attention."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model  # peft's wrapper accepts any argument
    parameters = inspect.signature(inner.forward).parameters.values()
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
