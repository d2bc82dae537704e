"""Settings of `r1lite serve-engine`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from r1lite.config.base import Section


class ServeEngineConfig(Section):
    """Start a vLLM server that a run of --engine vllm-server samples from: it takes new weights after every step.

    Whoever may call it can replace its weights. With R1LITE_ENGINE_TOKEN in its environment every call needs that
    token; a --host that other machines reach needs one. Nothing is encrypted: use a network of your own.
    """

    stage: ClassVar[str] = "serve-engine"

    model: str = "nano"
    """Hugging Face id or path of the model that is trained (its first weights don't matter), or nano."""
    host: str = "127.0.0.1"
    """Address to listen on; one that other machines reach needs R1LITE_ENGINE_TOKEN."""
    port: int = Field(8100, ge=1, le=65535)
    """Port to listen on."""
    device: str = "auto"
    """auto, cpu, cuda, or cuda:N for one of several GPUs."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision, the same as the run's. auto: float32 on CPU, bfloat16 on CUDA."""
    context: int | None = Field(None, ge=2)
    """Tokens of the longest prompt and completion together; by default 2048, or the model's context if that is less."""
    rows: int = Field(128, ge=1)
    """Completions sampled at once."""
    threads: int | None = Field(None, ge=1, le=512)
    """CPU threads; by default one per available core, at most 8."""
    tensor_parallel: int = Field(1, ge=1)
    """GPUs that share one copy of the model."""
    memory: float = Field(0.9, gt=0, lt=1)
    """Share of a GPU's memory that vLLM takes."""
    eager: bool = False
    """No CUDA graphs: it starts a minute sooner and samples more slowly."""
    batch_invariant: bool = False
    """On CUDA, kernels that give the same completion whatever else is in the batch; slower."""
    lora_rank: int = Field(0, ge=0, le=512)
    """Take adapters of this rank or less by themselves, for runs with --lora-rank; 0: complete weights only."""
    weight_transport: Literal["file", "gloo", "nccl", "ipc"] = "file"
    """How weights come, the same as the run's. gloo: over the network, on CPUs; nccl, ipc: on GPUs, never tried; with
    ipc the server unpickles what the run sends."""
    untested: bool = False
    """Use a vLLM version that this was not tested with."""
