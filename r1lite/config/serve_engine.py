"""Settings of `r1lite serve-engine`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from r1lite.config.base import Section


class ServeEngineConfig(Section):
    """Start a vLLM server for runs with --engine vllm-server. The server takes new weights after every step.

    Every client can replace the server's weights. If R1LITE_ENGINE_TOKEN is set in the server's environment, every
    call needs that token; a --host that other machines can reach requires it. Traffic is not encrypted: use a private
    network.
    """

    stage: ClassVar[str] = "serve-engine"

    model: str = "nano"
    """Hugging Face id or path of the model that is trained, or nano. The run replaces the initial weights."""
    host: str = "127.0.0.1"
    """Address to listen on; an address that other machines can reach requires R1LITE_ENGINE_TOKEN."""
    port: int = Field(8100, ge=1, le=65535)
    """Port to listen on."""
    device: str = "auto"
    """Device: auto, cpu, cuda, or cuda:N for one of several GPUs."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision; use the run's. auto: float32 on CPU, bfloat16 on CUDA."""
    context: int | None = Field(None, ge=2)
    """Largest number of tokens of prompt plus completion; by default 2048, or the model's context if smaller."""
    rows: int = Field(128, ge=1)
    """Completions sampled at the same time."""
    threads: int | None = Field(None, ge=1, le=512)
    """CPU threads; by default OMP_NUM_THREADS if it is set, otherwise one per available core, at most 8."""
    tensor_parallel: int = Field(1, ge=1)
    """GPUs that share one copy of the model."""
    memory: float = Field(0.9, gt=0, lt=1)
    """Share of the GPU's memory that vLLM uses."""
    eager: bool = False
    """Disable CUDA graphs: the server starts about a minute sooner and samples more slowly."""
    batch_invariant: bool = False
    """On CUDA, use batch-invariant kernels: a completion doesn't depend on the rest of its batch. Slower."""
    lora_rank: int = Field(0, ge=0, le=512)
    """Accept LoRA adapters up to this rank without the base weights, for runs with --lora-rank; 0: complete weights
    only."""
    weight_transport: Literal["file", "gloo", "nccl", "ipc"] = "file"
    """How the server receives weights; use the run's value. gloo: over the network, on CPUs; nccl, ipc: on GPUs, not
    tested. With ipc the server unpickles data that the run sends."""
    untested: bool = False
    """Allow vLLM versions that r1lite was not tested with."""
