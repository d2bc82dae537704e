"""Checks of one engine in one precision: completions, log-probabilities, new weights, sleep."""

from __future__ import annotations

import contextlib
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from r1lite.errors import UserError
from r1lite.rollout import EngineError, Sampling
from r1lite.rollout.build import Started
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_support import installed
from r1lite.selftest import Options, Result
from r1lite.selftest.subject import TOKENS, Subject, subject
from r1lite.training.setup import open_engine
from verifiers import Completion

_GROUP = 4
_CHANGE = 0.02  # relative to a weight's standard deviation
_LOSS_CHANGES = (0.02, 0.1, 0.5)  # changes of the omitted layer, increasing until the check must notice
_STOP_S = 20.0

Groups = list[list[Completion]]


def check(options: Options, engine: str, dtype: str) -> Iterator[Result]:
    """Checks sampling, log-probabilities, weight updates, and sleep if the engine supports it."""
    name = f"{engine} {dtype}"
    if engine != "transformers" and installed() is None:
        yield Result(name, "skipped", "vLLM is not installed")
        return
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(_server(options, dtype)) if engine == "vllm-server" else None
        asked = ["--engine", engine, "--dtype", dtype, *(["--engine-url", url] if url else [])]
        asked += ["--engine-sleep"] if engine == "vllm" else []  # a small model stays awake otherwise
        try:
            tested = subject(options, *asked)
            trusted, started = open_engine(tested.config, tested.model, tested.tokenizer)
        except UserError as error:
            yield Result(name, "failed", str(error))
            return
        stack.callback(trusted.close)
        yield from _sampling(name, tested, trusted, started)
        yield from _weights(name, tested, trusted)
        yield from _sleep(name, tested, trusted)


def _sampling(name: str, tested: Subject, trusted: TrustedEngine, started: Started) -> Iterator[Result]:
    """Checks that seeds give the same completions again and alone, with the trainer's log-probabilities."""
    first = _sample(tested, trusted)  # the first call also compiles and fills caches
    began = time.perf_counter()
    again = _sample(tested, trusted)
    seconds = time.perf_counter() - began
    tokens = sum(len(completion.token_ids) for group in again for completion in group)
    alone = [_sample(tested, trusted, place)[0] for place in range(len(tested.prompts))]
    same, same_alone = _ids(first) == _ids(again), _ids(again) == _ids(alone)
    figures = {
        "engine": started.line,
        "start_s": started.start_s,
        "tokens_per_s": tokens / seconds,
        "same_again": same,
        "same_alone": same_alone,
    }
    text = f"{started.line}: {tokens / seconds:,.0f} tokens/s of {len(again) * _GROUP} completions at once"
    if not same and started.reproducible == "yes":
        yield Result(f"{name}: sampling", "failed", f"{text}; the same request gives different completions", figures)
    elif not same:
        yield Result(
            f"{name}: sampling",
            "note",
            f"{text}; equal seeds give different completions: {started.reproducible}",
            figures,
        )
    elif not same_alone:
        why = "rounding depends on the batch, so a prompt alone gives different completions"
        yield Result(f"{name}: sampling", "note", f"{text}; reproducible, but {why}", figures)
    else:
        yield Result(f"{name}: sampling", "ok", f"{text}; reproducible, also for a prompt alone", figures)
    worst, mean, limit = _distance(tested, trusted, again)
    yield Result(
        f"{name}: log-probabilities",
        "ok" if worst <= limit else "failed",
        f"engine and trainer differ by at most {worst:.2g} nats per token, {mean:.2g} on average (limit {limit:g})",
        {"largest_nats": worst, "mean_nats": mean, "limit_nats": limit},
    )


def _weights(name: str, tested: Subject, trusted: TrustedEngine) -> Iterator[Result]:
    """Checks that changed weights arrive and that an omitted layer is noticed."""
    before = _sample(tested, trusted)
    _change(tested.model, _CHANGE, seed=1)
    trusted.offer(lambda: tested.model.state_dict().items(), version=1)
    began = time.perf_counter()
    try:
        trusted.push([list(prompt.token_ids) for prompt in tested.prompts])
    except EngineError as error:
        yield Result(f"{name}: new weights", "failed", str(error))
        return
    seconds = time.perf_counter() - began
    measured = trusted.take_metrics()
    size = sum(weight.numel() for weight in tested.model.state_dict().values()) * (4 if "32" in name else 2)
    changed = _ids(_sample(tested, trusted)) != _ids(before)
    shared = trusted.shares_weights
    text = "shared with the trainer" if shared else f"{size / 2**20:,.0f} MiB in {measured['sync_s']:.2f} s"
    yield Result(
        f"{name}: new weights",
        "ok" if changed else "failed",
        text if changed else f"{text}, but the completions are still those of the old weights",
        {"bytes": size, "sync_s": measured.get("sync_s"), "push_s": seconds},
    )
    if not shared:
        yield _loss(name, tested, trusted)


def _loss(name: str, tested: Subject, trusted: TrustedEngine) -> Result:
    """Changes a layer and omits it from the update, with growing changes, until the check notices."""
    layers = sorted({_layer(key) for key in tested.model.state_dict() if _layer(key)})
    lost = layers[len(layers) // 2] + "."
    prompts = [list(prompt.token_ids) for prompt in tested.prompts]
    for version, change in enumerate(_LOSS_CHANGES, start=2):
        _change(tested.model, change, seed=version, only=lost)
        weights = {key: value for key, value in tested.model.state_dict().items() if not key.startswith(lost)}
        trusted.offer(weights.items, version=version)
        try:
            trusted.push(prompts)
        except EngineError as error:
            trusted.offer(lambda: tested.model.state_dict().items(), version=version)
            trusted.push(prompts)  # a complete update, for the next checks
            return Result(
                f"{name}: a lost layer",
                "ok",
                f"noticed at a change of {change:.0%} of its standard deviation",
                {"change": change, "message": str(error)},
            )
    return Result(
        f"{name}: a lost layer",
        "failed",
        f"{lost[:-1]} was omitted from an update that changed it by {_LOSS_CHANGES[-1]:.0%}, and no check noticed",
    )


def _sleep(name: str, tested: Subject, trusted: TrustedEngine) -> Iterator[Result]:
    import torch

    if trusted.shares_weights or trusted.runs_aside:
        return
    if not tested.config.device.startswith("cuda"):
        yield Result(f"{name}: sleep", "skipped", "vLLM only sleeps on CUDA")
        return
    awake = torch.cuda.mem_get_info()[0]
    before = _sample(tested, trusted)
    trusted.sleep()
    freed = torch.cuda.mem_get_info()[0] - awake
    trusted.offer(lambda: tested.model.state_dict().items(), version=10)
    same = _ids(_sample(tested, trusted)) == _ids(before)
    figures = {"freed_bytes": freed, "same_after": same}
    if freed <= 0:
        yield Result(f"{name}: sleep", "failed", "no memory was freed", figures)
    else:
        after = "" if same else "; completions differ afterwards, within rounding"
        yield Result(f"{name}: sleep", "ok" if same else "note", f"{freed / 2**30:.1f} GiB freed{after}", figures)


def _sample(tested: Subject, trusted: TrustedEngine, prompt: int | None = None) -> Groups:
    """Samples completions [P][G] of all prompts, or [1][G] of one."""
    numbers = range(len(tested.prompts)) if prompt is None else [prompt]
    prompts = [list(tested.prompts[p].token_ids) for p in numbers]
    seeds = [[1000 * p + g for g in range(_GROUP)] for p in numbers]
    return trusted.generate(prompts, seeds, Sampling(1.0, TOKENS, tested.config.stop_text))


def _ids(groups: Groups) -> list[list[tuple[int, ...]]]:
    return [[completion.token_ids for completion in group] for group in groups]


def _distance(tested: Subject, trusted: TrustedEngine, groups: Groups) -> tuple[float, float, float]:
    """Returns (largest, mean, limit) of the differences of log-probabilities, in nats."""
    from r1lite.model.policy import Policy
    from r1lite.rollout.canary import TOLERANCE, trainer_logprobs
    from r1lite.training.loading import forward_dtype

    policy = Policy(tested.model, pad_id=trusted.pad_id, temperature=1.0, dtype=forward_dtype(tested.config))
    prompts = [list(prompt.token_ids) for prompt in tested.prompts for _ in range(_GROUP)]
    flat = [completion for group in groups for completion in group]
    expected = trainer_logprobs(policy, prompts, flat)
    gaps = [
        abs(ours - theirs)
        for row, completion in zip(expected, flat, strict=True)
        for ours, theirs in zip(row, completion.logprobs, strict=True)
    ]
    return max(gaps), statistics.fmean(gaps), TOLERANCE[policy.dtype]


def _change(model: Any, share: float, *, seed: int, only: str = "") -> None:
    """Adds noise to each weight, `share` times its standard deviation."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.startswith(only) and weight.dim() > 1:
                noise = torch.randn(weight.shape, generator=generator)
                weight.add_((share * weight.std().cpu() * noise).to(weight))


def _layer(name: str) -> str:
    """Returns "model.layers.3" for "model.layers.3.mlp.up_proj.weight"; "" for a weight outside of the layers."""
    parts = name.split(".")
    number = next((n for n, part in enumerate(parts) if part.isdecimal()), None)
    return "" if number is None else ".".join(parts[: number + 1])


@contextlib.contextmanager
def _server(options: Options, dtype: str) -> Iterator[str]:
    """Starts `r1lite serve-engine` on a free port of this machine; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ["--model", options.model, "--port", str(port), "--dtype", dtype, "--eager"]
    if options.device != "auto":
        arguments += ["--device", options.device]
    if options.threads is not None:
        arguments += ["--threads", str(options.threads)]
    if options.untested:
        arguments.append("--untested")
    # In the group of this process, so that it ends too if this process is killed at its time limit.
    process = subprocess.Popen([sys.executable, "-m", "r1lite", "serve-engine", *arguments], stdout=sys.stderr)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
