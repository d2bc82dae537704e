"""Progress of a command, in a small file beside its run; `r1lite r1` shows it for the stages that it started."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

_EVERY_S = 0.5  # between two writes within one phase


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress within a phase."""

    what: str  # "training"
    done: float
    total: float
    left_s: float | None  # None: not known yet


class Reporter:
    """Writes the progress of this process to a file once `write_to` names it. A kill may lose the latest progress."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._what = ""
        self._began, self._done_before, self._written = 0.0, 0.0, 0.0

    def write_to(self, path: Path) -> None:
        """Sets the path of the file."""
        self._path = path

    def note(self, what: str, done: float, total: float) -> None:
        """Reports progress within a phase; a new value of `what` starts a new phase."""
        if self._path is None:
            return
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._done_before = what, now, done
        elif now - self._written < _EVERY_S and done < total:
            return
        self._written = now
        gained = done - self._done_before
        left = (now - self._began) / gained * (total - done) if gained > 0 else None
        aside = self._path.with_name(f".{self._path.name}.part")
        with contextlib.suppress(OSError):  # the run itself reports a full disk
            aside.write_text(json.dumps(asdict(Progress(what, done, total, left))), encoding="utf-8")
            os.replace(aside, self._path)


REPORTER = Reporter()


def read_progress(path: Path) -> Progress | None:
    """Reads the progress of a stage; None if there is none yet."""
    try:
        return Progress(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
