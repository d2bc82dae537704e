"""Settings of `r1lite launch`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator, model_validator

from r1lite.config.base import Section
from verifiers.on_ray import address_of


class LaunchConfig(Section):
    """Start a stage's ranks and the vLLM servers that it samples from, watch over them, and end them together.

    What is launched follows after --, as it would be typed after r1lite:
    r1lite launch --ranks 2 --engines 2 -- grpo gsm8k-nano --steps 4
    """

    stage: ClassVar[str] = "launch"

    on: str = "local"
    """Where: local, this machine; slurm, by a batch script in the run directory; ray (the cluster of RAY_ADDRESS or of
    this machine), ray:HOST:PORT or ray://HOST:PORT."""
    ranks: int = Field(1, ge=1, le=100_000)
    """Processes that train, a GPU each."""
    engines: int = Field(0, ge=0, le=100_000)
    """Servers to sample from; 0: the ranks sample by themselves."""
    tensor_parallel: int = Field(1, ge=1, le=64)
    """GPUs of each engine, all on one node."""
    nodes: int = Field(1, ge=1, le=100_000)
    """Machines; on Ray those that the layout is made for."""
    gpus_per_node: int | None = Field(None, ge=0, le=64)
    """GPUs of each node; 0: everything runs on CPUs. By default those of this machine, with --on local."""
    cpus: int | None = Field(None, ge=1, le=512)
    """CPU threads of each rank and engine, which Slurm or Ray sets aside. By default 8; with --on local this machine's
    cores are divided among them, at most 8 each."""
    restarts: int = Field(0, ge=0)
    """How often a process that ended is started again, in all: an engine alone, the ranks together from the newest
    checkpoint. After that, what ends one process ends all. On Slurm: how often the whole job is queued again."""
    engine_command: str | None = None
    """Command that starts an engine in place of r1lite serve-engine; {host} and {port} are filled in, and
    R1LITE_ENGINE_TOKEN of its environment is the token that it must ask for."""
    dry_run: bool = False
    """Show layout, memory and commands; nothing is started."""
    submit: bool = False
    """With --on slurm: hand the batch script to sbatch."""
    verbose: bool = False
    """Show what the engines write, too."""

    @field_validator("on")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        if value not in ("local", "slurm"):
            try:
                address_of(value)
            except ValueError as error:
                raise ValueError(f"--on {error}, local or slurm") from error
        return value

    @model_validator(mode="after")
    def _fits_its_place(self) -> LaunchConfig:
        if self.on == "local" and self.nodes > 1:
            raise ValueError(f"--nodes {self.nodes} with --on local: this machine is one node")
        if self.on != "local" and self.gpus_per_node is None:
            raise ValueError(f"--on {self.on} needs --gpus-per-node, since its nodes are others than this one; 0: CPUs")
        if self.submit and self.on != "slurm":
            raise ValueError("--submit is for --on slurm")
        if not self.engines and (self.tensor_parallel > 1 or self.engine_command):
            raise ValueError("--tensor-parallel and --engine-command are about engines: say --engines N")
        return self
