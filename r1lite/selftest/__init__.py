"""`r1lite selftest`: tests on this machine everything that a run needs, and whether its parts agree.

Each group of checks runs in its own process, so that a hang or crash only affects that group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["ok", "note", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one check."""

    name: str
    state: State  # note: works, with a remark
    text: str
    figures: Mapping[str, Any] = field(default_factory=dict)  # for the JSON file; the names include units


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a selftest."""

    model: str = "nano"
    device: str = "auto"
    attn_implementation: str = "auto"
    template: str | None = None  # None: the default of a run with this model
    threads: int | None = None
    untested: bool = False  # allow an untested vLLM version
