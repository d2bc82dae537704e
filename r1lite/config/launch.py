"""Settings of `r1lite launch`."""

from __future__ import annotations

import shlex
from typing import ClassVar

from pydantic import Field, field_validator, model_validator

from r1lite.config.base import Section
from verifiers.on_ray import address_of


class LaunchConfig(Section):
    """Start the ranks of a stage and the vLLM servers that it samples from, supervise them, and stop them together.

    Write the stage's command after --, as after r1lite:
    r1lite launch --ranks 2 --engines 2 -- grpo gsm8k-nano --steps 4
    """

    stage: ClassVar[str] = "launch"

    on: str = "local"
    """Where to start the processes: local (this machine), slurm (through a batch script in the run directory), ray (the
    cluster of RAY_ADDRESS or of this machine), ray:HOST:PORT or ray://HOST:PORT."""
    ranks: int = Field(1, ge=1, le=100_000)
    """Number of training processes, each with its own GPU."""
    engines: int = Field(0, ge=0, le=100_000)
    """Number of servers to sample from; 0: the ranks sample themselves."""
    tensor_parallel: int = Field(1, ge=1, le=64)
    """GPUs per engine, all on one node."""
    nodes: int = Field(1, ge=1, le=100_000)
    """Number of machines; on Ray, the number that the layout is planned for."""
    gpus_per_node: int | None = Field(None, ge=0, le=64)
    """GPUs per node; 0: run on CPUs. With --on local the default is the number of this machine's GPUs."""
    cpus: int | None = Field(None, ge=1, le=512)
    """CPU threads of each rank and each engine, reserved by Slurm or Ray. By default 8; with --on local OMP_NUM_THREADS
    if it is set, otherwise this machine's cores are divided among the processes, at most 8 each."""
    restarts: int = Field(0, ge=0)
    """Total number of restarts: a failed engine restarts alone; the ranks restart together from the newest checkpoint.
    After that, a failure stops all processes. On Slurm: how often the whole job is requeued."""
    engine_command: str | None = None
    """Command that starts an engine, instead of r1lite serve-engine; {host} and {port} are filled in. The engine must
    require the token in its environment variable R1LITE_ENGINE_TOKEN."""
    dry_run: bool = False
    """Print the layout, memory estimates and commands without starting anything."""
    submit: bool = False
    """With --on slurm: submit the batch script with sbatch."""
    verbose: bool = False
    """Show the engines' output too."""

    @field_validator("engine_command")
    @classmethod
    def _has_words(cls, value: str | None) -> str | None:
        try:
            if value is None or shlex.split(value):
                return value
        except ValueError as error:
            raise ValueError(f"--engine-command: {error}") from error
        raise ValueError("--engine-command is empty")

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
            raise ValueError(f"--on {self.on} needs --gpus-per-node, the GPUs of each of the cluster's nodes (0: CPUs)")
        if self.submit and self.on != "slurm":
            raise ValueError("--submit is for --on slurm")
        if not self.engines and (self.tensor_parallel > 1 or self.engine_command or self.verbose):
            raise ValueError("--tensor-parallel, --engine-command and --verbose need --engines N")
        if self.verbose and self.on == "slurm":
            raise ValueError("--verbose shows nothing with --on slurm: each process has a log of its own")
        return self
