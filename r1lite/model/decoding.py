"""Decoding token by token from a cache that grows.

Shapes: R rows, V vocabulary.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from r1lite.model.prefix import Prefix


class Decoding:
    """Decode steps after a prefix, with one token per row each."""

    compact_at: ClassVar[float] = 0.8  # finished rows are removed once fewer than this share are still running

    def __init__(self, model: Any, prefix: Prefix) -> None:
        self.model, self.prefix = model, prefix

    def next_logits(self, tokens: Tensor) -> Tensor:
        """Logits [R, V] after one more token per row, [R]; valid until the next call."""
        logits: Tensor = self.model(**self.prefix.next_inputs(tokens)).logits[:, -1]
        return logits

    def select(self, rows: Tensor) -> None:
        """Keeps these rows, in this order."""
        self.prefix.select(rows)
