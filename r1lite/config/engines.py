"""Engines by name, with what they can do. Packages add others by an entry point in the group `r1lite.engines`."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GROUP = "r1lite.engines"


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """An engine that `--engine NAME` names; an entry point refers to one of these."""

    start: str  # "module:function", (r1lite.rollout.build.Request) -> r1lite.rollout.build.Started
    shares_weights: bool = False  # it samples with the trainer's own model, so nothing is ever off policy by its doing
    runs_aside: bool = False  # outside the trainer's process and device: it can sample while the trainer learns
    takes_urls: bool = False  # it is reached by --engine-url

    def starter(self) -> Callable[[Any], Any]:
        """The function behind `start`."""
        module, _, name = self.start.partition(":")
        function: Callable[[Any], Any] = getattr(importlib.import_module(module), name)
        return function


BUILTIN = {
    "transformers": EngineSpec("r1lite.rollout.build:start_transformers", shares_weights=True),
    "vllm": EngineSpec("r1lite.rollout.build:start_vllm"),
    "vllm-server": EngineSpec("r1lite.rollout.build:start_vllm_servers", runs_aside=True, takes_urls=True),
    "sglang-server": EngineSpec("r1lite.rollout.build:start_sglang_servers", runs_aside=True, takes_urls=True),
}


@functools.cache
def _installed() -> dict[str, importlib.metadata.EntryPoint]:
    return {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}


def engine_names() -> list[str]:
    """Every engine that can be named."""
    return [*BUILTIN, *(name for name in sorted(_installed()) if name not in BUILTIN)]


def find_engine(name: str) -> EngineSpec:
    """The engine of this name. Raises ValueError if there is none, or if its entry point refers to something else."""
    if name in BUILTIN:
        return BUILTIN[name]
    if name not in _installed():
        raise ValueError(f"--engine {name}: unknown; known: auto, {', '.join(engine_names())}")
    spec = _installed()[name].load()
    if not isinstance(spec, EngineSpec):
        raise ValueError(f"--engine {name}: its entry point must be an EngineSpec, not {type(spec).__name__}")
    return spec
