"""What was sampled, as tensors: the parts that one optimizer step each learns from.

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

from r1lite.model.batch import MicroBatch, Row, deal, micro_batches
from r1lite.types import Group, Rollout

Place = tuple[int, int]  # which prompt, which completion of it


@dataclass(slots=True)
class Piece:
    """A micro-batch, and what is known of it before the first update. What stands at padding means nothing."""

    batch: MicroBatch
    places: list[Place]  # [B]
    rewards: Tensor  # [B]
    engine_logprobs: Tensor  # [B, T], of the engine that sampled; NaN where it gave none
    old_logprobs: Tensor | None = None  # [B, T], of the policy before the first update; None = of the one at hand
    ref_logprobs: Tensor | None = None  # [B, T]; None = no KL
    old_entropy: Tensor | None = None  # [B, T]
    old_values: Tensor | None = None  # [B, T], the critic's
    returns: Tensor | None = None  # [B, T], what the critic is to learn
    advantages: Tensor | None = None  # [B], or [B, T] where each token has its own

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values and tensors."""
        batch = {name: getattr(self.batch, name) for name in ("prompts", "prompt_of_row", "token_ids", "mask")}
        known = [field.name for field in dataclasses.fields(self) if field.name != "batch"]
        values = {name: getattr(self, name) for name in known}
        return {**batch, **{name: value for name, value in values.items() if value is not None}}


@dataclass(slots=True)
class Part:
    """What one optimizer step learns from. The counts are known before its first backward pass."""

    pieces: list[Piece]
    num_tokens: int  # of all completions that take part, also of those whose gradient is 0 and isn't computed
    num_rows: int


def make_parts(
    groups: Sequence[Group],
    count: int,
    *,
    takes_part: Callable[[Rollout], bool],
    teaches: Callable[[Place], bool],
    max_tokens: int,
    pad_id: int,
    device: Any,
) -> list[Part]:
    """Deals whole groups to `count` parts; parts without any row that teaches are left out.

    Args:
        takes_part: the completion counts in the loss's mean.
        teaches: its gradient isn't 0 for certain.
        max_tokens: of one micro-batch.
    """
    parts = []
    for hand in deal(len(groups), count, key=lambda i: i):
        inside = [
            (p, g)
            for p in hand
            for g, rollout in enumerate(groups[p].rollouts)
            if rollout.completion.token_ids and takes_part(rollout)
        ]
        pieces = _pieces(groups, [place for place in inside if teaches(place)], max_tokens, pad_id, device)
        if pieces:
            num_tokens = sum(len(groups[p].rollouts[g].completion.token_ids) for p, g in inside)
            parts.append(Part(pieces, num_tokens, len(inside)))
    return parts


def _pieces(groups: Sequence[Group], places: list[Place], max_tokens: int, pad_id: int, device: Any) -> list[Piece]:
    rollouts = [groups[p].rollouts[g] for p, g in places]
    rows = [
        Row(groups[p].prompt_ids, rollout.completion.token_ids)
        for (p, _), rollout in zip(places, rollouts, strict=True)
    ]
    made = []
    for batch in micro_batches(rows, max_tokens, pad_id, device):
        engine = torch.full(batch.mask.shape, math.nan)
        for row, i in enumerate(batch.rows):
            known = rollouts[i].completion.logprobs
            engine[row, : len(known)] = torch.tensor(known)
        rewards = torch.tensor([rollouts[i].score.reward for i in batch.rows])
        made.append(
            Piece(batch, [places[i] for i in batch.rows], rewards.to(batch.mask.device), engine.to(batch.mask.device))
        )
    return made


def halves(piece: Piece) -> list[Piece]:
    """The piece in two, by rows, with all that is known of it. Raises ValueError if it has a single row."""
    count = len(piece.places)
    if count < 2:
        raise ValueError("a single completion can't be halved")
    return [_narrowed(piece, rows) for rows in (range(count // 2), range(count // 2, count))]


def _narrowed(piece: Piece, rows: range) -> Piece:
    batch, chosen = piece.batch, slice(rows.start, rows.stop)
    mask = batch.mask[chosen]
    width = int(mask.any(dim=0).sum())
    numbers = batch.prompt_of_row[chosen].tolist()
    used = sorted(set(numbers))
    narrow = MicroBatch(
        prompts=[batch.prompts[n] for n in used],
        prompt_of_row=torch.tensor([used.index(n) for n in numbers], device=mask.device),
        token_ids=batch.token_ids[chosen, :width],
        mask=mask[:, :width],
        rows=batch.rows[chosen],
    )
    known = {
        field.name: value[chosen] if value.ndim == 1 else value[chosen, :width]
        for field in dataclasses.fields(piece)
        if isinstance(value := getattr(piece, field.name), Tensor)
    }
    return dataclasses.replace(piece, batch=narrow, places=piece.places[chosen], **known)


def spread(values: Tensor, piece: Piece) -> Tensor:
    """[P, G] values of completions -> [B], those of a piece's rows."""
    return torch.stack([values[place] for place in piece.places]).to(piece.batch.mask.device)


def gathered(values: Sequence[Tensor], pieces: Sequence[Piece], like: Tensor) -> Tensor:
    """Values [B] of each piece in turn -> [P, G], the shape of `like`; 0 for completions in none."""
    found = torch.zeros_like(like)
    for piece, of_rows in zip(pieces, values, strict=True):
        for place, value in zip(piece.places, of_rows.tolist(), strict=True):
            found[place] = value
    return found
