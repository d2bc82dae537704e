"""Starts the engine of a configuration."""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from r1lite.config import EngineConfig
from r1lite.config.engines import find_engine
from r1lite.errors import UserError
from r1lite.model.prefix import cache_error, shares_batches
from r1lite.model.quantized import parameter_count, scale_bytes
from r1lite.rollout import RolloutEngine, eos_ids
from r1lite.rollout.fleet import ServerEngine
from r1lite.rollout.hf import HFCopyEngine, HFEngine
from r1lite.rollout.layout import file_layout
from r1lite.rollout.vllm_support import no_adapters, required

_GREATEST_CACHE_SHARE = 0.25  # of this machine's free memory
_GREATEST_CACHE_ERROR = 0.02  # nats, the learner's limit between sampler and trainer


@dataclass(frozen=True, slots=True)
class Request:
    """Inputs for starting an engine."""

    config: EngineConfig
    model_path: str  # folder or Hub id of the model, for an engine that loads it itself
    model: Any  # the trainer's model
    tokenizer: Any
    dtype: torch.dtype  # of the trainer's forward pass and of the engine's
    context: int  # tokens of the longest prompt and completion together
    in_parts: bool = False  # the trainer's model will be sharded
    say: Callable[[str], None] = lambda text: None  # announces slow steps to the user


@dataclass(frozen=True, slots=True)
class Started:
    """An engine, and what the run reports and records about it."""

    engine: RolloutEngine
    line: str
    version: str
    reproducible: str = "yes"  # or the reason why the same seeds may give other completions
    name: str = ""  # as in --engine
    start_s: float = 0.0
    held: int = 0  # bytes of the trainer's GPU that it holds while it is awake
    sleeps: bool = False  # it frees them while the trainer works


def start(request: Request) -> Started:
    """Starts the configured engine. Raises UserError if that is impossible."""
    began = time.perf_counter()
    name = request.config.engine
    started: Started = find_engine(name).starter()(request)
    seconds = time.perf_counter() - began
    return dataclasses.replace(started, name=name, start_s=seconds)


def start_transformers(request: Request) -> Started:
    """Samples with the trainer's own model. Raises UserError if decoding differs from the model's forward pass."""
    config = request.config
    if config.cuda_graphs:
        _check_graphs(config.device, request.model)
    options: Any = {"max_rows": config.rollout_rows, "dtype": request.dtype, "cuda_graphs": config.cuda_graphs}
    engine = (
        HFCopyEngine(request.model, request.tokenizer, device=config.device, **options)
        if request.in_parts
        else HFEngine(request.model, request.tokenizer, **options)
    )
    if not shares_batches(engine.model) and (error := _cache_error(engine, request)) > _GREATEST_CACHE_ERROR:
        raise UserError(
            f"--engine transformers: {type(request.model).__name__} gives other probabilities token by token than for "
            f"a whole text ({error:.2g} nats apart; rounding makes 1e-5), so completions would not come from its own "
            "distribution. Use --engine vllm or vllm-server for it, or another model"
        )
    version = importlib.metadata.version("transformers")
    copied = ", with a copy of the whole model" if request.in_parts else ""
    return Started(engine, f"transformers {version}, torch {torch.__version__}{copied}", version)


def _check_graphs(device: str, model: Any) -> None:
    if not device.startswith("cuda"):
        raise UserError(f"--cuda-graphs needs a CUDA device, and this run's is {device}; omit it")
    if not shares_batches(model):
        raise UserError(
            f"--cuda-graphs: {type(model).__name__} has sliding windows or recurrent states, whose cache has no fixed "
            "addresses; omit it"
        )


def _cache_error(engine: HFEngine, request: Request) -> float:
    engine.load_weights(request.model.named_parameters(remove_duplicate=False), version=0)
    error = cache_error(engine.model)
    engine.sleep()
    return error


def start_vllm_servers(request: Request) -> Started:
    """Connects to the servers at `--engine-url`."""
    from r1lite.rollout.vllm_server import vllm_fleet

    rank = getattr(request.config, "lora_rank", 0)
    config = request.config
    connect = functools.partial(
        vllm_fleet,
        lora_rank=rank,
        transport=config.weight_transport,
        delta=config.weight_delta,
        device=config.device,
    )
    return _start_servers(request, connect)


def start_sglang_servers(request: Request) -> Started:
    """Connects to the servers at `--engine-url`. Raises UserError for a cut distribution."""
    from r1lite.rollout.sglang_server import sglang_fleet

    for name, off in (("top_p", 1.0), ("top_k", 0), ("min_p", 0.0)):
        if getattr(request.config, name, off) != off:
            raise UserError(
                f"--{name.replace('_', '-')}: SGLang samples from the cut distribution but returns log-probabilities "
                "of the whole one; use --engine vllm-server with this flag"
            )
    return _start_servers(request, sglang_fleet)


def _start_servers(request: Request, connect: Callable[..., ServerEngine]) -> Started:
    config = request.config
    request.say(f"waiting up to {config.engine_timeout_s:g} s for {', '.join(config.engine_url)} ...")
    fleet = connect(
        config.engine_url,
        request.tokenizer,
        eos_ids(request.model, request.tokenizer),
        dtype=request.dtype,
        context=request.context,
        vocabulary=int(request.model.config.get_text_config().vocab_size),
        timeout_s=config.engine_timeout_s,
        weights_dir=config.engine_weights_dir,
        untested=config.engine_untested,
        start_wait_s=config.engine_timeout_s,  # servers that were just started are still loading
        parameters=parameter_count(request.model),
        layout=file_layout(request.model),
        stall_s=config.engine_stall_s,
        say=request.say,
    )
    version = ", ".join(sorted({server.version for server in fleet.servers}))
    count = f"{len(fleet.servers)} server{'s' * (len(fleet.servers) > 1)}"
    why = "a server batches completions as they arrive, and rounding depends on the batch"
    return Started(fleet, f"{fleet.servers[0].software} {version}, {count}", version, why)


def start_vllm(request: Request) -> Started:
    """Starts vLLM in this process, with weights of its own."""
    from r1lite.rollout.vllm_engine import Start, VLLMEngine
    from r1lite.rollout.vllm_sizes import need, of_trainer, share

    config = request.config
    vllm = required("--engine vllm", untested=config.engine_untested)
    cuda = config.device.startswith("cuda")
    wanted = need(
        request.model.config,
        parameter_count(request.model),
        bytes_per_value=request.dtype.itemsize,
        rows=config.rollout_rows,
        tokens=request.context,
    )
    memory = None
    if cuda:
        total = torch.cuda.get_device_properties(config.device).total_memory
        weights = sum(p.nbytes + scale_bytes(p) for p in request.model.parameters())
        trainer = of_trainer(config, weights, wanted.parameters)
        memory = share(wanted, total, trainer=trainer, asked=config.engine_memory, sleep=config.engine_sleep)
    assert config.threads is not None
    request.say("starting vLLM ...")
    rank = getattr(config, "lora_rank", 0)
    settings = Start(
        model=request.model_path,
        dtype=request.dtype,
        device=config.device,
        context=request.context,
        rows=config.rollout_rows,
        threads=config.threads,
        cache_gib=1 if cuda else min(wanted.cache_gib, max(1, int(_GREATEST_CACHE_SHARE * _free_gib()))),
        memory=None if memory is None else memory.memory,
        sleeps=memory is not None and memory.sleeps,
        eager=config.engine_eager,
        batch_invariant=config.engine_batch_invariant,
        lora_rank=rank,
        no_adapters=no_adapters(vllm, rank),
        architectures=tuple(getattr(request.model.config, "architectures", None) or [type(request.model).__name__]),
    )
    eos = eos_ids(request.model, request.tokenizer)
    before = torch.cuda.memory_allocated(config.device) if cuda else 0
    engine = VLLMEngine(vllm, request.tokenizer, eos, settings, file_layout(request.model))
    held = torch.cuda.memory_allocated(config.device) - before if cuda else 0
    where = "" if memory is None else f", {memory.memory:.0%} of the GPU{', asleep during training' * memory.sleeps}"
    why = "yes"
    if cuda and not config.engine_batch_invariant:
        why = "CUDA kernels round by the contents of the batch; --engine-batch-invariant avoids that"
    line = f"vLLM {vllm.version} ({vllm.distribution}) in this process{where}"
    return Started(engine, line, vllm.version, why, held=held, sleeps=settings.sleeps)


def _free_gib() -> float:
    import psutil

    return float(psutil.virtual_memory().available) / (1 << 30)
