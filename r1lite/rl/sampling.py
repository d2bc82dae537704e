"""Sampling tokens from numbers drawn beforehand: a completion is the same whatever batch it is in."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor


def completion_seed(run_seed: int, purpose: str, step: int, problem_id: str, sample: int) -> int:
    """A 63-bit seed that depends on nothing but its arguments, so no sampler state has to be saved.

    Those of a group follow one another: vLLM gives the i-th of n completions its request's seed + i, so that a group is
    one request.
    """
    text = f"{run_seed}\x1f{purpose}\x1f{step}\x1f{problem_id}"
    return (int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 2) + sample


def uniform_draws(seeds: list[int], length: int) -> Tensor:
    """[B] seeds -> [B, length] float64 in [0, 1), one stream per seed."""
    generator = torch.Generator()
    rows = [torch.rand(length, generator=generator.manual_seed(seed), dtype=torch.float64) for seed in seeds]
    return torch.stack(rows)


def sample_tokens(logits: Tensor, draws: Tensor, *, temperature: float) -> tuple[Tensor, Tensor]:
    """Inverse-transform sampling: the first token whose cumulative probability exceeds the draw.

    Args:
        logits: [B, V].
        draws: [B] in [0, 1); not used when temperature is 0.
        temperature: 0 = the most probable token (the lowest id among equals).

    Returns:
        token ids [B], and their log-probabilities [B] in nats, float32: of softmax(logits / temperature), or of
        softmax(logits) for temperature 0.
    """
    logits = logits.float()
    if temperature == 0:
        logprobs = logits.log_softmax(dim=-1)
        tokens = logits.argmax(dim=-1)
    else:
        logprobs = (logits / temperature if temperature != 1.0 else logits).log_softmax(dim=-1)
        cumulative = logprobs.double().exp().cumsum(dim=-1)
        # Scaled by the total, which rounding leaves a little off 1, so that the last token is reached and not passed.
        threshold = draws.to(cumulative)[:, None] * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, threshold, right=True).squeeze(-1)
        tokens = tokens.clamp(max=logits.shape[-1] - 1)
    return tokens, logprobs.gather(-1, tokens[:, None]).squeeze(-1)
