"""Rows concatenated into one sequence without padding, which do not attend to each other (`--padding-free`).

The arguments that transformers defines for FlashAttention's variable-length kernels give the rows' bounds. On GPUs in
half precision PyTorch's own kernel (`torch.nn.attention.varlen`) reads them; elsewhere attention runs row by row.

Shapes: B rows, W tokens of all of them, T tokens of the longest completion.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from r1lite.errors import UserError, first_line
from r1lite.model import attention, evaluating, vocabulary_size
from r1lite.model.batch import MicroBatch, Row, micro_batches

NAME = "varlen"
_HALF = (torch.bfloat16, torch.float16)


def register() -> str:
    """Registers the attention with transformers. Returns its name, for `attn_implementation`."""
    AttentionInterface.register(NAME, varlen_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME


@dataclass(frozen=True, slots=True)
class LaidOut:
    """The concatenated rows of a micro-batch: each is a prompt and its completion without the last token."""

    inputs: dict[str, Any]  # of the model's forward pass
    predicting: Tensor  # [B, T] position in the sequence whose output predicts token t; undefined at padding

    @classmethod
    def of(cls, batch: MicroBatch) -> LaidOut:
        """Concatenates all rows of the batch in their order."""
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
            # A four-dimensional mask is passed on unchanged; without one, transformers would build [W, W].
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
    """Causal attention within each row; without `cu_seq_lens_q`, the attention of `r1lite.model.attention`.

    Args:
        query: [1, heads, W, d].
        key, value: [1, key heads, W, d]; heads is a multiple of key heads.
        cu_seq_lens_q: [B + 1] int32, the start of each row, and W.
        max_length_q: tokens of the longest row.
        sliding_window: number of tokens that each token attends to, including itself; None = all before it.

    Returns: [1, W, heads, d], and None for the weights.

    Raises:
        ValueError: an argument changes attention in an unsupported way.
    """
    if cu_seq_lens_q is None:
        return attention.attention(
            module, query, key, value, attention_mask, scaling=scaling, sliding_window=sliding_window, **kwargs
        )
    if odd := [name for name in attention.VARIANTS if kwargs.get(name) is not None]:
        raise ValueError(f"rows without padding: the model's attention uses {odd[0]}, which is not supported")
    low = _lower_precision(query)
    if low is not None:
        from torch.nn.attention.varlen import varlen_attn

        q, k, v = (states[0].transpose(0, 1).to(low) for states in (query, key, value))  # [W, heads, d]
        longest = int(max_length_q or query.shape[2])
        window = (-1 if sliding_window is None else sliding_window - 1, 0)
        options: Any = {"scale": scaling, "window_size": window}
        if (shared := query.shape[1] // key.shape[1]) > 1:
            if _takes_groups(varlen_attn):
                options["enable_gqa"] = True
            else:
                k, v = (states.repeat_interleave(shared, dim=1) for states in (k, v))
        out: Any = varlen_attn(q, k, v, cu_seq_lens_q, cu_seq_lens_q, longest, longest, **options)
        return out[None], None
    rows = []
    for start, end in itertools.pairwise(cu_seq_lens_q.tolist()):
        mask = None
        if sliding_window is not None and end - start > sliding_window:
            positions = torch.arange(end - start, device=query.device)
            distance = positions[:, None] - positions
            mask = ((distance >= 0) & (distance < sliding_window))[None, None]
        q, k, v = (states[:, :, start:end] for states in (query, key, value))
        # A single token attends to itself; with is_causal the library would take it for a decoding step.
        causal = mask is None and end - start > 1
        rows.append(attention.of_library(module, q, k, v, mask, scaling=scaling, is_causal=causal, **kwargs)[0])
    return torch.cat(rows, dim=1), None


@functools.cache
def _takes_groups(kernel: Any) -> bool:
    """True from torch 2.12: fewer heads of keys than of queries are allowed."""
    return "enable_gqa" in inspect.signature(kernel).parameters


def _lower_precision(query: Tensor) -> torch.dtype | None:
    """The dtype of the variable-length kernel, if it can be used: on a GPU in half precision."""
    if not query.is_cuda:
        return None
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else query.dtype
    return dtype if dtype in _HALF else None


@torch.no_grad()
def check_apart(model: Any, dtype: torch.dtype) -> None:
    """Raises UserError unless concatenated rows give the same results as each row alone, in float32, and the attention
    for them runs in `dtype` on this device."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model  # peft's wrapper accepts any argument
    parameters = inspect.signature(inner.forward).parameters.values()
    why = f"--padding-free: in {type(inner).__name__} concatenated rows would see one another"
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        raise UserError(why)
    last = vocabulary_size(model) - 1
    rows = [Row((0, last // 2), (last, 0, 1)), Row((last, 1, 2), (last // 3, 1))]
    together, *alone = (micro_batches(some, 1 << 20, 0, model.device)[0] for some in (rows, *([row] for row in rows)))
    with evaluating(model):
        packed, *expected = (
            _outputs(model, LaidOut.of(batch), batch) for batch in (together, *(alone[n] for n in together.rows))
        )
    tolerance = max(1e-3, 4 * torch.finfo(model.dtype).eps)
    if not torch.allclose(packed, torch.cat(expected), rtol=tolerance, atol=tolerance * float(packed.abs().max())):
        raise UserError(why)
    if dtype in _HALF:
        try:
            with evaluating(model), torch.autocast(model.device.type, dtype=dtype):
                _outputs(model, LaidOut.of(together), together)
        except RuntimeError as error:  # such as "FlashAttention only supports Ampere GPUs or newer."
            raise UserError(
                f"--padding-free: attention of concatenated rows does not run here ({first_line(error)}): leave the "
                "flag out, or use --dtype float32"
            ) from error


def _outputs(model: Any, laid_out: LaidOut, batch: MicroBatch) -> Tensor:
    """[N, V] logits."""
    logits = model(**laid_out.inputs, use_cache=False).logits[0]
    return logits[laid_out.predicting[batch.valid_mask]].float()  # type: ignore[no-any-return]
