"""A tokenized set in one flat array, so that rows have no memory overhead."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

import torch

from r1lite.model.batch import Row


class TokenRows:
    """Prompts with completions: `add` rows, then read them by index."""

    def __init__(self) -> None:
        self._ids = array("i")
        self._ends = array("q", [0])  # prompt 0, completion 0, prompt 1, ...

    def __len__(self) -> int:
        return len(self._ends) // 2

    def __getitem__(self, number: int) -> Row:
        start, middle, end = self._ends[2 * number : 2 * number + 3]
        return Row(tuple(self._ids[start:middle]), tuple(self._ids[middle:end]))

    def add(self, prompt_ids: Sequence[int], completion_ids: Sequence[int]) -> None:
        """Appends a row."""
        for ids in (prompt_ids, completion_ids):
            self._ids.extend(ids)
            self._ends.append(len(self._ids))

    def lengths(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the number of tokens of each prompt [N] and of each completion [N]."""
        sizes = torch.tensor(self._ends, dtype=torch.int64).diff()
        return sizes[::2], sizes[1::2]

    def fingerprint(self) -> str:
        """Returns a digest of all tokens."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(self._ends)
        digest.update(self._ids)
        return digest.hexdigest()
