"""Divergence of a student's distribution from its teacher's, per token.

Shapes: N tokens, V vocabulary.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def generalised_jsd(student_logits: Tensor, teacher_logits: Tensor, *, beta: float, temperature: float = 1.0) -> Tensor:
    """The generalised Jensen-Shannon divergence of on-policy distillation (GKD, arXiv:2306.13649 eq. 1), per token.

        P teacher, Q student, M = beta P + (1 - beta) Q
        0 < beta < 1:  beta KL(P || M) + (1 - beta) KL(Q || M)
        beta = 0:      KL(P || Q), forward, covers everything the teacher does: the limit of the above / beta
        beta = 1:      KL(Q || P), reverse, stays with the teacher's most likely tokens: the limit / (1 - beta)

    At the ends the divergence is the limit *divided* by the vanishing weight, as in the paper's own code and TRL;
    undivided it would be 0. So a beta near an end needs a learning rate larger by 1 / beta or 1 / (1 - beta).

    Args:
        student_logits, teacher_logits: [N, V]; -inf = a token that cannot be chosen.
        beta: in [0, 1].
        temperature: > 0; both distributions are those of logits / temperature.

    Returns: [N], nats, float32 or better, >= 0 up to rounding; gradients flow to the student's logits only.

    Raises:
        ValueError: beta or temperature out of range.
    """
    if not 0 <= beta <= 1:
        raise ValueError(f"beta must be in [0, 1], got {beta}")
    if not temperature > 0:
        raise ValueError(f"temperature must be > 0, got {temperature}")
    student = _log_probabilities(student_logits, temperature)
    teacher = _log_probabilities(teacher_logits, temperature).detach()
    if beta == 0:
        return _kl(teacher, student)
    if beta == 1:
        return _kl(student, teacher)
    neither = (teacher == -math.inf) & (student == -math.inf)  # logaddexp's gradient is NaN there
    mixture = torch.logaddexp(
        teacher.masked_fill(neither, 0.0) + math.log(beta), student.masked_fill(neither, 0.0) + math.log1p(-beta)
    )
    return beta * _kl(teacher, mixture) + (1 - beta) * _kl(student, mixture)


def _log_probabilities(logits: Tensor, temperature: float) -> Tensor:
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    return torch.log_softmax(logits / temperature, dim=-1)


def _kl(p: Tensor, q: Tensor) -> Tensor:
    """[N, V] log-probabilities -> [N] KL(p || q); a token with p = 0 adds nothing, whatever its q."""
    difference = torch.where(p == -math.inf, 0.0, p - q)
    return (p.exp() * difference).sum(dim=-1)
