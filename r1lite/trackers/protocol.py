"""The protocol of trackers, which receive the metrics of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class About:
    """Description of a run for a tracker."""

    id: str  # does not change when the run is resumed
    name: str
    project: str
    stage: str
    path: Path  # its directory
    config: Mapping[str, Any]
    last_step: int | None  # last step sent before, by the run directory's records; None: none


class Tracker(Protocol):
    """A receiver of a run's metrics. It is created without arguments and called from its own thread.

    An exception is reported once and ends the tracker; the run neither stops nor waits.
    """

    def start(self, about: About) -> int | None:
        """Starts or continues the run in the tracker.

        Returns: the last step that the tracker already has; None if it can't tell: the run directory's records count.
        """

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Receives the metrics of a step by name ("reward", "parts/math", "reasons/math/equal", "test/pass_at_1")."""

    def table(self, step: int, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Receives sampled completions of a step with their verdicts. Their text is untrusted."""

    def finish(self, summary: Mapping[str, float], findings: Sequence[str]) -> None:
        """Finishes the run. `summary`: numbers of the result; empty if the run stopped before its end."""
