"""Reduction of per-token values to one number.

Shapes: values and mask [B, T], mask True = completion token. Values at mask False are ignored, even NaN.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum", "prompt_mean", "constant"]


def masked_sum(values: Tensor, mask: Tensor) -> Tensor:
    """Sum of values [B, T] where mask is True."""
    return torch.where(mask, values, 0.0).sum()


def aggregate(
    values: Tensor,
    mask: Tensor,
    *,
    method: Aggregation,
    num_tokens: int,
    num_rows: int,
    max_tokens: int,
    prompt_tokens: Tensor | None = None,
    num_prompts: int = 0,
) -> Tensor:
    """The contribution of these rows to the loss of an update.

        token_mean      sum_it v / num_tokens               every token weighs the same (DAPO, arXiv:2503.14476 eq. 8)
        sequence_mean   sum_i (sum_t v / L_i) / num_rows    every completion weighs the same (arXiv:2402.03300 eq. 3)
        sequence_sum    sum_it v / num_rows                 the gradient of the expected reward itself
        prompt_mean     sum_p (sum_it v / N_p) / num_prompts    every prompt weighs the same (arXiv:2510.13786)
        constant        sum_it v / (num_rows max_tokens)    Dr. GRPO (arXiv:2503.20783)

    The counts are those of the whole update and are known before its first backward pass, so that any split into
    micro-batches gives the same sum, and so the same gradient. Rows without a token are not counted.

    Args:
        num_tokens, num_rows: tokens, and rows with a token, over all micro-batches (and processes) of the update.
        max_tokens: the longest completion allowed; for "constant" only.
        prompt_tokens: N_p, [B]: tokens of all completions of the row's prompt; for "prompt_mean" only.
        num_prompts: prompts with a token, over the whole update; for "prompt_mean" only.

    Returns: a scalar.
    """
    match method:
        case "token_mean":
            return masked_sum(values, mask) / num_tokens
        case "sequence_mean":
            lengths = mask.sum(dim=1).clamp(min=1)
            return (torch.where(mask, values, 0.0).sum(dim=1) / lengths).sum() / num_rows
        case "sequence_sum":
            return masked_sum(values, mask) / num_rows
        case "prompt_mean":
            if prompt_tokens is None:
                raise ValueError("prompt_mean needs the number of tokens of each row's prompt")
            return (torch.where(mask, values, 0.0).sum(dim=1) / prompt_tokens.clamp(min=1)).sum() / num_prompts
        case "constant":
            return masked_sum(values, mask) / (num_rows * max_tokens)
