"""Log-probabilities and entropies of given tokens, from hidden states or from logits."""

from __future__ import annotations

from typing import Literal, overload

import torch
from torch import Tensor

from r1lite.rl.tiles import Head, prefers_onednn, suits_mkl, tiled_logprobs

# Number of logits from which they are computed in tiles (`benchmarks/fused_logprobs.py --crossover`). A tile is
# computed twice, which costs little if products are fast or the hidden states narrow; logits computed all at once are
# written to and read from memory several times.
_NARROW, _TILED_FROM_NARROW, _TILED_FROM = 256, 1 << 20, 1 << 24


@overload
def head_logprobs(
    hidden: Tensor, head: Head, token_ids: Tensor, *, temperature: float = ..., into_grad: bool = ...
) -> Tensor: ...


@overload
def head_logprobs(
    hidden: Tensor,
    head: Head,
    token_ids: Tensor,
    *,
    temperature: float = ...,
    entropy: Literal[True],
    into_grad: bool = ...,
) -> tuple[Tensor, Tensor]: ...


def head_logprobs(
    hidden: Tensor,
    head: Head,
    token_ids: Tensor,
    *,
    temperature: float = 1.0,
    entropy: bool = False,
    into_grad: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """log softmax(head(hidden) / temperature) of each token, holding at most one tile of large logits.

    The policy that sampled at a temperature is the tempered one, so ratios are 1 only if both sides use it.
    Both results are differentiable, once, with respect to the hidden states, the head's weight and its bias.

    Args:
        hidden: [..., H]; its precision is that of the matrix products.
        token_ids: [...], int64.
        temperature: > 0.
        entropy: also return the entropies of the tempered distributions.
        into_grad: for training: add the head's gradient to `head.weight.grad` in place, which saves a second
            matrix of that size. `torch.autograd.grad` then does not see it.

    Returns: log-probabilities [...], or these and the entropies [...]; nats, float32 or better.
    """
    if not is_tiled(token_ids.numel(), *head.weight.shape):
        logits = head.logits(hidden, temperature=temperature)
        logprobs = token_logprobs(logits, token_ids)
        return (logprobs, entropies(logits)) if entropy else logprobs
    flat, ids = hidden.reshape(-1, hidden.shape[-1]), token_ids.reshape(-1)
    into_grad = into_grad and head.weight.requires_grad
    logprobs, spread = tiled_logprobs(flat, head, ids, temperature=temperature, entropy=entropy, into_grad=into_grad)
    return (logprobs.view(token_ids.shape), spread.view(token_ids.shape)) if entropy else logprobs.view(token_ids.shape)


def is_tiled(num_tokens: int, vocabulary: int, width: int) -> bool:
    """True if this many logits, from hidden states of this width, are computed in tiles."""
    cheap = width <= _NARROW or prefers_onednn() or suits_mkl()
    return num_tokens * vocabulary >= (_TILED_FROM_NARROW if cheap else _TILED_FROM)


def token_logprobs(logits: Tensor, token_ids: Tensor, *, temperature: float = 1.0) -> Tensor:
    """log softmax(logits / temperature) of each token, in float32 or better.

    Args:
        logits: [..., V].
        token_ids: [...], int64.
        temperature: > 0.

    Returns: [...], nats.
    """
    logits = _tempered(logits, temperature)
    chosen = logits.gather(-1, token_ids[..., None]).squeeze(-1)
    return chosen - logits.logsumexp(dim=-1)


def entropies(logits: Tensor, *, temperature: float = 1.0) -> Tensor:
    """H = -sum p log p of p = softmax(logits / temperature): [..., V] -> [...], nats, in float32 or better."""
    logprobs = _tempered(logits, temperature).log_softmax(dim=-1)
    # A token that cannot occur has probability 0 and adds nothing, though its logarithm is -inf.
    return -(logprobs.exp() * logprobs.clamp(min=torch.finfo(logprobs.dtype).min)).sum(dim=-1)


def _tempered(logits: Tensor, temperature: float) -> Tensor:
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    return logits / temperature if temperature != 1.0 else logits
