"""`r1lite grpo --estimate`: prints the memory of each rank and engine, and suggests a layout for given GPUs.

A layout leaves a tenth of each GPU free, for memory that `planning` does not count.
"""

from __future__ import annotations

from typing import Any

import torch

from r1lite.config import RLConfig
from r1lite.config.engines import find_engine
from r1lite.distributed.launcher import rank_info
from r1lite.errors import UserError
from r1lite.training.loading import forward_dtype
from r1lite.training.memory import Estimate, Layout
from r1lite.training.planning import EngineEstimate, Plan
from r1lite.training.resolve import resolve_config
from r1lite.training.several import refuse

_GIB = 1 << 30
_USABLE = 0.9  # of a GPU's memory
_OF_A_MACHINE = 8  # maximum number of GPUs per machine in the commands


def show_estimate(config: RLConfig) -> dict[str, Any]:
    """Prints the memory of each rank and engine of this run. Raises UserError."""
    here = rank_info()
    on_gpu = config.device.startswith("cuda") or config.estimate_gpus is not None
    if on_gpu:  # this machine need not have one
        config = config.model_copy(update={"device": "cpu"})
    settled, _ = resolve_config(config)
    ranks = settled.estimate_ranks or (here.size if here is not None else 1)
    refuse(settled, ranks)
    dtype = torch.bfloat16 if on_gpu and settled.dtype == "auto" else forward_dtype(settled)
    plan = Plan(settled, dtype, on_gpu=on_gpu)
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
        f"model      {config.model}: {size}{adapter}; weights are not read",
        f"run        {layout.ranks} rank{'s' * (layout.ranks > 1)}, --shard {layout.shard}; float32 weights, {name} "
        f"products; {config.prompts_per_step} x {config.group_size} completions of up to "
        f"{config.max_prompt_tokens:,} + {config.max_completion_tokens:,} tokens",
    ]


def _rank_lines(plan: Plan, layout: Layout, expected: Estimate) -> list[str]:
    tokens = plan.tokens(layout, checkpointing=plan.config.gradient_checkpointing)
    rows = [
        ("weights", expected.weights, "always"),
        ("reference", expected.reference, "always"),
        ("critic", expected.critic, "always"),
        ("optimizer", expected.optimizer, "always: two moments per trained weight"),
        ("gradients", expected.gradients, "while learning"),
        ("of other ranks", expected.of_other_ranks, "while learning: gathered weights, and gradients that are sent"),
        ("activations", expected.activations, f"while learning, {tokens:,} tokens at once (--micro-batch-tokens)"),
        ("logits", expected.logits, "while learning"),
        (
            "sampling",
            expected.sampler,
            "while sampling: keys, values, logits" + ", the whole model" * layout.in_parts,
        ),
    ]
    lines = ["each rank"]
    lines += [f"  {name:<15}{_gib(size)}  {when}" for name, size, when in rows if size]
    lines.append(f"  {'at most':<15}{_gib(expected.peak)}  plus libraries, CUDA context and fragmentation")
    return lines


def _engine_lines(name: str, expected: EngineEstimate | None) -> list[str]:
    if expected is None:
        return [f"engine     {name}: in each rank, see sampling"]
    return [
        f"each engine ({name})",
        f"  {'weights':<15}{_gib(expected.weights)}",
        f"  {'keys, values':<15}{_gib(expected.cache)}  of {expected.rows} completions of maximum length",
        f"  {'slack':<15}{_gib(expected.slack)}  for vLLM itself; never measured on a GPU",
        f"  {'at most':<15}{_gib(expected.peak)}",
    ]


def suggestion(plan: Plan, gpus: int, size: int) -> list[str]:
    """Returns a layout for `gpus` GPUs of `size` bytes: as few as possible train, at least a quarter; the rest sample.

    The search tries the settings as they are, then gradient checkpointing and smaller micro-batches, and then more
    training GPUs.
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
        why = f"an engine needs {_gib(engine.peak).strip()}, more than {_gib(room).strip()}: split it between GPUs "
        return [f"{title}: none was found: {why}(serve-engine --tensor-parallel), which --estimate does not support"]
    assert closest is not None
    return [
        f"{title}: none was found: a training rank needs at least {_gib(closest).strip()}, and {_gib(room).strip()} "
        "are usable: try --lora-rank, a shorter --max-completion-tokens or more GPUs"
    ]


def _may_run(config: RLConfig, train: int, shard: str) -> bool:
    """Returns whether `train` ranks with servers could start with these settings."""
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
            why = "vLLM fits beside it and sleeps during learning" if asleep else "vLLM does not fit beside it"
            flags = _changed(plan.config, checkpointing, budget)
            name = "vllm" if asleep else "transformers"
            return [
                f"{title}: one process, {_gib(rank.peak).strip()} at most; {why}",
                f"  r1lite {plan.config.stage} ... --device cuda --engine {name}{flags}",
            ]
    least = plan.rank(Layout(), samples_here=True, checkpointing=True, budget=changes[-1][1])
    return [
        f"{title}: none was found: at least {_gib(least.peak).strip()} are needed, {_gib(room).strip()} are usable: "
        "try --lora-rank, a shorter --max-completion-tokens or more GPUs"
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
    """Returns the flags that differ from the settings."""
    flags = " --gradient-checkpointing" * (checkpointing and not config.gradient_checkpointing)
    return flags + f" --micro-batch-tokens {budget}" * (budget != config.micro_batch_tokens)


def _gib(size: int) -> str:
    if size < _GIB // 10:
        return f"{size / (1 << 20):>9,.1f} MiB"
    return f"{size / _GIB:>9,.1f} GiB"
