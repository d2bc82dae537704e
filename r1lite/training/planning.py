"""Estimates the memory of a run from its settings and the model's configuration, with tensors that have no storage.

It counts tensors, but not the CUDA context, fragmentation and temporary buffers of kernels.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.integrations.sdpa_attention import use_gqa_in_sdpa

from r1lite.config import PPOConfig, RLConfig
from r1lite.errors import UserError
from r1lite.model.attention import NAME, prefers_float32
from r1lite.model.batch import MicroBatch
from r1lite.model.gates import quicken_gates
from r1lite.model.norms import quicken_shapes
from r1lite.model.policy import enable_checkpointing
from r1lite.model.prefix import on_prompts, prefill, shares_batches
from r1lite.model.sharding import layers_of
from r1lite.model.shared_prompts import takes_shared_prompts
from r1lite.rollout.vllm_sizes import SLACK, Need, need
from r1lite.training.loading import attention_of, load_config
from r1lite.training.memory import (
    Estimate,
    Layout,
    logits_of,
    minibatch_tokens,
    of_models,
    sampler_of,
    with_backward,
)

# Bytes per weight: 4 bits, an 8-bit scale per 64 weights, a 32-bit scale per 256 scales.
_NF4_BYTES = 0.5 + 1 / 64 + 4 / (64 * 256)
_SERVER_ROWS = 128  # completions that a server of r1lite serve-engine samples at once by default
_ATTENTION, _IN_FLOAT32 = "r1lite_shapes", "r1lite_shapes_float32"


@dataclass(frozen=True, slots=True)
class EngineEstimate:
    """Bytes of one engine with its own weights."""

    weights: int
    cache: int  # keys and values of all completions sampled at once, at maximum length
    rows: int
    slack: int = SLACK  # vLLM's activations, CUDA graphs and runtime; never measured on a GPU here

    @property
    def peak(self) -> int:
        """The sum of all parts."""
        return self.weights + self.cache + self.slack


@dataclass(frozen=True, slots=True)
class BatchShape:
    """Of a micro-batch, how it goes through the model."""

    prompts: int  # that go through it once for all their rows; 0: each row has its prompt before it
    rows: int
    prompt_length: int  # of a shared prompt
    length: int  # of a row, without a shared prompt
    padded: bool  # attention is given a mask

    @property
    def shares_prompts(self) -> bool:
        """True if prompts go through the model once."""
        return self.prompts > 0

    @property
    def tokens(self) -> int:
        """That go through the model."""
        return self.prompts * self.prompt_length + self.rows * self.length


class Plan:
    """A run's models as shapes.

    Args:
        config: the resolved configuration.
        dtype: of the forward pass.
        on_gpu: the run is; `config.device` may be the CPU, where it is planned.
    """

    def __init__(self, config: RLConfig, dtype: torch.dtype, *, on_gpu: bool = False) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        self.config, self.dtype, self._shapes, self._on_gpu = config, dtype, FakeTensorMode(), on_gpu
        self.model = self._made()
        self.parameters = sum(p.numel() for p in self.model.parameters())
        self.others: list[Any] = []
        with self._shapes:
            if config.lora_rank:
                _adapt(self.model, config)
            if config.has_reference and (config.moves_reference or not config.lora_rank):
                self.others.append(self._made().requires_grad_(False))
            if isinstance(config, PPOConfig) and config.critic == "own":
                critic = self._made()
                if not getattr(critic.config, "tie_word_embeddings", False):
                    critic.get_output_embeddings().requires_grad_(False)
                self.others.append(critic)
        self._known: dict[tuple[BatchShape, bool], int] = {}

    def rank(
        self, layout: Layout, *, samples_here: bool, checkpointing: bool | None = None, budget: int | None = None
    ) -> Estimate:
        """Estimates the memory of each rank, without libraries.

        Args:
            checkpointing, budget: override --gradient-checkpointing and --micro-batch-tokens.
        """
        config = self.config
        checkpointing = config.gradient_checkpointing if checkpointing is None else checkpointing
        longest, tokens = config.max_prompt_tokens, self.tokens(layout, checkpointing=checkpointing, budget=budget)
        activations = self.activations(tokens, checkpointing=checkpointing, in_parts=layout.in_parts)
        expected = of_models(
            config,
            layout,
            self.model,
            self.others,
            base=0,
            activations=with_backward(activations, cuda=self._on_gpu),
            logits=logits_of(self.model, tokens, whole=False, cuda=self._on_gpu),
            sampler=sampler_of(config, layout, self.model, longest, self.dtype) if samples_here else 0,
        )
        return self._packed(expected)

    def tokens(self, layout: Layout, *, checkpointing: bool, budget: int | None = None) -> int:
        """Returns the tokens of a rank's largest micro-batch; see `rank`."""
        config = self.config
        return minibatch_tokens(
            config,
            config.max_prompt_tokens,
            config.micro_batch_tokens if budget is None else budget,
            shares_prompts=self._shares_prompts(checkpointing, layout.in_parts),
        )

    def engine(self, engines: int = 1, rows: int | None = None) -> EngineEstimate:
        """Estimates the memory of each of `engines` engines with their own weights."""
        config = self.config
        if rows is None:
            rows = min(_SERVER_ROWS, math.ceil(config.prompts_per_step * config.group_size / engines))
        expected: Need = need(
            self.model.config,
            self.parameters,
            bytes_per_value=self.dtype.itemsize,
            rows=rows,
            tokens=config.max_prompt_tokens + config.max_completion_tokens,
        )
        return EngineEstimate(expected.weights, expected.cache, rows)

    @property
    def row(self) -> int:
        """Number of tokens of the longest prompt with the longest completion."""
        return self.config.max_prompt_tokens + self.config.max_completion_tokens

    def activations(self, tokens: int, *, checkpointing: bool, in_parts: bool = False) -> int:
        """Bytes that the backward pass needs for a micro-batch of `tokens` tokens.

        With checkpointing: the input of each layer, and the activations of the layer that is computed again.
        """
        batch = self._largest(tokens, shares_prompts=self._shares_prompts(checkpointing, in_parts))
        share = max(1.0, tokens / batch.tokens)
        everything = self.kept(batch, checkpointing=False)
        if checkpointing:
            layers = len(layers_of(self.model))
            return round(share * (self.kept(batch, checkpointing=True) + everything / layers))
        return round(share * everything)

    def kept(self, batch: BatchShape, *, checkpointing: bool) -> int:
        """Bytes that a forward pass keeps of a micro-batch: of each row, and of each shared prompt, the same; and once
        what it makes of the weights."""

        def of(prompts: int, rows: int) -> int:
            return self._one_pass(dataclasses.replace(batch, prompts=prompts, rows=rows), checkpointing)

        total = one = of(1, 1) if batch.shares_prompts else of(0, 1)
        if batch.rows > 1:
            two = of(1, 2) if batch.shares_prompts else of(0, 2)
            total += (batch.rows - 1) * (two - one)
            if batch.prompts > 1:
                total += (batch.prompts - 1) * (of(2, 2) - two)
        return total

    def _shares_prompts(self, checkpointing: bool, in_parts: bool) -> bool:
        return not (checkpointing or in_parts or self.config.padding_free) and shares_batches(self.model)

    def _largest(self, tokens: int, *, shares_prompts: bool) -> BatchShape:
        """The most rows that go through the model at once, whole groups where these share their prompts."""
        config = self.config
        prompt, completion = config.max_prompt_tokens, config.max_completion_tokens
        if not shares_prompts:
            rows = max(1, tokens // self.row)
            return BatchShape(0, rows, 0, self.row, padded=rows > 1 and not config.padding_free)
        group = prompt + config.group_size * completion
        groups, rest = divmod(tokens, group)
        more = max(0, rest - prompt) // completion
        rows = max(1, groups * config.group_size + more)
        return BatchShape(math.ceil(rows / config.group_size), rows, prompt, completion, padded=True)

    def _made(self) -> Any:
        from torch._subclasses.fake_tensor import unset_fake_temporarily
        from transformers import AttentionInterface, AttentionMaskInterface, AutoModelForCausalLM

        shape = load_config(self.config)
        attention = asked = attention_of(self.config, shape)
        if attention != "eager":  # eager attention keeps memory that grows with the square of the length
            attention = _IN_FLOAT32 if not self._on_gpu and prefers_float32() else _ATTENTION
            AttentionInterface.register(attention, _ATTENTIONS[attention])
            AttentionMaskInterface.register(attention, _mask)
        with self._shapes:
            model = AutoModelForCausalLM.from_config(
                shape, dtype=torch.float32, attn_implementation=attention, trust_remote_code=False
            )
        if not self._on_gpu:
            with unset_fake_temporarily():
                quicken_shapes(model)
                quicken_gates(model)
        exact = not self._on_gpu and self.dtype == torch.float32
        self._in_place = exact and asked == NAME and takes_shared_prompts(model)
        return model

    def _one_pass(self, batch: BatchShape, checkpointing: bool) -> int:
        key = batch, checkpointing
        if key not in self._known:
            self._known[key] = self._saved(batch, checkpointing=checkpointing)
        return self._known[key]

    def _saved(self, batch: BatchShape, *, checkpointing: bool) -> int:
        model = self.model
        weights = {p.untyped_storage()._cdata for p in model.parameters()}
        packed: list[weakref.ref[Tensor]] = []

        def pack(value: Tensor) -> Tensor:
            kept = value.detach()  # detached, since the value itself would keep its graph alive
            if value.untyped_storage()._cdata not in weights:
                packed.append(weakref.ref(kept))
            return kept

        low = self.dtype != torch.float32
        with self._shapes, _checkpointing(model, on=checkpointing):
            with (
                torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value),
                torch.autocast("cpu", dtype=self.dtype if low else torch.bfloat16, enabled=low),
            ):
                result = _forward(model, batch, in_place=self._in_place)
            # Of shared prompts what comes after the last keys and values is gone by now.
            alive = [value.untyped_storage() for one in packed if (value := one()) is not None]
            total: int = sum({storage._cdata: storage.nbytes() for storage in alive}.values())
        del result
        return total

    def _packed(self, expected: Estimate) -> Estimate:
        """Applies --base-quantization: counts the linear layers below an adapter, except the head, with 4 bits."""
        if self.config.base_quantization == "none":
            return expected
        head = self.model.get_output_embeddings()
        linear = sum(
            module.weight.numel()
            for name, module in self.model.named_modules()
            if isinstance(module, torch.nn.Linear) and module is not head and "lora_" not in name
        )
        return dataclasses.replace(expected, weights=expected.weights - round((4 - _NF4_BYTES) * linear))


class _Adapted(torch.nn.Module):
    """A linear layer with an adapter, as shapes; peft would move the tensors, which have no storage here."""

    def __init__(self, layer: torch.nn.Linear, rank: int) -> None:
        super().__init__()
        self.base_layer = layer
        self.lora_A = torch.nn.Linear(layer.in_features, rank, bias=False)
        self.lora_B = torch.nn.Linear(rank, layer.out_features, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        result: Tensor = self.base_layer(states) + self.lora_B(self.lora_A(states)) * 2.0
        return result


def _adapt(model: Any, config: RLConfig) -> None:
    """Like `add_adapter`. Raises UserError if no layer has a name in --lora-targets."""
    names = [name.strip() for name in config.lora_targets.split(",")]
    every, head = names == ["all-linear"], model.get_output_embeddings()
    model.requires_grad_(False)
    linear = [
        (name, one) for name, one in model.named_modules() if isinstance(one, torch.nn.Linear) and one is not head
    ]
    chosen = [(name, one) for name, one in linear if every or name.rpartition(".")[2] in names]
    if not chosen:
        raise UserError(f"--lora-targets {config.lora_targets}: no linear layer of this model has such a name")
    for name, layer in chosen:
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, _Adapted(layer, config.lora_rank))


@contextlib.contextmanager
def _checkpointing(model: Any, *, on: bool) -> Iterator[None]:
    if not on:
        yield
        return
    enable_checkpointing(model)
    try:
        yield
    finally:
        model.gradient_checkpointing_disable()
        model.eval()


def _forward(model: Any, batch: BatchShape, *, in_place: bool) -> Any:
    """The backbone's output for such a micro-batch, and what it needs besides.

    Args:
        in_place: the keys and values of shared prompts are not copied for each row.
    """
    ids = torch.zeros(batch.rows, batch.length, dtype=torch.long)
    if not batch.shares_prompts:
        mask = torch.ones_like(ids) if batch.padded else None
        return model.base_model(input_ids=ids, attention_mask=mask, use_cache=False)
    prompts = [(0,) * batch.prompt_length] * batch.prompts
    if in_place:
        return prefill(model, prompts, 0), model.base_model(input_ids=ids, use_cache=False)
    valid, of_row = torch.ones_like(ids, dtype=torch.bool), torch.zeros(batch.rows, dtype=torch.long)
    return on_prompts(model.base_model, model, MicroBatch(prompts, of_row, ids, valid, valid, []), 0)


class _Kept(torch.autograd.Function):
    """Keeps what a fused attention kernel keeps: queries, keys, values, output, a number per query, and the mask."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        output = query.new_empty(*query.shape[:-1], value.shape[-1])
        kept = [query, key, value, output, query.new_empty(query.shape[:-1], dtype=torch.float32)]
        ctx.save_for_backward(*kept, *([] if mask is None else [mask]))
        return output


def _mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    *_: Any,
    attention_mask: Tensor | None = None,
    local_size: int | None = None,
    **more: Any,
) -> Tensor | None:
    """The shape of what transformers' sdpa_mask makes; None where the kernel needs no mask to be causal."""
    if attention_mask is None and (local_size is None or kv_length < local_size):
        return None
    return torch.ones(batch_size, 1, q_length, kv_length, dtype=torch.bool)


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    in_float32: bool = False,
    **more: Any,
) -> tuple[Tensor, None]:
    """Shapes of transformers' sdpa attention: [B, heads, L, d] -> [B, L, heads, d].

    With a mask, shared keys are copied for each head, and each layer converts the mask to numbers.

    Args:
        in_float32: compute in float32, as `r1lite.model.attention` does where that is faster.
    """
    dtype = query.dtype
    if torch.is_autocast_enabled("cpu"):
        dtype = torch.get_autocast_dtype("cpu")
        if in_float32 and dtype == torch.bfloat16:
            dtype = torch.float32
    query, key, value = (part.to(dtype) for part in (query, key, value))
    shared = query.shape[1] // key.shape[1]
    if shared > 1 and not use_gqa_in_sdpa(attention_mask, key, value):
        key, value = key.repeat_interleave(shared, dim=1), value.repeat_interleave(shared, dim=1)
    mask = None if attention_mask is None else attention_mask.to(dtype)
    output: Tensor = _Kept.apply(query, key, value, mask)  # type: ignore[no-untyped-call]
    return output.transpose(1, 2).contiguous(), None


_ATTENTIONS: dict[str, Callable[..., Any]] = {
    _ATTENTION: _attention,
    _IN_FLOAT32: functools.partial(_attention, in_float32=True),
}
