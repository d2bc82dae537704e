"""A process of the run, wherever it runs: how it is asked for its end, and what it has written."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from r1lite.launch.layout import ProcessSpec

_SHOWN_LINES = 5
_TAIL_BYTES = 1 << 16
_SIGNALLED = 128  # an exit code above it: that plus the signal
LOST = -1  # in place of an exit code: its node is gone, or what has started it there


class Process(Protocol):
    """A process that was started. After its end nothing that it had started is left."""

    def poll(self) -> int | None:
        """Its exit code, 128 + signal where one ended it, LOST if that is not known; None while it runs."""

    def signal(self, number: int) -> None:
        """Sends it a signal, if it still runs."""

    def kill(self) -> None:
        """Ends it at once with all that it has started, and waits for that."""


@dataclass(slots=True)
class Running:
    """What was to be started, its process and its log.

    Args:
        log: file that it adds its output to; what was there before is of an earlier start.
    """

    spec: ProcessSpec
    process: Process
    log: Path
    code: int | None = None
    _begin: int = 0
    _read: int = 0
    _rest: bytes = b""

    @classmethod
    def begun(cls, spec: ProcessSpec, log: Path, start: Callable[[], Process]) -> Running:
        """Starts the process."""
        begin = log.stat().st_size if log.exists() else 0
        return cls(spec, start(), log, None, begin, begin)

    def ended(self) -> bool:
        """True once its process is over."""
        if self.code is None:
            self.code = self.process.poll()
        return self.code is not None

    def new_lines(self) -> list[str]:
        """Whole lines that it has written since it was asked last; at its end the last one too."""
        over = self.ended()
        if self.log.exists():
            with open(self.log, "rb") as file:
                file.seek(self._read)
                data = file.read()
            self._read += len(data)
            self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        if over and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        return [line.decode("utf-8", "replace").rstrip() for line in lines]

    @property
    def died(self) -> bool:
        """True if it did not end by itself, so that it could not say why."""
        return self.code is not None and (self.code == LOST or self.code > _SIGNALLED)

    def last_lines(self, *, errors: bool = False) -> list[str]:
        """The last that it wrote; of errors alone, if asked."""
        if not self.log.exists():
            return []
        with open(self.log, "rb") as file:
            file.seek(max(self._begin, self.log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
        return [line for line in lines if line.startswith("error: ") or not errors][-_SHOWN_LINES:]

    def end(self) -> str:
        """How it ended, for a message."""
        assert self.code is not None
        if self.code == LOST:
            return "was lost with its node"
        if self.code <= _SIGNALLED:
            return f"ended with exit code {self.code}"
        number = self.code - _SIGNALLED
        name = signal.Signals(number).name if number in {*signal.Signals} else str(number)
        return f"was ended by a signal, {name} (exit code {self.code})"
