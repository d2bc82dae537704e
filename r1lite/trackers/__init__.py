"""Trackers: send a run's metrics, completions and findings to W&B, trackio, TensorBoard, MLflow or your own tracker.

All data is read from the run directory, so `r1lite log RUN --to NAME` can also send a finished run.
"""

from __future__ import annotations

import importlib.metadata
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from r1lite.errors import UserError


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


__all__ = ["GROUP", "TRACKERS", "About", "Tracker", "check", "find"]

GROUP = "r1lite.trackers"  # entry point group
# Name -> (module:class, library that it imports, package to install).
TRACKERS: dict[str, tuple[str, str, str]] = {
    "mlflow": ("r1lite.trackers.to_mlflow:MLflow", "mlflow", "r1lite[mlflow]"),
    "tensorboard": ("r1lite.trackers.to_tensorboard:TensorBoard", "tensorboard", "r1lite[tensorboard]"),
    "trackio": ("r1lite.trackers.to_trackio:Trackio", "trackio", "r1lite[trackio]"),
    "wandb": ("r1lite.trackers.to_wandb:WandB", "wandb", "r1lite[wandb]"),
}


def check(names: Sequence[str], option: str = "--log-to") -> None:
    """Raises UserError, which names the option, for a tracker that is unknown or named twice, or lacks its library."""
    import importlib.util

    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{option} names {name} twice")
        if name in TRACKERS:
            _, library, install = TRACKERS[name]
            if importlib.util.find_spec(library) is None:
                raise UserError(f"{option} {name} needs {library}: pip install '{install}'")
        else:
            _entry_point(name, option)


def find(name: str) -> Callable[[], Tracker]:
    """Returns the class of a tracker. Raises UserError."""
    made: Callable[[], Tracker] = (
        pkgutil.resolve_name(TRACKERS[name][0]) if name in TRACKERS else _entry_point(name).load()
    )
    return made


def _entry_point(name: str, option: str = "--log-to") -> importlib.metadata.EntryPoint:
    found = [point for point in importlib.metadata.entry_points(group=GROUP) if point.name == name]
    if len(found) == 1:
        return found[0]
    known = ", ".join(sorted({*TRACKERS, *(point.name for point in importlib.metadata.entry_points(group=GROUP))}))
    what = f"'{name}' is an entry point of {len(found)} distributions" if found else f"unknown tracker '{name}'"
    raise UserError(f"{option}: {what}; known: {known}")
