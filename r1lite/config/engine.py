"""Who samples the completions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from r1lite.config.base import RunConfig
from r1lite.config.engines import find_engine


class EngineConfig(RunConfig):
    """The engine that samples, and how it is reached."""

    engine: str = "auto"
    """transformers samples with the trainer's own model; vllm in this process with weights of its own; vllm-server by
    servers of `r1lite serve-engine`; sglang-server by SGLang's (never tried with a real one). auto: vllm with CUDA
    where it is installed and fits, else transformers. Installed packages can add engines."""
    engine_url: tuple[str, ...] = ()
    """Address of a server, such as http://127.0.0.1:8100; repeat it for several."""
    engine_untested: bool = False
    """Use a version of vLLM or SGLang that this was not tested with."""
    engine_timeout_s: float = Field(600.0, gt=0)
    """Seconds that a server may take for one group or one weight update, and that a run waits for a dead one."""
    engine_stall_s: float = Field(30.0, ge=0)
    """Seconds without a new token after which a server is set aside and its groups go to another; five times the
    usual wait for a token where that is longer. With no other server the run ends after as long again. 0: never."""
    weight_transport: Literal["file", "gloo", "nccl", "ipc"] = "file"
    """How vLLM servers get weights, which are started with the same: file, in a folder that they see too; gloo, over
    the network; nccl and ipc, between GPUs and on one GPU (never tried)."""
    weight_delta: bool = True
    """With --weight-transport gloo: only values that changed go over, where these are fewer bytes."""
    engine_weights_dir: str | None = None
    """Folder that trainer and servers share, for weights; by default this machine's shared memory."""
    engine_memory: float | None = Field(None, gt=0, lt=1)
    """Share of the GPU's memory for vLLM in this process; by default from the sizes of model and completions."""
    engine_eager: bool = False
    """No CUDA graphs: vLLM starts a minute sooner and samples more slowly."""
    engine_batch_invariant: bool = False
    """On CUDA, vLLM's kernels that give the same completion whatever else is in the batch; slower."""
    cuda_graphs: bool = False
    """With --engine transformers on a GPU: decode by CUDA graphs, which launch a step's kernels at once (never tried on
    a GPU)."""
    rollout_rows: int = Field(128, ge=1)
    """Completions sampled at once by transformers, and by vLLM in this process."""

    @model_validator(mode="after")
    def _urls_are_for_servers(self) -> EngineConfig:
        if self.weight_transport != "file" and self.engine != "vllm-server":
            raise ValueError(f"--weight-transport {self.weight_transport} is for --engine vllm-server")
        if self.cuda_graphs and self.engine not in ("auto", "transformers"):
            raise ValueError(f"--cuda-graphs is for --engine transformers, not for {self.engine}")
        if self.engine == "auto":
            return self
        takes_urls = find_engine(self.engine).takes_urls
        if takes_urls and not self.engine_url:
            raise ValueError(
                f"--engine {self.engine} needs --engine-url, the address of a server; `r1lite serve-engine` starts one "
                "for vllm-server"
            )
        if self.engine_url and not takes_urls:
            raise ValueError(f"--engine-url is for --engine vllm-server and sglang-server, not for {self.engine}")
        return self
