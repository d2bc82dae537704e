"""The run directory of a rank that leaves writing to the main one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from r1lite.run import records
from r1lite.run.run_dir import RunDir
from r1lite.types import Group


class Unwritten(RunDir):
    """Knows the place, and keeps nothing; it need not exist on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rollouts = path / records.ROLLOUTS
        self.checkpoints = path / "checkpoints"
        self.bad_batches = None
        self.settings = {}

    def close(self) -> None:
        """Nothing is held."""

    def discard_if_empty(self) -> None:
        """The main rank does."""

    def discard(self) -> None:
        """The main rank does."""

    def rewrite_config(self, text: str) -> None:
        """The main rank does."""

    def write_result(self, name: str, value: Any) -> None:
        """The main rank does."""

    def append_metrics(self, record: dict[str, Any]) -> None:
        """The main rank does."""

    def append_evaluation(self, record: dict[str, Any]) -> None:
        """The main rank does."""

    def write_answers(self, step: int, answers: Iterable[Mapping[str, Any]]) -> None:
        """The main rank does."""

    def write_rollouts(self, step: int, groups: Iterable[Group]) -> None:
        """The main rank does."""

    def rewind(self, step: int) -> None:
        """The main rank does."""
