"""Estimates the memory of a run from its settings and the model's configuration, with tensors that have no storage.

It counts tensors, but not the CUDA context, fragmentation and temporary buffers of kernels.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r1lite.config import PPOConfig, RLConfig
from r1lite.errors import UserError
from r1lite.model.norms import quicken_shapes
from r1lite.model.sharding import layers_of
from r1lite.rollout.vllm_sizes import SLACK, Need, need
from r1lite.training.loading import attention_of, load_config
from r1lite.training.memory import (
    Estimate,
    Layout,
    logits_of,
    minibatch_tokens,
    of_models,
    sampler_of,
)

_NF4_BYTES = (
    0.5 + 1 / 64 + 4 / (64 * 256)
)  # bytes per weight: 4 bits, an 8-bit scale per 64 weights, a 32-bit scale per 256 scales
_SERVER_ROWS = 128  # completions that a server of r1lite serve-engine samples at once by default
_ATTENTION = "r1lite_shapes"


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


class Plan:
    """A run's models as shapes.

    Args:
        config: the resolved configuration.
        dtype: of the forward pass.
    """

    def __init__(self, config: RLConfig, dtype: torch.dtype) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        self.config, self.dtype, self._shapes = config, dtype, FakeTensorMode()
        self.model = self._made()
        self.parameters = sum(p.numel() for p in self.model.parameters())
        self.others: list[Any] = []
        with self._shapes:
            if config.lora_rank:
                _adapt(self.model, config)
            moves = config.reference_refresh_steps > 0 or config.reference_decay < 1
            if config.has_reference and (moves or not config.lora_rank):
                self.others.append(self._made().requires_grad_(False))
            if isinstance(config, PPOConfig) and config.critic == "own":
                critic = self._made()
                if not getattr(critic.config, "tie_word_embeddings", False):
                    critic.get_output_embeddings().requires_grad_(False)
                self.others.append(critic)
        self._kept: dict[tuple[int, int, bool], int] = {}

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
        expected = of_models(
            config,
            layout,
            self.model,
            self.others,
            base=0,
            activations=self.activations(tokens, checkpointing=checkpointing),
            logits=logits_of(self.model, tokens, whole=False),
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
            shares_prompts=not (checkpointing or layout.in_parts or config.padding_free),
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

    def activations(self, tokens: int, *, checkpointing: bool) -> int:
        """Bytes that the backward pass needs for a micro-batch of `tokens` tokens.

        With checkpointing: the input of each layer, and the activations of the layer that is computed again.
        """
        rows = max(1, tokens // self.row)
        share = max(1.0, tokens / (rows * self.row))
        everything = self._pass(rows, self.row, checkpointing=False)
        if checkpointing:
            layers = len(layers_of(self.model))
            return round(share * (self._pass(rows, self.row, checkpointing=True) + everything / layers))
        return round(share * everything)

    def _made(self) -> Any:
        from torch._subclasses.fake_tensor import unset_fake_temporarily
        from transformers import AttentionInterface, AttentionMaskInterface, AutoModelForCausalLM

        shape = load_config(self.config)
        attention = attention_of(self.config, shape)
        if (
            attention != "eager"
        ):  # eager attention also keeps memory that grows with the square of the length when it runs
            AttentionInterface.register(_ATTENTION, _attention)
            AttentionMaskInterface.register(_ATTENTION, lambda *_, **__: None)
            attention = _ATTENTION
        with self._shapes:
            model = AutoModelForCausalLM.from_config(
                shape, dtype=torch.float32, attn_implementation=attention, trust_remote_code=False
            )
        if self.config.device == "cpu":
            with unset_fake_temporarily():
                quicken_shapes(model)
        return model

    def _pass(self, rows: int, length: int, *, checkpointing: bool) -> int:
        """Bytes that a forward pass keeps: a part per row, and a constant part for copies of the weights."""
        if rows > 2:
            one, two = (self._pass(n, length, checkpointing=checkpointing) for n in (1, 2))
            return one + (rows - 1) * (two - one)
        key = (rows, length, checkpointing)
        if key not in self._kept:
            self._kept[key] = self._saved(rows, length, checkpointing=checkpointing)
        return self._kept[key]

    def _saved(self, rows: int, length: int, *, checkpointing: bool) -> int:
        model = self.model
        weights = {p.untyped_storage()._cdata for p in model.parameters()}
        storages: dict[int, Any] = {}

        def pack(value: Tensor) -> Tensor:
            storage = value.untyped_storage()
            if storage._cdata not in weights:
                storages[storage._cdata] = storage  # kept alive, so that no other storage gets the same id
            return value.detach()  # detached, since the value itself would keep its graph alive

        low = self.dtype != torch.float32
        with self._shapes, _checkpointing(model, on=checkpointing):
            ids = torch.zeros(rows, length, dtype=torch.long)
            with (
                torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value),
                torch.autocast("cpu", dtype=self.dtype if low else torch.bfloat16, enabled=low),
            ):
                result = model.base_model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
            total: int = sum(storage.nbytes() for storage in storages.values())
        del result
        return total

    def _packed(self, expected: Estimate) -> Estimate:
        """Applies --base-quantization: counts the linear layers below an adapter, except the head, with 4 bits."""
        if self.config.base_quantization == "none":
            return expected
        import dataclasses

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
    if not getattr(model, "supports_gradient_checkpointing", False):
        raise UserError(f"--gradient-checkpointing: {type(model).__name__} does not support it")
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    try:
        yield
    finally:
        model.gradient_checkpointing_disable()
        model.eval()


class _Kept(torch.autograd.Function):
    """Keeps the tensors that a fused attention kernel keeps: queries, keys, values, output, a number per query."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        output = query.new_empty(*query.shape[:-1], value.shape[-1])
        ctx.save_for_backward(query, key, value, output, query.new_empty(query.shape[:-1], dtype=torch.float32))
        return output


def _attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
) -> tuple[Tensor, None]:
    """Imitates the shapes of transformers' sdpa attention: [B, heads, L, d] -> [B, L, heads, d]; copies shared keys."""
    shared = query.shape[1] // key.shape[1]
    if shared > 1:
        key, value = key.repeat_interleave(shared, dim=1), value.repeat_interleave(shared, dim=1)
    if torch.is_autocast_enabled("cpu"):
        query, key, value = (part.to(torch.get_autocast_dtype("cpu")) for part in (query, key, value))
    output: Tensor = _Kept.apply(query, key, value)  # type: ignore[no-untyped-call]
    return output.transpose(1, 2).contiguous(), None
