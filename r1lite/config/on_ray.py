"""What is done on a Ray cluster."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from r1lite.config.engines import find_engine
from r1lite.config.problems import ProblemsConfig, checked_place
from verifiers.on_ray import Resources


class OnRayConfig(ProblemsConfig):
    """Stages whose work can be spread over the nodes of a Ray cluster."""

    stage: ClassVar[str]

    on: str = "local"
    """Where the work is done: local, or on a Ray cluster: ray (that of RAY_ADDRESS or of this machine, or one that is
    started here), ray:HOST:PORT or ray://HOST:PORT. The result is the same. All nodes must see the --out of a set."""
    engine_actors: int | None = Field(None, ge=1)
    """With --on ray: engines that sample, each with --threads CPUs, or with a GPU (--device cuda); by default as many
    as fit into what is free. Engines that are servers are asked from here."""

    @field_validator("on")
    @classmethod
    def _is_somewhere(cls, value: str) -> str:
        return checked_place("on", value)

    @property
    def engines_on_ray(self) -> bool:
        """True if engines of actors sample, and none of this process."""
        at_servers = self.engine_url if self.engine == "auto" else find_engine(self.engine).runs_aside
        return self.on != "local" and not at_servers

    @property
    def engines(self) -> Resources:
        """Those that hold an engine."""
        return Resources(self.engine_actors, self.threads or 1, int(self.device.startswith("cuda")))
