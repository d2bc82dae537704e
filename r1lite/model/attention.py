"""Attention for decoding on CPUs: one new token per row, with grouped keys and values read in place.

PyTorch's kernel needs separate keys for every query head, so transformers copies the shared ones at each token. For
Qwen2.5-0.5B's 14 heads over 2 that took 64 ms, and this module 3 ms (128 rows of 128 tokens, one thread). The keys and
values of a prompt may be stored separately, once for all its completions (`shared_prompts.py`).

In bfloat16, attention over several tokens is computed in float32 on CPUs without AMX, where the backward pass of
PyTorch's kernel takes twice as long in bfloat16 (AMD EPYC with AVX512_BF16).
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from r1lite.model.after_prompts import attention_after_prompts
from r1lite.model.shared_prompts import SharedPrompts
from r1lite.rl.tiles import suits_mkl

NAME = "sdpa_grouped_decode"
# Keyword arguments that change the computation and that only the library's function supports.
VARIANTS = ("softcap", "s_aux", "position_bias", "cache")


def register() -> str:
    """Registers the attention with transformers. Returns its name, for `attn_implementation`."""
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    shared_prompts: SharedPrompts | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """softmax(q k^T * scaling) v for plain decoding, and for completions after shared prompts.

    transformers' sdpa handles all other cases.

    Args:
        query: [B, heads, 1, d].
        key, value: [B, key heads, L, d]; heads is a multiple of key heads.
        attention_mask: [B, 1, 1, L] bool, True = attend; None = attend to all.
        shared_prompts: keys and values of the prompts, which come before `key` and `value`.

    Returns: [B, 1, heads, d], and None for the weights.
    """
    plain = all(kwargs.get(name) is None for name in VARIANTS)
    decodes = query.shape[2] == 1 and not torch.is_grad_enabled() and query.device.type == "cpu" and plain
    if not decodes:
        if shared_prompts is not None:
            if key.shape[2] != query.shape[2] or key.shape[-1] != value.shape[-1] or not plain:
                raise ValueError("shared prompts work only in plain decoding, and for whole completions")
            return attention_after_prompts(query, key, value, shared_prompts, module.layer_idx, scaling), None
        return of_library(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    batch, heads, _, width = query.shape
    key_heads = key.shape[1]
    grouped = query.reshape(batch, key_heads, heads // key_heads, width)
    if heads == key_heads and not suits_mkl():  # without MKL a matrix-vector product is faster with the matrix first
        scores = (key @ grouped.transpose(-1, -2)).transpose(-1, -2)
    else:
        scores = grouped @ key.transpose(-1, -2)  # [B, key heads, group, L]
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, -torch.inf)
    factor = width**-0.5 if scaling is None else scaling
    if shared_prompts is None:
        return ((scores * factor).softmax(dim=-1) @ value).reshape(batch, 1, heads, width), None
    before = shared_prompts.scores(grouped, module.layer_idx)
    if shared_prompts.padding is not None:
        before = before.masked_fill(shared_prompts.padding, -torch.inf)
    lengths = before.shape[-1], scores.shape[-1]
    of_prompts, own = (torch.cat([before, scores], dim=-1) * factor).softmax(dim=-1).split(lengths, dim=-1)
    return (shared_prompts.read(of_prompts, module.layer_idx) + own @ value).reshape(batch, 1, heads, width), None


def of_library(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """transformers' sdpa, in the faster precision."""
    result: tuple[Tensor, None]
    low = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    # With or without gradients: the old and the new policy must round alike, or their ratio is not 1 on policy.
    if low and query.shape[2] > 1 and query.device.type == "cpu" and prefers_float32():
        states = query.float(), key.float(), value.float()
        with torch.autocast("cpu", enabled=False):
            result = sdpa_attention_forward(module, *states, attention_mask, **kwargs)
    else:
        result = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    return result


@functools.cache
def prefers_float32() -> bool:
    """True if attention's backward pass is faster in float32 than in bfloat16, as on CPUs without AMX."""
    # Decided by CPU features, not by timing: a resumed run must round as the first run did.
    return not torch.cpu.get_capabilities().get("amx_bf16", False)
