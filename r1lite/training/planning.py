"""What a run would hold, by its settings and the model's configuration: shapes without storage, and a pass of them.

`r1lite grpo --estimate` says it for a rank and for an engine, and suggests a layout for given GPUs. It counts tensors;
the CUDA context, fragmentation and what a kernel takes for a moment are not, so a layout leaves a tenth free.
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
from r1lite.config.engines import find_engine
from r1lite.distributed.launcher import rank_info
from r1lite.errors import UserError
from r1lite.model.sharding import layers_of
from r1lite.rollout.vllm_sizes import SLACK, Need, need
from r1lite.training.machine import attention_of, load_config
from r1lite.training.memory import (
    Estimate,
    Layout,
    logits_of,
    minibatch_tokens,
    of_models,
    sampler_of,
)
from r1lite.training.setup import forward_dtype, resolve_config
from r1lite.training.several import refuse

_GIB = 1 << 30
_USABLE = 0.9  # of a GPU's memory
_NF4_BYTES = (
    0.5 + 1 / 64 + 4 / (64 * 256)
)  # a weight: 4 bits, a scale of 8 bits for 64, one of 32 bits for 256 of those
_SERVER_ROWS = 128  # completions that a server samples at once, as r1lite serve-engine starts it
_OF_A_MACHINE = 8  # GPUs at most, in the commands
_ATTENTION = "r1lite_shapes"


@dataclass(frozen=True, slots=True)
class EngineEstimate:
    """Bytes of one engine with weights of its own."""

    weights: int
    cache: int  # keys and values of all that it samples at once, at their longest
    rows: int
    slack: int = SLACK  # activations, CUDA graphs, the runtime's own: vLLM's, never measured on a GPU here

    @property
    def peak(self) -> int:
        """All of it."""
        return self.weights + self.cache + self.slack


class Plan:
    """A run's models as shapes.

    Args:
        config: settled.
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
        """What each rank would hold, libraries left out.

        Args:
            checkpointing, budget: in place of --gradient-checkpointing and --micro-batch-tokens.
        """
        config = self.config
        checkpointing = config.gradient_checkpointing if checkpointing is None else checkpointing
        longest = config.max_prompt_tokens
        tokens = minibatch_tokens(config, longest, config.micro_batch_tokens if budget is None else budget)
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

    def engine(self, engines: int = 1, rows: int | None = None) -> EngineEstimate:
        """What each of so many engines with weights of their own would hold."""
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
        """Tokens of the longest prompt with the longest completion."""
        return self.config.max_prompt_tokens + self.config.max_completion_tokens

    def activations(self, tokens: int, *, checkpointing: bool) -> int:
        """Bytes that the backward pass needs of a micro-batch of so many tokens; with checkpointing each layer's input,
        and what one layer keeps while it is computed again."""
        rows = max(1, tokens // self.row)
        share = max(1.0, tokens / (rows * self.row))
        everything = self._pass(rows, self.row, checkpointing=False)
        if checkpointing:
            layers = len(layers_of(self.model))
            return round(share * (self._pass(rows, self.row, checkpointing=True) + everything / layers))
        return round(share * everything)

    def _made(self) -> Any:
        from transformers import AttentionInterface, AttentionMaskInterface, AutoModelForCausalLM

        shape = load_config(self.config)
        attention = attention_of(self.config, shape)
        if attention != "eager":  # which keeps a square of the length, as it does when it runs
            AttentionInterface.register(_ATTENTION, _attention)
            AttentionMaskInterface.register(_ATTENTION, lambda *_, **__: None)
            attention = _ATTENTION
        with self._shapes:
            return AutoModelForCausalLM.from_config(
                shape, dtype=torch.float32, attn_implementation=attention, trust_remote_code=False
            )

    def _pass(self, rows: int, length: int, *, checkpointing: bool) -> int:
        """Bytes that a forward pass keeps: of each row the same, and once what it makes of the weights."""
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
                storages[storage._cdata] = storage  # kept, so that no other one gets its number
            return value.detach()  # itself, it would hold the graph that holds it

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
        """With the weights below an adapter in 4 bits, if they are asked for: those of linear layers but the head."""
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
    """The shapes of a linear layer with an adapter; peft would move its tensors, which these shapes don't bear."""

    def __init__(self, layer: torch.nn.Linear, rank: int) -> None:
        super().__init__()
        self.base_layer = layer
        self.lora_A = torch.nn.Linear(layer.in_features, rank, bias=False)
        self.lora_B = torch.nn.Linear(rank, layer.out_features, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        result: Tensor = self.base_layer(states) + self.lora_B(self.lora_A(states)) * 2.0
        return result


def _adapt(model: Any, config: RLConfig) -> None:
    """As `add_adapter`. Raises UserError if no layer has such a name."""
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
    """Keeps what a fused attention kernel keeps: queries, keys, values, output, and a number a query."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        output = query.new_empty(*query.shape[:-1], value.shape[-1])
        ctx.save_for_backward(query, key, value, output, query.new_empty(query.shape[:-1], dtype=torch.float32))
        return output


def _attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
) -> tuple[Tensor, None]:
    """Shapes of transformers' sdpa attention: [B, heads, L, d] -> [B, L, heads, d]; shared keys are copied."""
    shared = query.shape[1] // key.shape[1]
    if shared > 1:
        key, value = key.repeat_interleave(shared, dim=1), value.repeat_interleave(shared, dim=1)
    if torch.is_autocast_enabled("cpu"):
        query, key, value = (part.to(torch.get_autocast_dtype("cpu")) for part in (query, key, value))
    output: Tensor = _Kept.apply(query, key, value)  # type: ignore[no-untyped-call]
    return output.transpose(1, 2).contiguous(), None


def show_estimate(config: RLConfig) -> dict[str, Any]:
    """Says what each rank and engine of this run would hold. Raises UserError."""
    here = rank_info()
    on_gpu = config.device.startswith("cuda") or config.estimate_gpus is not None
    if on_gpu:  # there need be none here
        config = config.model_copy(update={"device": "cpu"})
    settled, _ = resolve_config(config)
    ranks = settled.estimate_ranks or (here.size if here is not None else 1)
    refuse(settled, ranks)
    dtype = torch.bfloat16 if on_gpu and settled.dtype == "auto" else forward_dtype(settled)
    plan = Plan(settled, dtype)
    layout = Layout(ranks, settled.shard, settled.shard_copies)
    shares = find_engine(settled.engine).shares_weights
    rank = plan.rank(layout, samples_here=shares)
    engines = max(1, len(settled.engine_url))
    engine = None if shares else plan.engine(engines, None if settled.engine_url else settled.rollout_rows)
    if here is None or here.rank == 0:
        for line in (*_head(plan, layout), *_rank_lines(plan, layout, rank), *_engine_lines(settled.engine, engine)):
            print(line)
        if settled.estimate_gpus is not None and settled.estimate_gib is not None:
            for line in suggestion(plan, settled.estimate_gpus, round(settled.estimate_gib * _GIB)):
                print(line)
    return {"rank": rank, "engine": engine}


def _head(plan: Plan, layout: Layout) -> list[str]:
    config = plan.config
    name = str(plan.dtype).removeprefix("torch.")
    adapter = f", adapters of rank {config.lora_rank}" if config.lora_rank else ""
    large = plan.parameters >= 1e9
    size = f"{plan.parameters / (1e9 if large else 1e6):,.2f} {'B' if large else 'M'} parameters"
    return [
        f"model      {config.model}: {size}{adapter}; its weights are not read",
        f"run        {layout.ranks} rank{'s' * (layout.ranks > 1)}, --shard {layout.shard}; float32 weights, {name} "
        f"products; {config.prompts_per_step} x {config.group_size} completions of up to "
        f"{config.max_prompt_tokens:,} + {config.max_completion_tokens:,} tokens",
    ]


def _rank_lines(plan: Plan, layout: Layout, expected: Estimate) -> list[str]:
    tokens = minibatch_tokens(plan.config, plan.config.max_prompt_tokens, plan.config.micro_batch_tokens)
    rows = [
        ("weights", expected.weights, "always"),
        ("reference", expected.reference, "always"),
        ("critic", expected.critic, "always"),
        ("optimizer", expected.optimizer, "always: two moments of each weight that learns"),
        ("gradients", expected.gradients, "while it learns"),
        ("of other ranks", expected.of_other_ranks, "while it learns: what is put together, or sent"),
        ("activations", expected.activations, f"while it learns, {tokens:,} tokens at once (--micro-batch-tokens)"),
        ("logits", expected.logits, "while it learns"),
        (
            "sampling",
            expected.sampler,
            "while it samples: keys, values, logits" + ", the whole model" * layout.in_parts,
        ),
    ]
    lines = ["each rank"]
    lines += [f"  {name:<15}{_gib(size)}  {when}" for name, size, when in rows if size]
    lines.append(f"  {'at most':<15}{_gib(expected.peak)}  beside libraries, CUDA's own and fragments")
    if layout.in_parts:
        whole = 12 * plan.parameters
        lines.append(f"  {'rank 0 saves':<15}{_gib(whole)}  of main memory for a moment: the whole model, its moments")
    return lines


def _engine_lines(name: str, expected: EngineEstimate | None) -> list[str]:
    if expected is None:
        return [f"engine     {name}: in each rank, see sampling"]
    return [
        f"each engine ({name})",
        f"  {'weights':<15}{_gib(expected.weights)}",
        f"  {'keys, values':<15}{_gib(expected.cache)}  of {expected.rows} completions at their longest",
        f"  {'slack':<15}{_gib(expected.slack)}  for vLLM's own; never measured on a GPU",
        f"  {'at most':<15}{_gib(expected.peak)}",
    ]


def suggestion(plan: Plan, gpus: int, size: int) -> list[str]:
    """A layout for so many GPUs of `size` bytes: as few to train as fit, at least a quarter, and the rest sample.

    Tried first with the settings as they are, then with gradient checkpointing and smaller micro-batches, and then with
    more GPUs that train.
    """
    room, title = round(_USABLE * size), f"layout     {gpus} GPU{'s' * (gpus > 1)} of {size / _GIB:,g} GiB"
    config, budgets = plan.config, [plan.config.micro_batch_tokens]
    while budgets[-1] // 2 >= plan.row:
        budgets.append(budgets[-1] // 2)
    changes = [(config.gradient_checkpointing, budgets[0])]
    changes += [(True, budget) for budget in budgets]
    if gpus == 1:
        return _on_one(plan, room, title, changes)
    least = max(1, gpus // 4) if _may_run(config, 2, "none") else 1
    closest: int | None = None
    for most in (max(least, gpus // 2), gpus - 1):
        for checkpointing, budget in changes:
            for train in range(least, most + 1):
                engine = plan.engine(gpus - train)
                for shard in ("none", "grad", "full")[: 1 if train == 1 else 3]:
                    if not _may_run(config, train, shard):
                        continue
                    layout = Layout(train, shard, config.shard_copies if shard != "none" else 1)
                    rank = plan.rank(layout, samples_here=False, checkpointing=checkpointing, budget=budget)
                    closest = min(rank.peak, closest) if closest is not None else rank.peak
                    if rank.peak <= room and engine.peak <= room:
                        return _commands(plan, title, layout, gpus - train, rank, engine, checkpointing, budget)
    engine = plan.engine(gpus - 1)
    if engine.peak > room:
        why = (
            f"an engine needs {_gib(engine.peak).strip()}, more than {_gib(room).strip()}: share a model between GPUs "
        )
        return [f"{title}: none was found: {why}(serve-engine --tensor-parallel), which is not planned here"]
    assert closest is not None
    return [
        f"{title}: none was found: a rank that trains needs at least {_gib(closest).strip()}, and {_gib(room).strip()} "
        "are usable: --lora-rank, a shorter --max-completion-tokens or more GPUs"
    ]


def _may_run(config: RLConfig, train: int, shard: str) -> bool:
    """Would so many ranks start with these settings, and servers that sample?"""
    try:
        refuse(config.model_copy(update={"shard": shard, "engine": "vllm-server"}), train)
    except UserError:
        return False
    return True


def _on_one(plan: Plan, room: int, title: str, changes: list[tuple[bool, int]]) -> list[str]:
    for checkpointing, budget in changes:
        rank = plan.rank(Layout(), samples_here=True, checkpointing=checkpointing, budget=budget)
        if rank.peak <= room:
            beside = plan.engine(rows=plan.config.rollout_rows)
            asleep = rank.always + beside.peak <= room
            why = "vLLM fits beside it, asleep while it learns" if asleep else "vLLM does not fit beside it"
            flags = _changed(plan.config, checkpointing, budget)
            name = "vllm" if asleep else "transformers"
            return [
                f"{title}: one process, {_gib(rank.peak).strip()} at most; {why}",
                f"  r1lite {plan.config.stage} ... --device cuda --engine {name}{flags}",
            ]
    least = plan.rank(Layout(), samples_here=True, checkpointing=True, budget=changes[-1][1])
    return [
        f"{title}: none was found: at least {_gib(least.peak).strip()} are needed, {_gib(room).strip()} are usable: "
        "--lora-rank, a shorter --max-completion-tokens or more GPUs"
    ]


def _commands(
    plan: Plan,
    title: str,
    layout: Layout,
    engines: int,
    rank: Estimate,
    engine: EngineEstimate,
    checkpointing: bool,
    budget: int,
) -> list[str]:
    config, train = plan.config, layout.ranks
    shard = "" if layout.shard == "none" else f" --shard {layout.shard}"
    urls = " ".join(f"--engine-url http://127.0.0.1:{8100 + number}" for number in range(engines))
    where = "--standalone"
    if train + engines > _OF_A_MACHINE:
        urls = f"--engine-url http://HOST:PORT ({engines} of them)"
        where = "--nnodes M --node-rank N --master-addr HOST"
    adapters = f" --lora-rank {config.lora_rank}" if config.lora_rank else ""
    start = (
        f"torchrun {where} --nproc-per-node {min(train, _OF_A_MACHINE)} -m r1lite {config.stage}"
        if train > 1
        else (f"r1lite {config.stage}")
    )
    return [
        f"{title}: {train} train{shard and f' ({shard.strip()})'}, {_gib(rank.peak).strip()} each at most; {engines} "
        f"sample, {_gib(engine.peak).strip()} each for {engine.rows} completions",
        f"  GPU {train} to {train + engines - 1}, N from 0: CUDA_VISIBLE_DEVICES=GPU r1lite serve-engine "
        f"--model {config.model}{adapters} --context {plan.row} --rows {engine.rows} --port 8100+N",
        f"  {start} ... --device cuda{shard}{_changed(config, checkpointing, budget)} --engine vllm-server {urls}",
    ]


def _changed(config: RLConfig, checkpointing: bool, budget: int) -> str:
    """Flags that differ from the settings."""
    flags = " --gradient-checkpointing" * (checkpointing and not config.gradient_checkpointing)
    return flags + f" --micro-batch-tokens {budget}" * (budget != config.micro_batch_tokens)


def _gib(size: int) -> str:
    if size < _GIB // 10:
        return f"{size / (1 << 20):>9,.1f} MiB"
    return f"{size / _GIB:>9,.1f} GiB"
