"""Engines by name, with their abilities. Packages add engines by entry points in the group `r1lite.engines`."""

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
    """An engine for `--engine NAME`; entry points refer to objects of this class."""

    start: str  # "module:function", (r1lite.rollout.build.Request) -> r1lite.rollout.build.Started
    shares_weights: bool = False  # samples with the trainer's own model, so the engine causes no off-policy tokens
    runs_aside: bool = False  # runs outside the trainer's process and device: can sample while the trainer learns
    takes_urls: bool = False  # is reached through --engine-url

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
    """Names of all engines: built-in ones first, then installed ones."""
    return [*BUILTIN, *(name for name in sorted(_installed()) if name not in BUILTIN)]


def find_engine(name: str) -> EngineSpec:
    """The engine of this name. Raises ValueError if the name is unknown or its entry point isn't an EngineSpec."""
    if name in BUILTIN:
        return BUILTIN[name]
    if name not in _installed():
        raise ValueError(f"--engine {name}: unknown; known: auto, {', '.join(engine_names())}")
    spec = _installed()[name].load()
    if not isinstance(spec, EngineSpec):
        raise ValueError(f"--engine {name}: its entry point must be an EngineSpec, not {type(spec).__name__}")
    return spec
