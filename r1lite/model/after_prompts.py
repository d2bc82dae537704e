"""Causal attention of whole completions over their prompts and themselves, with gradients, in float32 on CPUs.

A prompt's keys and values are read in place for all its completions, and masked positions of a completion are not
computed. Both parts of the attention are PyTorch's own kernel, and their softmaxes are joined:

    o = w o_prompt + (1 - w) o_own,  w = sigmoid(s_prompt - s_own)        for s = logsumexp of the scores

The kernel's backward pass gives each part's gradients if it gets o and the logsumexp over both parts.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from transformers.integrations.sdpa_attention import repeat_kv

from r1lite.model.shared_prompts import SharedPrompts

_attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_gradients = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def attention_after_prompts(
    query: Tensor, key: Tensor, value: Tensor, prompts: SharedPrompts, layer: int, scale: float | None
) -> Tensor:
    """softmax(q k^T * scale) v over each row's prompt and over its own tokens up to the query's.

    Args:
        query: [R, heads, T, d].
        key, value: [R, key heads, T, d]; heads is a multiple of key heads.

    Returns: [R, T, heads, d].
    """
    of_prompts = prompts.keys[layer].transpose(-1, -2), prompts.values[layer]
    states = (repeat_kv(part, query.shape[1] // key.shape[1]) for part in (key, value, *of_prompts))
    attended: Tensor = _AfterPrompts.apply(query, *states, prompts, scale)  # type: ignore[no-untyped-call]
    return attended.transpose(1, 2).contiguous()


class _AfterPrompts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        prompt_key: Tensor,
        prompt_value: Tensor,
        prompts: SharedPrompts,
        scale: float | None,
    ) -> Tensor:
        out, own_sum = _attend(query, key, value, 0.0, True, scale=scale)
        of_prompts, their_sum = _attend(
            prompts.together(query), prompt_key, prompt_value, 0.0, False, attn_mask=_bias(prompts, query), scale=scale
        )
        their_sum = prompts.apart(their_sum[..., None], query.shape[2])
        own_sum = own_sum[..., None]
        out.lerp_(prompts.apart(of_prompts, query.shape[2]), (their_sum - own_sum).sigmoid_())
        ctx.save_for_backward(query, key, value, prompt_key, prompt_value, out, torch.logaddexp(own_sum, their_sum))
        ctx.prompts, ctx.scale = prompts, scale
        return out  # type: ignore[no-any-return]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, prompt_key, prompt_value, out, total = ctx.saved_tensors
        prompts, scale = ctx.prompts, ctx.scale
        of_query, *of_own = _gradients(grad, query, key, value, out, total.squeeze(-1), 0.0, True, scale=scale)
        grads, queries, outs, totals = (prompts.together(rows) for rows in (grad, query, out, total))
        through_prompts, *of_prompts = _gradients(
            *(grads, queries, prompt_key, prompt_value, outs, totals.squeeze(-1), 0.0, False),
            attn_mask=_bias(prompts, query),
            scale=scale,
        )
        of_query += prompts.apart(through_prompts, query.shape[2])
        return of_query, *of_own, *of_prompts, None, None


def _bias(prompts: SharedPrompts, query: Tensor) -> Tensor | None:
    """[N, 1, 1, L] of the scores; None = there is no padding."""
    if prompts.padding is None:
        return None
    # The lowest number, as the kernel's logsumexp over -inf alone, in a prompt of padding, is 0.
    lowest = torch.finfo(query.dtype).min
    return query.new_zeros(prompts.mask.shape).masked_fill_(~prompts.mask, lowest)[:, None, None]
