"""Settings of the engine that samples completions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from r1lite.config.base import RunConfig
from r1lite.config.engines import find_engine

# Settings that only some engines take, with the values of --engine beside which they can be set.
_TAKEN_BY = {
    "weight_transport": ("vllm-server",),
    "cuda_graphs": ("auto", "transformers"),
    "engine_sleep": ("auto", "vllm"),
}
# Settings that a run does not keep when it is resumed with another engine.
OF_ONE_ENGINE = frozenset({"engine_url", *_TAKEN_BY})


class EngineConfig(RunConfig):
    """Choice of the engine, and its connection settings."""

    engine: str = "auto"
    """Engine that samples completions. transformers: the trainer's own model; vllm: in this process, with its own copy
    of the weights; vllm-server: servers started by `r1lite serve-engine`; sglang-server: SGLang servers (not tested
    with a real one). auto: vllm if CUDA is available and vllm is installed and fits, otherwise transformers. Installed
    packages can add engines."""
    engine_url: tuple[str, ...] = ()
    """Address of an engine server, such as http://127.0.0.1:8100; repeat the flag for several servers."""
    engine_untested: bool = False
    """Allow versions of vLLM or SGLang that r1lite was not tested with."""
    engine_timeout_s: float = Field(600.0, gt=0)
    """Seconds that a server may take for one group or one weight update; also how long a run waits for a dead server
    to come back."""
    engine_stall_s: float = Field(30.0, ge=0)
    """Seconds without a new token after which a server counts as stalled and its groups move to another server; five
    times the usual wait for a token, if that is longer. If no other server is left, the run ends after the same time
    again. 0: never."""
    weight_transport: Literal["file", "gloo", "nccl", "ipc"] = "file"
    """How vLLM servers receive weights; start the servers with the same value. file: through a shared folder; gloo:
    over the network; nccl: between GPUs; ipc: within one GPU (nccl and ipc are not tested)."""
    weight_delta: bool = True
    """With --weight-transport gloo: send only the values that changed, if that takes fewer bytes."""
    engine_weights_dir: str | None = None
    """Folder through which trainer and servers share weights; by default this machine's shared memory."""
    engine_memory: float | None = Field(None, gt=0, lt=1)
    """Share of the GPU's memory for vLLM in this process; by default computed from the sizes of the model and the
    completions."""
    engine_sleep: bool = False
    """On CUDA, vLLM in this process frees its memory while the trainer works even if both fit."""
    engine_eager: bool = False
    """Disable vLLM's CUDA graphs: vLLM starts about a minute sooner and samples more slowly."""
    engine_batch_invariant: bool = False
    """On CUDA, use vLLM's batch-invariant kernels: a completion doesn't depend on the rest of its batch. Slower."""
    cuda_graphs: bool = False
    """With --engine transformers on a GPU: decode with CUDA graphs, which launch all kernels of a step at once (run
    once on an H200)."""
    rollout_rows: int = Field(128, ge=1)
    """Completions sampled at the same time by transformers, or by vLLM in this process."""

    @model_validator(mode="after")
    def _urls_are_for_servers(self) -> EngineConfig:
        for name, engines in _TAKEN_BY.items():
            value = getattr(self, name)
            if value != type(self).model_fields[name].default and self.engine not in engines:
                flag = f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}")
                raise ValueError(f"{flag} is for --engine {engines[-1]}, not for {self.engine}")
        if several := next((url for url in self.engine_url if "," in url or " " in url.strip()), None):
            raise ValueError(
                f"--engine-url {several!r} is no address of one server; repeat --engine-url for each server"
            )
        if self.engine == "auto":
            return self
        takes_urls = find_engine(self.engine).takes_urls
        if takes_urls and not self.engine_url:
            raise ValueError(
                f"--engine {self.engine} needs --engine-url, the address of a server; `r1lite serve-engine` starts a "
                "vLLM server"
            )
        if self.engine_url and not takes_urls:
            raise ValueError(f"--engine-url is for --engine vllm-server and sglang-server, not for {self.engine}")
        return self
