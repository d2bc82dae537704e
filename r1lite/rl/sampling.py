"""Sampling with random numbers drawn beforehand, so that a completion does not depend on its batch."""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor


def completion_seed(run_seed: int, purpose: str, step: int, problem_id: str, sample: int) -> int:
    """A 63-bit seed that depends only on its arguments, so that no sampler state has to be saved.

    The seeds of a group are consecutive: vLLM gives the i-th of n completions its request's seed + i, so that a group
    is one request.
    """
    text = f"{run_seed}\x1f{purpose}\x1f{step}\x1f{problem_id}"
    return (int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 2) + sample


def uniform_draws(seeds: list[int], length: int) -> Tensor:
    """[B] seeds -> [B, length] float64 in [0, 1), one stream per seed."""
    generator = torch.Generator()
    rows = [torch.rand(length, generator=generator.manual_seed(seed), dtype=torch.float64) for seed in seeds]
    return torch.stack(rows)


def sample_tokens(
    logits: Tensor, draws: Tensor, *, temperature: float, top_p: float = 1.0, top_k: int = 0, min_p: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Inverse-transform sampling: the first token whose cumulative probability exceeds the draw.

    Args:
        logits: [B, V].
        draws: [B] in [0, 1); not used when temperature is 0.
        temperature: 0 = the most probable token (the lowest id among equals).
        top_p, top_k, min_p: as `cut_distribution`; not used when temperature is 0.

    Returns:
        token ids [B], and their log-probabilities [B] in nats, float32: of softmax(logits / temperature), cut
        and renormalized if requested, or of softmax(logits) for temperature 0.
    """
    logits = logits.float()
    if temperature == 0:
        logprobs = logits.log_softmax(dim=-1)
        tokens = logits.argmax(dim=-1)
    else:
        logprobs = (logits / temperature if temperature != 1.0 else logits).log_softmax(dim=-1)
        if top_p < 1.0 or top_k or min_p:
            logprobs = cut_distribution(logprobs, top_p=top_p, top_k=top_k, min_p=min_p)
        cumulative = logprobs.double().exp().cumsum(dim=-1)
        # Scaled by the total, which rounding moves slightly off 1, so that a draw near 1 still hits the last token.
        threshold = draws.to(cumulative)[:, None] * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, threshold, right=True).squeeze(-1)
        tokens = tokens.clamp(max=logits.shape[-1] - 1)
    return tokens, logprobs.gather(-1, tokens[:, None]).squeeze(-1)


def cut_distribution(logprobs: Tensor, *, top_p: float = 1.0, top_k: int = 0, min_p: float = 0.0) -> Tensor:
    """Leaves out improbable tokens and renormalizes: min_p first, then top_k, then top_p (vLLM's order).

    Args:
        logprobs: [B, V].
        top_p: keeps the fewest tokens whose mass reaches this share; 1 = off.
        top_k: keeps this many; 0 = off. Tokens that tie with the last one stay.
        min_p: keeps tokens at least this share as probable as the most probable one; 0 = off.

    Returns: [B, V], -inf for tokens that are left out; the most probable token always stays.
    """
    if min_p:
        floor = logprobs.amax(dim=-1, keepdim=True) + math.log(min_p)
        logprobs = logprobs.masked_fill(logprobs < floor, -torch.inf).log_softmax(dim=-1)
    if top_k and top_k < logprobs.shape[-1]:
        least = logprobs.topk(top_k, dim=-1).values[..., -1:]
        logprobs = logprobs.masked_fill(logprobs < least, -torch.inf).log_softmax(dim=-1)
    if top_p < 1.0:
        ordered, order = logprobs.sort(dim=-1, descending=True, stable=True)
        before = ordered.exp().cumsum(dim=-1) - ordered.exp()  # mass of the more probable tokens
        ordered = ordered.masked_fill(before >= top_p, -torch.inf)
        logprobs = torch.empty_like(logprobs).scatter_(-1, order, ordered).log_softmax(dim=-1)
    return logprobs
