"""The run directory of a rank other than the main one, which writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from r1lite.run import records
from r1lite.run.run_dir import RunDir


class Unwritten(RunDir):
    """Knows the path but writes nothing; the folder need not exist on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rollouts = path / records.ROLLOUTS
        self.checkpoints = path / "checkpoints"
        self.bad_batches = None
        self.settings = {}

    def _nothing(self, *given: Any, **named: Any) -> None:
        """Does nothing: the main rank does this."""

    close = discard_if_empty = discard = rewrite_config = write_result = _nothing
    append_metrics = append_evaluation = write_answers = write_rollouts = rewind = _nothing
