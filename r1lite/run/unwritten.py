"""The run directory of a rank other than the main one, which writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from r1lite.run import records
from r1lite.run.run_dir import RunDir
from r1lite.types import Group


class Unwritten(RunDir):
    """Knows the path but writes nothing; the folder need not exist on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rollouts = path / records.ROLLOUTS
        self.checkpoints = path / "checkpoints"
        self.bad_batches = None
        self.settings = {}

    def close(self) -> None:
        """Does nothing: there is no lock."""

    def discard_if_empty(self) -> None:
        """Does nothing: the main rank does this."""

    def discard(self) -> None:
        """Does nothing: the main rank does this."""

    def rewrite_config(self, text: str) -> None:
        """Does nothing: the main rank does this."""

    def write_result(self, name: str, value: Any) -> None:
        """Does nothing: the main rank does this."""

    def append_metrics(self, record: dict[str, Any]) -> None:
        """Does nothing: the main rank does this."""

    def append_evaluation(self, record: dict[str, Any]) -> None:
        """Does nothing: the main rank does this."""

    def write_answers(self, step: int, answers: Iterable[Mapping[str, Any]]) -> None:
        """Does nothing: the main rank does this."""

    def write_rollouts(self, step: int, groups: Iterable[Group]) -> None:
        """Does nothing: the main rank does this."""

    def rewind(self, step: int) -> None:
        """Does nothing: the main rank does this."""
