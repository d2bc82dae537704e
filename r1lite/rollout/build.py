"""The engine that a configuration asks for."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from r1lite.config import EngineConfig
from r1lite.rollout import RolloutEngine, eos_ids
from r1lite.rollout.hf import HFEngine
from r1lite.rollout.vllm_support import required

_GREATEST_CACHE_SHARE = 0.25  # of this machine's free memory


@dataclass(frozen=True, slots=True)
class Built:
    """An engine, and what is to be said and kept about it."""

    engine: RolloutEngine
    line: str
    name: str  # transformers, vllm or vllm-server
    version: str
    start_s: float
    reproducible: str  # "yes", or why the same seeds may give other completions


def build(
    config: EngineConfig,
    *,
    place: str,
    model: Any,
    tokenizer: Any,
    dtype: torch.dtype,
    context: int,
    say: Callable[[str], None] = lambda text: None,
) -> Built:
    """Starts the engine that `config` settled on.

    Args:
        place: where the model lies, for an engine that loads it too.
        dtype: of the trainer's forward pass; the engine computes in it.
        context: tokens of the longest prompt and completion together.
        say: tells the user what takes long.

    Raises:
        UserError: it can't be had.
    """
    started = time.perf_counter()
    if config.engine == "vllm":
        return _in_process(config, place, model, tokenizer, dtype, context, say, started)
    if config.engine == "vllm-server":
        from r1lite.rollout.fleet import ServerEngine

        say(f"waiting up to {config.engine_timeout_s:g} s for {', '.join(config.engine_url)} ...")
        fleet = ServerEngine(
            config.engine_url,
            tokenizer,
            eos_ids(model, tokenizer),
            dtype=dtype,
            context=context,
            vocabulary=int(model.config.get_text_config().vocab_size),
            timeout_s=config.engine_timeout_s,
            weights_dir=config.engine_weights_dir,
            untested=config.engine_untested,
            start_wait_s=config.engine_timeout_s,  # servers that were started a moment ago still load
        )
        version = ", ".join(sorted({server.found.version for server in fleet.servers}))
        seconds = time.perf_counter() - started
        count = f"{len(fleet.servers)} server{'s' * (len(fleet.servers) > 1)}"
        why = "which completions are computed together depends on when they reach a server, and sums are rounded by it"
        return Built(fleet, f"vLLM {version}, {count}, found in {seconds:.1f} s", "vllm-server", version, seconds, why)
    version = importlib.metadata.version("transformers")
    engine = HFEngine(model, tokenizer, max_rows=config.rollout_rows, dtype=dtype)
    seconds = time.perf_counter() - started
    return Built(engine, f"transformers {version}, torch {torch.__version__}", "transformers", version, seconds, "yes")


def _in_process(
    config: EngineConfig,
    place: str,
    model: Any,
    tokenizer: Any,
    dtype: torch.dtype,
    context: int,
    say: Callable[[str], None],
    started: float,
) -> Built:
    from r1lite.rollout.vllm_engine import Start, VLLMEngine
    from r1lite.rollout.vllm_sizes import need, share

    found = required("--engine vllm", untested=config.engine_untested)
    cuda = config.device.startswith("cuda")
    wanted = need(
        model.config,
        sum(p.numel() for p in model.parameters()),
        bytes_per_value=dtype.itemsize,
        rows=config.rollout_rows,
        tokens=context,
    )
    memory = None
    if cuda:
        memory = share(wanted, torch.cuda.get_device_properties(config.device).total_memory, asked=config.engine_memory)
    assert config.threads is not None
    say("starting vLLM ...")
    start = Start(
        place=place,
        dtype=dtype,
        device=config.device,
        context=context,
        rows=config.rollout_rows,
        threads=config.threads,
        cache_gib=1 if cuda else min(wanted.cache_gib, max(1, int(_GREATEST_CACHE_SHARE * _free_gib()))),
        memory=None if memory is None else memory.memory,
        sleeps=memory is not None and memory.sleeps,
        eager=config.engine_eager,
        batch_invariant=config.engine_batch_invariant,
    )
    engine = VLLMEngine(found, tokenizer, eos_ids(model, tokenizer), start)
    seconds = time.perf_counter() - started
    held = "" if memory is None else f", {memory.memory:.0%} of the GPU{', asleep while it trains' * memory.sleeps}"
    why = "yes"
    if cuda and not config.engine_batch_invariant:
        why = "CUDA kernels round by what is in the batch; --engine-batch-invariant gives that up"
    line = f"vLLM {found.version} ({found.distribution}) in this process, started in {seconds:.1f} s{held}"
    return Built(engine, line, "vllm", found.version, seconds, why)


def _free_gib() -> float:
    import psutil

    return float(psutil.virtual_memory().available) / (1 << 30)
