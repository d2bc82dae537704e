"""`r1lite selftest`: does everything that a run needs work on this machine, and do its parts agree?

Each group of checks runs in a process of its own, so that one that hangs or crashes costs its own line alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["ok", "note", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Result:
    """What one check found."""

    name: str
    state: State  # note: it works, with something to know
    text: str
    figures: Mapping[str, Any] = field(default_factory=dict)  # for the JSON file; units stand in the names


@dataclass(frozen=True, slots=True)
class Options:
    """What is tested."""

    model: str = "nano"
    device: str = "auto"
    attn_implementation: str = "auto"
    template: str | None = None  # None: as a run of this model takes it
    threads: int | None = None
    untested: bool = False  # allow a vLLM version that this was not tested with
