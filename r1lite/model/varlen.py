"""Rows laid end to end in one sequence, without padding, none of which sees another (`--padding-free`).

Where rows begin is told by the arguments that transformers has for FlashAttention's kernels of variable length. On GPUs
in half precision PyTorch's own (`torch.nn.attention.varlen`) reads them; elsewhere each row is attended to by itself.

Shapes: B rows, W tokens of all of them, T tokens of the longest completion.
"""

from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from r1lite.errors import UserError
from r1lite.model import attention
from r1lite.model.batch import MicroBatch, Row, micro_batches

NAME = "varlen"
_HALF = (torch.bfloat16, torch.float16)


def register() -> str:
    """Makes the attention known to transformers. Returns its name, for `attn_implementation`."""
    AttentionInterface.register(NAME, varlen_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME


@dataclass(frozen=True, slots=True)
class LaidOut:
    """The rows of a micro-batch end to end, each a prompt and its completion but the last token."""

    inputs: dict[str, Any]  # of the model's forward pass
    predicting: Tensor  # [B, T] place in the sequence whose output predicts completion token t; undefined at padding

    @classmethod
    def of(cls, batch: MicroBatch) -> LaidOut:
        """Of all its rows, in their order."""
        device = batch.token_ids.device
        prompts = [batch.prompts[n] for n in batch.prompt_of_row.tolist()]
        sizes = [int(size) for size in batch.valid_mask.sum(dim=1)]
        lengths = [len(prompt) + size - 1 for prompt, size in zip(prompts, sizes, strict=True)]
        bounds = [0, *itertools.accumulate(lengths)]
        ids = torch.empty(bounds[-1], dtype=torch.long, device=device)
        positions = torch.empty_like(ids)
        for row, (prompt, size, start, end) in enumerate(zip(prompts, sizes, bounds[:-1], bounds[1:], strict=True)):
            ids[start : start + len(prompt)] = torch.tensor(prompt, device=device)
            ids[start + len(prompt) : end] = batch.token_ids[row, : size - 1]
            positions[start:end] = torch.arange(end - start, device=device)
        cumulative = torch.tensor(bounds, dtype=torch.int32, device=device)
        inputs = {
            "input_ids": ids[None],
            "position_ids": positions[None],
            # Four-dimensional, a mask is handed on as it is; none would be made into one of [W, W].
            "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device),
            **dict.fromkeys(("cu_seq_lens_q", "cu_seq_lens_k"), cumulative),
            **dict.fromkeys(("max_length_q", "max_length_k"), max(lengths)),
        }
        first = torch.tensor([start + len(p) - 1 for start, p in zip(bounds[:-1], prompts, strict=True)], device=device)
        steps = torch.arange(batch.token_ids.shape[1], device=device)
        return cls(inputs, first[:, None] + steps)


def varlen_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int | None = None,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Causal attention within each row; without `cu_seq_lens_q`, what `r1lite.model.attention` computes.

    Args:
        query: [1, heads, W, d].
        key, value: [1, key heads, W, d]; heads is a multiple of key heads.
        cu_seq_lens_q: [B + 1] int32, where each row begins, and W.
        max_length_q: tokens of the longest row.
        sliding_window: how many tokens each sees, itself among them; None = all before it.

    Returns: [1, W, heads, d], and no weights.

    Raises:
        ValueError: an argument that changes attention in a way this does not know.
    """
    if cu_seq_lens_q is None:
        return attention.attention(
            module, query, key, value, attention_mask, scaling=scaling, sliding_window=sliding_window, **kwargs
        )
    if odd := [name for name in attention.VARIANTS if kwargs.get(name) is not None]:
        raise ValueError(f"rows without padding: this model's attention has {odd[0]}")
    low = _lower_precision(query)
    if low is not None:
        from torch.nn.attention.varlen import varlen_attn

        q, k, v = (states[0].transpose(0, 1).to(low) for states in (query, key, value))  # [W, heads, d]
        longest = int(max_length_q or query.shape[2])
        window = (-1 if sliding_window is None else sliding_window - 1, 0)
        grouped = query.shape[1] != key.shape[1]
        options: Any = {"scale": scaling, "window_size": window, "enable_gqa": grouped}
        out: Any = varlen_attn(q, k, v, cu_seq_lens_q, cu_seq_lens_q, longest, longest, **options)
        return out[None], None
    rows = []
    for start, end in itertools.pairwise(cu_seq_lens_q.tolist()):
        mask = None
        if sliding_window is not None and end - start > sliding_window:
            places = torch.arange(end - start, device=query.device)
            distance = places[:, None] - places
            mask = ((distance >= 0) & (distance < sliding_window))[None, None]
        q, k, v = (states[:, :, start:end] for states in (query, key, value))
        # One token sees itself: the library would take it for a step of decoding.
        causal = mask is None and end - start > 1
        rows.append(attention.of_library(module, q, k, v, mask, scaling=scaling, is_causal=causal, **kwargs)[0])
    return torch.cat(rows, dim=1), None


def _lower_precision(query: Tensor) -> torch.dtype | None:
    """The dtype to compute in if there is a kernel for it: of a GPU, in half precision."""
    if not query.is_cuda:
        return None
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else query.dtype
    return dtype if dtype in _HALF else None


@torch.no_grad()
def check_apart(model: Any) -> None:
    """Raises UserError unless rows end to end give what each gives by itself."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model  # peft's wrapper takes anything
    parameters = inspect.signature(inner.forward).parameters.values()
    why = f"--padding-free: in {type(inner).__name__} rows that are laid end to end would see one another"
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        raise UserError(why)
    last = model.get_input_embeddings().num_embeddings - 1
    rows = [Row((0, last // 2), (last, 0, 1)), Row((last, 1, 2), (last // 3, 1))]
    together, *alone = (micro_batches(some, 1 << 20, 0, model.device)[0] for some in (rows, *([row] for row in rows)))
    training = model.training
    model.eval()
    try:
        found, *expected = (
            _outputs(model, LaidOut.of(batch), batch) for batch in (together, *(alone[n] for n in together.rows))
        )
    finally:
        model.train(training)
    tolerance = max(1e-3, 4 * torch.finfo(model.dtype).eps)
    if not torch.allclose(found, torch.cat(expected), rtol=tolerance, atol=tolerance * float(found.abs().max())):
        raise UserError(why)


def _outputs(model: Any, laid_out: LaidOut, batch: MicroBatch) -> Tensor:
    """[N, V] logits."""
    logits = model(**laid_out.inputs, use_cache=False).logits[0]
    return logits[laid_out.predicting[batch.valid_mask]].float()  # type: ignore[no-any-return]
