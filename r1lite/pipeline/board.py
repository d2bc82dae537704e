"""Progress display of a pipeline: a live table of its stages on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from r1lite.pipeline.graph import Graph
from r1lite.pipeline.steps import StepFiles
from r1lite.run.display import duration
from r1lite.run.progress import Progress, read_progress
from verifiers.terminal import one_line

_PLAIN_EVERY_S = 30.0  # time between plain lines while no stage begins or ends
_BESIDE = 5  # lines of a terminal that the table leaves free
_BAR = 24  # width of a bar in characters


class Board:
    """Display of a pipeline's stages: `with Board(...) as board`, then call `refresh()` from time to time."""

    def __init__(self, graph: Graph, folder: Path, console: Console, clock: Callable[[], float] = time.monotonic):
        self._graph, self._folder, self._console, self._clock = graph, folder, console, clock
        self._began: dict[str, float] = {}  # running stages -> their start times
        self._records = {name: StepFiles(folder, name).record() for name in graph.steps}
        self._live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None
        self._told = clock()

    def __enter__(self) -> Board:
        if finished := [name for name, record in self._records.items() if record]:
            self._console.print(f"finished  {', '.join(finished)} ({self.overall()})")
        if self._live is not None and not self._console.quiet:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._live is not None and self._live.is_started:
            self._live.stop()

    def begin(self, name: str, *, again: bool) -> None:
        """Shows that a stage was started; `again`: it resumes an earlier call."""
        self._began[name] = self._clock()
        self._console.print(f"{'resume' if again else 'begin':<9} {name}: r1lite {self._graph.steps[name].kind}")
        self.refresh()

    def end(self, name: str, record: Mapping[str, Any]) -> None:
        """Shows that a stage is finished."""
        self._began.pop(name, None)
        self._records[name] = dict(record)
        spent = f"{record['cpu_s']:.0f} CPU s, {record['wall_s']:.0f} s"
        self._console.print(f"{'done':<9} {name}: {record['outcome']}, {spent} ({self.overall()})")
        self.refresh()

    def stopped(self, name: str) -> None:
        """Shows that a stage was stopped early."""
        self._began.pop(name, None)
        self._console.print(f"stopped   {name}")

    def refresh(self) -> None:
        """Shows the progress of the stages."""
        if self._live is not None:
            if self._live.is_started:
                self._live.update(self.table())
        elif self._clock() - self._told >= _PLAIN_EVERY_S:
            self._told = self._clock()
            running = "; ".join(f"{name}: {_step(at)}{_left(at)}" for name, at in self._running().items())
            self._console.print(f"running   {running} ({self.overall()})")

    def overall(self) -> str:
        """Number of finished stages, as text."""
        return f"{sum(record is not None for record in self._records.values())} of {len(self._records)} stages done"

    def table(self) -> RenderableType:
        """A row per stage. Stages that don't run and don't fit on the terminal are summarized in the line below."""
        running = self._running()
        room = max(len(running), self._console.height - _BESIDE)
        names = list(self._records)
        if len(names) > room:
            ended = [name for name in names if self._records[name] is not None]
            names = [name for name in names if name in running or name in ended[-(room - len(running)) or len(ended) :]]
        shown = Table(box=None, pad_edge=False)
        shown.add_column("stage", overflow="fold")  # names of a pipeline often differ in their last letters only
        for heading in ("command", "state", "step"):
            shown.add_column(heading)
        shown.add_column("left", justify="right")
        for name in names:
            shown.add_row(one_line(name), self._graph.steps[name].kind, *self._cells(name, running))
        done = sum(record is not None for record in self._records.values())
        filled = round(_BAR * done / len(self._records))
        return Group(shown, Text(f"{'█' * filled}{'░' * (_BAR - filled)} {self.overall()}"))

    def _cells(self, name: str, running: Mapping[str, Progress | None]) -> tuple[str, str, str]:
        record = self._records[name]
        if record is not None:
            return "done", one_line(str(record["outcome"])), ""
        if name in running:
            at = running[name]
            return "running", _step(at), "" if at is None or at.left_s is None else duration(at.left_s)
        return "waiting", "", ""

    def _running(self) -> dict[str, Progress | None]:
        return {name: read_progress(StepFiles(self._folder, name).file("progress")) for name in self._began}


def _step(at: Progress | None) -> str:
    if at is None:
        return "loading"
    far = f"{at.done:.0f}/{at.total:.0f}" if at.total > 1 else f"{at.done / max(at.total, 1e-9):.0%}"
    return f"{one_line(at.what)} {far}"


def _left(at: Progress | None) -> str:
    return "" if at is None or at.left_s is None else f", {duration(at.left_s)} left"
