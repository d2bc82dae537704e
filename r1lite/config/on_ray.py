"""Settings of stages that can run on a Ray cluster."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from r1lite.config.engines import find_engine
from r1lite.config.problems import ProblemsConfig, checked_place
from verifiers.on_ray import Resources


class OnRayConfig(ProblemsConfig):
    """Settings of stages whose work can be spread over the nodes of a Ray cluster."""

    stage: ClassVar[str]

    on: str = "local"
    """Where the work is done: local, or a Ray cluster: ray (that of RAY_ADDRESS or of this machine, or one started
    here), ray:HOST:PORT or ray://HOST:PORT. The result is the same. For data sets, all nodes must see --out."""
    engine_actors: int | None = Field(None, ge=1)
    """With --on ray: number of engine actors, each with --threads CPUs, or with a GPU (--device cuda); by default as
    many as the free resources allow. Engine servers are called from this process."""

    @field_validator("on")
    @classmethod
    def _is_somewhere(cls, value: str) -> str:
        return checked_place("on", value)

    @property
    def engines_on_ray(self) -> bool:
        """True if the engines are Ray actors, and this process has none."""
        at_servers = self.engine_url if self.engine == "auto" else find_engine(self.engine).runs_aside
        return self.on != "local" and not at_servers

    @property
    def engines(self) -> Resources:
        """The actors that hold an engine."""
        return Resources(self.engine_actors, self.threads or 1, int(self.device.startswith("cuda")))
