"""A process of the run on any machine: its state, its signals and its log."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from r1lite.launch.layout import ProcessSpec

_SHOWN_LINES = 5
_TAIL_BYTES = 1 << 16
_SIGNALLED = 128  # a higher exit code is this plus the signal's number
LOST = -1  # instead of an exit code: its node, or the actor that started it there, is gone


class Process(Protocol):
    """A started process. When it has ended, none of its children are left."""

    def poll(self) -> int | None:
        """Its exit code (128 + signal if a signal ended it), LOST if unknown, None while it runs."""

    def signal(self, number: int) -> None:
        """Sends it a signal, if it still runs."""

    def kill(self) -> None:
        """Kills the process and its children, and waits for their end."""


@dataclass(slots=True)
class Running:
    """A process with its spec and its log.

    Args:
        log: file to which it appends its output; earlier content is from an earlier start.
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
        """True if the process has ended."""
        if self.code is None:
            self.code = self.process.poll()
        return self.code is not None

    def new_lines(self) -> list[str]:
        """Complete lines written since the last call; after the process's end also an incomplete last line."""
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
        """True if the process was killed or lost, so that it could not report a reason."""
        return self.code is not None and (self.code == LOST or self.code > _SIGNALLED)

    def last_lines(self, *, errors: bool = False) -> list[str]:
        """The last lines of its output; with `errors` only error lines."""
        if not self.log.exists():
            return []
        with open(self.log, "rb") as file:
            file.seek(max(self._begin, self.log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
        return [line for line in lines if line.startswith("error: ") or not errors][-_SHOWN_LINES:]

    def end(self) -> str:
        """Its end, as part of a message."""
        assert self.code is not None
        if self.code == LOST:
            return "was lost with its node"
        if self.code <= _SIGNALLED:
            return f"ended with exit code {self.code}"
        number = self.code - _SIGNALLED
        name = signal.Signals(number).name if number in {*signal.Signals} else str(number)
        return f"was ended by a signal, {name} (exit code {self.code})"
