"""Shared prompts: a group's prompt is computed once, and its G completions share its keys and values.

This holds in sampling and in training. Prompts are padded on the right. Causality keeps padding out of the prefill, an
attention mask keeps it out of later steps, and explicit position ids start each completion directly after its prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from r1lite.model import evaluating, vocabulary_size
from r1lite.model.batch import MicroBatch
from r1lite.model.shared_prompts import ARGUMENT, SharedPrompts, takes_shared_prompts

_GROWTH = 64  # decode steps between two copies of the cache


class GrowingLayer(DynamicLayer):
    """A DynamicLayer for inference that reserves memory ahead; transformers' own copies everything at every token."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._room: tuple[Tensor, Tensor] | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        device = key_states.device.type
        if torch.is_autocast_enabled(device) and key_states.dtype == torch.float32:
            # Rotary embeddings leave keys in float32, and attention would round all of them again at every token.
            key_states = key_states.to(torch.get_autocast_dtype(device))
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if self._room is None or self._room[0].shape[-2] < end:
            keys, values = (
                states.new_empty(*states.shape[:-2], end + _GROWTH, states.shape[-1])
                for states in (key_states, value_states)
            )
            if start:
                assert self.keys is not None
                assert self.values is not None
                keys[..., :start, :], values[..., :start, :] = self.keys, self.values
            self._room = keys, values
        keys, values = self._room
        keys[..., start:end, :], values[..., start:end, :] = key_states, value_states
        self.keys, self.values = keys[..., :end, :], values[..., :end, :]
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        super().batch_select_indices(indices)
        self._room = None


@dataclass(slots=True)
class Prefix:
    """A cache of B prompts without their last tokens; the last token is the first input of each row's completion."""

    cache: DynamicCache
    mask: Tensor  # [B, L] int64, 0 = padding
    last_tokens: Tensor  # [B] the prompts' last tokens, not yet in the cache
    lengths: Tensor  # [B] position of the last token = number of valid tokens in the cache
    shared: SharedPrompts | None = None  # if set, cache and mask hold only the tokens after the prompts

    def select(self, rows: Tensor) -> None:
        """Keeps (or repeats) these rows, in this order."""
        for layer in self.cache.layers:
            if hasattr(layer, "recurrent_states"):  # batch_select_indices does not select the recurrent state
                layer.reorder_cache(cast(torch.LongTensor, rows))
            elif type(layer) is DynamicLayer and layer.get_seq_length():  # indexing's backward is slow
                assert layer.keys is not None
                assert layer.values is not None
                layer.keys, layer.values = (of.index_select(0, rows) for of in (layer.keys, layer.values))
            else:
                cast(DynamicLayer, layer).batch_select_indices(rows)
        if self.shared is not None:
            self.shared = self.shared.select(rows)
        self.mask, self.last_tokens, self.lengths = self.mask[rows], self.last_tokens[rows], self.lengths[rows]

    def share(self, rows: Tensor) -> None:
        """As `select`, without a copy per row; only for decoding, with a model that `reads_shared_prompts`."""
        layers = cast(list[DynamicLayer], self.cache.layers)
        keys = [cast(Tensor, layer.keys).transpose(-1, -2).contiguous() for layer in layers]
        values = [cast(Tensor, layer.values) for layer in layers]
        self.shared = SharedPrompts.of(keys, values, self.mask.bool(), rows)
        self.cache.layers = [GrowingLayer() for _ in layers]
        self.mask, self.last_tokens, self.lengths = self.mask[rows, :0], self.last_tokens[rows], self.lengths[rows]

    def next_inputs(self, tokens: Tensor) -> dict[str, Any]:
        """Arguments of the model's forward pass for one more token per row, [B]; appends the tokens to the prefix."""
        self.mask = torch.cat([self.mask, torch.ones_like(tokens)[:, None]], dim=1)
        positions, self.lengths = self.lengths[:, None], self.lengths + 1
        inputs = {"input_ids": tokens[:, None], "position_ids": positions, "past_key_values": self.cache}
        if self.shared is not None:
            return {**inputs, "use_cache": True, ARGUMENT: self.shared}
        return {**inputs, "use_cache": True, "attention_mask": self.mask}


def shares_batches(model: Any) -> bool:
    """True if prompts of different lengths may share a batch: every layer caches every token.

    Sliding windows and recurrent states would include the padding, so such models take one prompt at a time.
    """
    return all(type(layer) is DynamicLayer for layer in DynamicCache(config=model.config).layers)


def prefill(model: Any, prompts: Sequence[Sequence[int]], pad_id: int, *, growing: bool = False) -> Prefix:
    """Runs the prompts without their last tokens through the model, one row per prompt.

    Args:
        prompts: token ids, at least one each; all of one length unless `shares_batches(model)`.
        growing: reserve memory for decoding (inference only).
    """
    cache = DynamicCache(config=model.config)
    if growing and shares_batches(model):
        cache.layers = [GrowingLayer() for _ in cache.layers]
    device = model.device
    lengths = torch.tensor([len(prompt) - 1 for prompt in prompts], device=device)
    width = max(len(prompt) - 1 for prompt in prompts)
    last_tokens = torch.tensor([prompt[-1] for prompt in prompts], device=device)
    mask = (torch.arange(width, device=device)[None, :] < lengths[:, None]).long()
    if width:
        ids = torch.full((len(prompts), width), pad_id)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt) - 1] = torch.tensor(prompt[:-1], dtype=torch.long)
        # No mask is needed: padding comes after every real token, where causality hides it.
        model(input_ids=ids.to(device), past_key_values=cache, use_cache=True, logits_to_keep=1)
    return Prefix(cache, mask, last_tokens, lengths)


def on_prompts(module: Any, model: Any, batch: MicroBatch, pad_id: int, *, in_place: bool = False, **more: Any) -> Any:
    """The output for the completions, [B, T, ...]: each prompt is computed once, and all its completions after it.

    Args:
        module: the model or its backbone.
        in_place: the prompts' keys and values are not copied for each row; only if `trains_in_place`.
        more: further arguments of its forward pass.
    """
    prefix = prefill(model, batch.prompts, pad_id)
    if in_place and prefix.mask.shape[1]:
        layers = cast(list[DynamicLayer], prefix.cache.layers)
        keys = [cast(Tensor, layer.keys).transpose(-1, -2) for layer in layers]
        values = [cast(Tensor, layer.values) for layer in layers]
        of_row = batch.prompt_of_row
        last_tokens, starts = prefix.last_tokens[of_row], prefix.lengths[of_row]
        inputs = torch.cat([last_tokens[:, None], batch.token_ids[:, :-1]], dim=1)
        return module(
            input_ids=inputs,
            position_ids=starts[:, None] + torch.arange(inputs.shape[1], device=inputs.device),
            use_cache=False,
            **{ARGUMENT: SharedPrompts.of(keys, values, prefix.mask.bool(), of_row)},
            **more,
        )
    prefix.select(batch.prompt_of_row)
    inputs = torch.cat([prefix.last_tokens[:, None], batch.token_ids[:, :-1]], dim=1)
    # Position t gets token t-1 as input, which is real if token t is; the first input is the prompt's last token.
    mask = torch.cat([prefix.mask, torch.ones_like(batch.valid_mask[:, :1]), batch.valid_mask[:, 1:]], dim=1).long()
    positions = prefix.lengths[:, None] + torch.arange(inputs.shape[1], device=inputs.device)
    return module(
        input_ids=inputs,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=prefix.cache,
        use_cache=True,
        **more,
    )


@torch.inference_mode()
def cache_error(model: Any) -> float:
    """The largest difference of a log-probability between decoding on a shared prompt and a plain forward pass.

    Rounding alone makes 1e-5 in float32. The difference is large for a model that keeps part of its state outside the
    cache (RecurrentGemma), or computes decoding steps by another formula than whole texts (Nemotron-H without kernels).
    """
    size = vocabulary_size(model)
    prompt, tails = [n % size for n in range(3, 9)], [[n % size for n in range(k, k + 3)] for k in (11, 17)]
    with evaluating(model):
        whole = torch.tensor([prompt + tail for tail in tails], device=model.device)
        expected = model(input_ids=whole, use_cache=False).logits[:, len(prompt) - 1 : -1].float().log_softmax(dim=-1)
        prefix = prefill(model, [prompt], 0)
        tokens, worst = whole[:, len(prompt) - 1 : -1], 0.0
        for step, order in enumerate(([0, 0], [1, 0], [1, 0])):  # one prompt for both rows; then the rows swap
            rows = torch.tensor(order, device=model.device)
            prefix.select(rows)
            if step:
                tokens, expected = tokens[rows], expected[rows]
            mask = torch.ones(2, len(prompt) + step, dtype=torch.long, device=model.device)
            logits = model(
                input_ids=tokens[:, step : step + 1],
                attention_mask=mask,
                position_ids=prefix.lengths[:, None] + step,
                past_key_values=prefix.cache,
                use_cache=True,
            ).logits[:, -1]
            worst = max(worst, float((logits.float().log_softmax(dim=-1) - expected[:, step]).abs().max()))
    return worst


@torch.inference_mode()
def reads_shared_prompts(model: Any) -> bool:
    """True if decoding on prompts stored once gives the same logits as decoding on a copy for each row.

    Only this package's attention reads shared prompts, and a model may change the arguments that it passes on.
    """
    from r1lite.model.attention import NAME

    config = model.config.get_text_config()
    if config._attn_implementation != NAME or model.device.type != "cpu" or not shares_batches(model):
        return False
    if not takes_shared_prompts(model):
        return False
    size = vocabulary_size(model)
    prompts = [[n % size for n in range(3, 9)], [n % size for n in range(11, 14)]]
    rows = torch.tensor([0, 0, 1])
    with torch.autocast("cpu", enabled=False):
        copied, shared = (prefill(model, prompts, 0, growing=True) for _ in range(2))
        copied.select(rows)
        shared.share(rows)
        for step in range(2):
            tokens = torch.arange(step, step + 3) % size
            expected, result = (model(**prefix.next_inputs(tokens)).logits[:, -1] for prefix in (copied, shared))
            if not torch.allclose(result, expected, rtol=1e-3, atol=1e-3):
                return False
    return True


@torch.no_grad()
def trains_in_place(model: Any) -> bool:
    """True if `on_prompts` gives the same output when the prompts' keys and values are read in place, in float32."""
    if {p.dtype for p in model.parameters() if p.is_floating_point()} != {torch.float32} or not reads_shared_prompts(
        model
    ):
        return False
    size = vocabulary_size(model)
    prompts = [tuple(n % size for n in range(3, 9)), (11 % size,), (5 % size, 7 % size)]
    tokens = torch.arange(12).view(4, 3) % size
    valid = torch.ones(4, 3, dtype=torch.bool)
    batch = MicroBatch(prompts, torch.tensor([0, 0, 1, 2]), tokens, valid, valid, [])
    with torch.autocast("cpu", enabled=False):
        try:
            found, expected = (on_prompts(model, model, batch, 0, in_place=here).logits for here in (True, False))
        except ValueError:  # another attention than plain decoding's
            return False
    return torch.allclose(found, expected, rtol=1e-3, atol=1e-3)
