"""The divergence of two models over a micro-batch, computed in chunks of tokens.

Shapes: N completion tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from r1lite.model.batch import MicroBatch
from r1lite.model.policy import Policy
from r1lite.rl.distillation import generalised_jsd


def divergence(
    student: Policy,
    teacher: Policy,
    batch: MicroBatch,
    *,
    vocabulary: int,
    beta: float,
    temperature: float,
    chunk_tokens: int,
) -> Tensor:
    """Returns the sum of `generalised_jsd` over the completion tokens, with a gradient for the student.

    Logits [chunk, V] of both models exist for one chunk at a time; the backward pass computes them again.

    Args:
        vocabulary: number of tokens that both models know; padding of the embeddings is ignored.
    """
    with torch.no_grad():
        teacher_states, teacher_read = teacher.states(batch)

    def summed(states: Tensor, read: Callable[[Tensor], Tensor]) -> Tensor:
        def chunk(ours: Tensor, theirs: Tensor) -> Tensor:
            return generalised_jsd(
                read(ours)[:, :vocabulary], teacher_read(theirs)[:, :vocabulary], beta=beta, temperature=temperature
            ).sum()

        parts = zip(states.split(chunk_tokens), teacher_states.split(chunk_tokens), strict=True)
        total = states.new_zeros((), dtype=torch.float64 if states.dtype == torch.float64 else torch.float32)
        for ours, theirs in parts:
            total = total + checkpoint(chunk, ours, theirs, use_reentrant=False)
        return total

    return student.of_states(batch, summed)
