"""What a tracker is: where a run's numbers go beside its directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class About:
    """The run that is told of."""

    id: str  # the same each time it is resumed
    name: str
    project: str
    stage: str
    path: Path  # its directory
    config: Mapping[str, Any]
    last_step: int | None  # the last one that was sent before, as the run directory knows; None = none


class Tracker(Protocol):
    """One place that takes a run's numbers. It is made without arguments, and called from one thread of its own.

    What it raises is told once, and ends it; a run neither stops nor waits for it.
    """

    def start(self, about: About) -> int | None:
        """Begins the run there, or goes on with it.

        Returns: the last step that it holds already, which is not sent again; None if only the run directory knows.
        """

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """The numbers of a step, by name ("reward", "parts/math", "reasons/math/equal", "test/pass_at_1")."""

    def table(self, step: int, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Sampled completions of a step with their verdicts. What they say is data from a model."""

    def finish(self, summary: Mapping[str, float], findings: Sequence[str]) -> None:
        """Ends what was begun. `summary`: numbers of the outcome; empty if the run stopped before its end."""
