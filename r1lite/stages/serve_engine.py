"""`r1lite serve-engine`: starts a vLLM server with the settings that a run needs."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from r1lite.config.serve_engine import ServeEngineConfig
from r1lite.errors import UserError, first_line
from r1lite.hub.loading import empty_model, load_shape
from r1lite.hub.revisions import split
from r1lite.nano import model_place
from r1lite.rollout.server import TOKEN
from r1lite.rollout.vllm_plugin import backend
from r1lite.rollout.vllm_sizes import need
from r1lite.rollout.vllm_support import WORKER, adapter_settings, environment, no_adapters, no_transport, required
from r1lite.rollout.vllm_token import GUARD
from r1lite.training.machine import default_threads, gpu_names
from verifiers.server.loopback import is_loopback

_CONTEXT = 2048


def run(config: ServeEngineConfig) -> None:
    """Replaces this process with the server; does not return.

    Raises:
        UserError: there is no usable vLLM, no such model or device, or no token although other machines may call.
    """
    arguments, variables = command(config)
    shown = f"http://{config.host}:{config.port}"
    same = "" if config.weight_transport == "file" else f" --weight-transport {config.weight_transport}"
    print(f"serving {config.model} at {shown}; train with: --engine vllm-server --engine-url {shown}{same}", flush=True)
    os.execve(sys.executable, [sys.executable, *arguments], {**os.environ, **variables})


def command(config: ServeEngineConfig) -> tuple[list[str], dict[str, str]]:
    """Returns (arguments of python, environment variables) that start the server."""
    import torch

    token = os.environ.get(TOKEN)
    if not token and not is_loopback(config.host):
        raise UserError(
            f"--host {config.host} is reachable from other machines, and every caller could replace the weights: set "
            f"{TOKEN} to a long random token, in the environment of this command and of the run"
        )
    found = required("r1lite serve-engine", untested=config.untested)
    if config.lora_rank and (why := no_adapters(found, config.lora_rank)):
        raise UserError(f"--lora-rank {config.lora_rank}: {why}; without it the server receives merged weights")
    cuda = torch.cuda.is_available() if config.device == "auto" else config.device.startswith("cuda")
    if cuda and not torch.cuda.is_available():
        raise UserError(f"--device {config.device}: torch {torch.__version__} finds no CUDA device; try --device cpu")
    place = model_place(config.model)
    known, parameters = _architecture(config.model, place)
    longest = getattr(known, "max_position_embeddings", None) or _CONTEXT
    context = config.context or min(_CONTEXT, longest)
    if context > longest:
        raise UserError(f"--context {context}: the model's context is {longest}")
    dtype = config.dtype if config.dtype != "auto" else ("bfloat16" if cuda else "float32")
    size = need(known, parameters, bytes_per_value=getattr(torch, dtype).itemsize, rows=config.rows, tokens=context)
    variables = environment(
        threads=config.threads or default_threads(),
        cache_gib=size.cache_gib,
        cuda=cuda,
        batch_invariant=config.batch_invariant,
        float32=dtype == "float32",
    )
    variables["VLLM_SERVER_DEV_MODE"] = "1"  # enables the calls that update weights
    if found.stamps_completions and variables.get("VLLM_CPU_OMP_THREADS_BIND") == "nobind":
        # The scheduler's process computes too. vLLM's default is a process for each, because it binds threads at the
        # start of the second one.
        variables["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    transport = config.weight_transport
    if why := no_transport(found, transport, cuda=cuda):
        raise UserError(f"--weight-transport {transport}: {why}")
    if transport == "ipc":
        variables["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # vLLM's handles are pickled
    repository, revision = split(place)
    arguments = [
        *("-m", "vllm.entrypoints.openai.api_server"),  # `vllm serve` does not work with the CPU distribution
        *("--model", repository, *(["--revision", revision, "--tokenizer-revision", revision] if revision else [])),
        *("--served-model-name", "policy", "--host", config.host, "--port", str(config.port)),
        *("--dtype", dtype, "--max-model-len", str(context), "--max-num-seqs", str(config.rows), "--seed", "0"),
        *("--logprobs-mode", "processed_logprobs", "--generation-config", "vllm", "--enable-prefix-caching"),
        *("--api-server-count", "1"),  # one process counts tokens; a run uses this count as a sign of life
    ]
    if token:
        arguments += ["--middleware", GUARD]
    if adapters := adapter_settings(config.lora_rank):
        variables["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "1"
        settings = {name: value for name, value in adapters.items() if name != "enable_lora"}
        arguments += ["--enable-lora"]
        arguments += [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    if transport != "file":
        arguments += ["--weight-transfer-config", json.dumps({"backend": backend(transport)})]
    if transport != "file" or not cuda:
        arguments += ["--worker-extension-cls", WORKER]
    if config.eager or not cuda:
        arguments.append("--enforce-eager")
    if cuda:
        if config.device.startswith("cuda:"):
            number = config.device.removeprefix("cuda:")
            if not number.isdecimal():
                raise UserError(f"--device {config.device}: unknown; use auto, cpu, cuda or cuda:N")
            variables["CUDA_VISIBLE_DEVICES"] = gpu_names(1 + int(number), f"--device {config.device}")[-1]
        arguments += [
            *("--gpu-memory-utilization", str(config.memory)),
            *("--tensor-parallel-size", str(config.tensor_parallel)),
        ]
    else:
        # After part of a prompt, vLLM's CPU runner rewinds the generator of a request; CPU generators can't.
        arguments += ["--no-enable-chunked-prefill", "--max-num-batched-tokens", str(max(context, 4096))]
    return arguments, variables


def _architecture(name: str, address: str) -> tuple[Any, int]:
    """Returns (configuration, number of parameters) of a model, without its weights. Raises UserError."""
    try:
        known: Any = load_shape(address)
        model = empty_model(known)
    except Exception as error:  # the library passes on any error of its transport and its models
        raise UserError(f"--model {name}: can't be read: {first_line(error, type(error).__name__)}") from error
    return known, sum(p.numel() for p in model.parameters())
