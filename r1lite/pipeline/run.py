"""`r1lite r1`: runs the graph of a recipe, and resumes it with the same result if it was stopped."""

from __future__ import annotations

import multiprocessing.connection
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from r1lite.config.pipeline import PipelineConfig
from r1lite.config.trust import foreign
from r1lite.errors import Interrupted, RunError, UserError
from r1lite.pipeline import table
from r1lite.pipeline.board import Board
from r1lite.pipeline.children import start, usage
from r1lite.pipeline.graph import KINDS, Graph, build
from r1lite.pipeline.steps import StepFiles, check_finished, finish, move_inputs, prepare, values_of
from r1lite.report import report_at_end
from r1lite.run.console import make_console
from r1lite.run.files import LOCK, check_contents, clear_parts, lock_folder, write_json, write_text
from r1lite.run.places import claim_path
from r1lite.run.signals import StopSignal
from verifiers.yaml_text import read_yaml

_GRACE_S = 120.0  # time for a stage to write its checkpoint
_SEEN_S = 0.5  # time between two checks of the stages
_SHOWN_LINES = 5  # last lines of a failed stage's log in the message


def run(config: PipelineConfig) -> dict[str, Any]:
    """Runs the unfinished stages, then compares the models.

    Returns: the comparison, as in OUT/comparison.json.

    Raises:
        UserError: the recipe is invalid, or differs from the one that OUT was begun with.
        RunError: a stage failed; finished stages are kept.
        Interrupted: a signal stopped the pipeline; the same command resumes it.
    """
    graph = build(config)
    console = make_console(quiet=config.quiet)
    if config.check:
        console.print(_status(graph, None))
        return {}
    if config.out and Path(config.out).expanduser().is_file():
        raise UserError(f"--out {config.out} is not a folder")
    out = Path(config.out).expanduser().resolve() if config.out else claim_path("r1", "pipeline", "recipe").resolve()
    folder = out / "stages"
    if out.exists() and not folder.exists() and any(file.name != LOCK for file in out.iterdir()):
        raise UserError(f"--out {out} contains something other than a pipeline; choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = lock_folder(out)
    except BlockingIOError:
        raise UserError(f"{out} is in use by another r1lite r1") from None
    with lock:
        check_contents(out)
        clear_parts(out)
        clear_parts(folder)
        check_finished(graph, folder)
        console.print(f"pipeline  {out}")
        with StopSignal() as stop, Board(graph, folder, console) as board:
            _Runner(graph, folder, board, config.jobs, stop, config.trust).run()
        found = table.compare(config, graph, folder)
        write_json(out / "comparison.json", found)
        write_text(out / "comparison.md", table.markdown(found))
    console.print(_status(graph, folder))
    make_console().print(table.markdown(found))
    console.print(f"comparison  {out}/comparison.md, comparison.json")
    report_at_end(out, console.print)
    return found


@dataclass(slots=True)
class _Runner:
    """Starts each step as soon as its inputs are finished."""

    graph: Graph
    folder: Path
    board: Board
    jobs: int
    stop: StopSignal
    trust: bool = False
    running: dict[str, Any] = field(default_factory=dict)  # name -> process

    def run(self) -> None:
        """Returns when every step is finished."""
        waiting = [name for name in self.graph.steps if StepFiles(self.folder, name).record() is None]
        try:
            while waiting or self.running:
                ready = [name for name in waiting if self._is_ready(name)]
                for name in ready[: self.jobs - len(self.running)]:
                    waiting.remove(name)
                    self._start(name)
                with self.stop.interruptible():
                    multiprocessing.connection.wait([process.sentinel for process in self.running.values()], _SEEN_S)
                self.board.refresh()
                for name in [name for name, process in self.running.items() if process.exitcode is not None]:
                    self._end(name, self.running.pop(name))
        except BaseException as error:
            self._end_all(by_request=isinstance(error, Interrupted))
            raise

    def _is_ready(self, name: str) -> bool:
        needs = self.graph.steps[name].needs & set(self.graph.steps)
        return all(StepFiles(self.folder, other).record() is not None for other in needs)

    def _start(self, name: str) -> None:
        step, files = self.graph.steps[name], StepFiles(self.folder, name)
        values = values_of(step, self.graph, self.folder)
        moved = prepare(step, values, files)
        kind = KINDS[step.kind]
        begun = (self.folder / kind.begun.format(name=name)).exists()
        if not begun:
            shutil.rmtree(files.run, ignore_errors=True)  # left by a kill before there was anything to resume
        if begun and moved:
            move_inputs(files.run / "config.yaml", moved)
        own = ["--resume"] if begun and kind.resumes else [str(files.file("yaml"))]
        argv = [step.kind, *own, "--out", str(files.run)]
        if self._is_trusted(values, files):
            argv.append("--trust")
        files.file("progress").unlink(missing_ok=True)
        try:
            self.running[name] = start(argv, files.file("log"), files.file("usage"), files.file("progress"))
        except (EOFError, ConnectionError) as error:  # from the process that starts the stages
            self.stop.check()  # a signal to the process group ends that process too
            raise RunError(f"the process that starts the stages has ended: {type(error).__name__}: {error}") from error
        self.board.begin(name, again=begun)

    def _is_trusted(self, own: Mapping[str, Any], files: StepFiles) -> bool:
        """True if the user's recipe names everything that the stage's folder names."""
        kept = files.run / "config.yaml"
        named = foreign(own)
        if self.trust or not kept.exists():
            return self.trust or bool(named)
        try:
            there = read_yaml(kept.read_bytes())
        except ValueError:  # the stage reports the error
            return False
        return bool(named) and isinstance(there, dict) and set(foreign(there)) <= set(named)

    def _end(self, name: str, process: Any) -> None:
        step, files = self.graph.steps[name], StepFiles(self.folder, name)
        if process.exitcode != 0:
            log = files.file("log")
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
            lines = [line for line in lines if line.strip() not in ("", "error:")]
            told = [line for line in lines if line.startswith("error: ")] or lines
            shown = "\n".join(f"  {line}" for line in told[-_SHOWN_LINES:])
            if not lines or process.exitcode not in (1, 2):
                free = shutil.disk_usage(self.folder).free / 1e6
                shown += f"\n  It may have been killed, as for its memory; {free:,.0f} MB are free on the disk."
            raise RunError(
                f"stage '{name}' failed (exit {process.exitcode}); finished stages are kept. {log} ends:\n{shown}\n"
                "fix the cause, then run the same command again"
            )
        record = finish(step, files, **usage(files.file("usage")))
        files.file("progress").unlink(missing_ok=True)
        self.board.end(name, record)

    def _end_all(self, *, by_request: bool) -> None:
        for process in self.running.values():
            process.terminate()
        for name, process in self.running.items():
            process.join(_GRACE_S)
            if process.exitcode is None:
                process.kill()
                process.join()
            self.board.stopped(name)
        if by_request:
            print("run the same command again to resume", file=sys.stderr)


def _status(graph: Graph, folder: Path | None) -> Table:
    """A table of the steps, with the results of the finished ones."""
    records = {name: StepFiles(folder, name).record() for name in graph.steps} if folder is not None else {}
    shown = Table(title="Stages", title_justify="left", title_style="bold")
    for heading in ("name", "stage", "from"):
        shown.add_column(heading, overflow="fold")  # names often differ in their last letters only
    if any(records.values()):
        shown.add_column("outcome")
        shown.add_column("CPU s", justify="right")
        shown.add_column("s", justify="right")
    for name, step in graph.steps.items():
        record = records.get(name)
        done = [record["outcome"], f"{record['cpu_s']:.0f}", f"{record['wall_s']:.0f}"] if record else []
        shown.add_row(name, step.kind, ", ".join(f"{key} {source}" for key, source in step.inputs.items()), *done)
    return shown
