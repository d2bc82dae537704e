"""What `r1lite r1` shows while it goes on: states, steps, remaining time, and what was finished before."""

import io
import json

import pytest
from rich.console import Console

from r1lite.config import validated
from r1lite.config.pipeline import PipelineConfig
from r1lite.pipeline.board import Board
from r1lite.pipeline.graph import build
from r1lite.pipeline.steps import StepFiles
from r1lite.run.progress import Progress, Reporter, read_progress

pytestmark = pytest.mark.quick

RL = {"steps": 3, "prompts_per_step": 4, "group_size": 4}
DONE = {"stage": "grpo", "made": {}, "outcome": "greedy 20.0% -> 90.0%, 3 steps", "cpu_s": 12.0, "wall_s": 14.0}


def graph(count):
    stages = {f"rl-{n}": {"stage": "grpo", "inputs": {"model": "base"}, "settings": RL} for n in range(count)}
    return build(validated(PipelineConfig, {"models": {"base": "nano"}, "stages": stages}))


def a_console(height=40, *, terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, height=height, color_system=None)


def shown(board, console):
    with console.capture() as caught:
        console.print(board.table())
    return caught.get().splitlines()


def put_progress(folder, name, **changes):
    at = {"what": "training", "done": 2.0, "total": 3.0, "left_s": 65.0, **changes}
    StepFiles(folder, name).file("progress").write_text(json.dumps(at))


def test_the_table_has_state_step_and_remaining_time(tmp_path):
    console = a_console(terminal=True)
    StepFiles(tmp_path, "rl-0").file("json").write_text(json.dumps(DONE))
    board = Board(graph(4), tmp_path, console)
    board.begin("rl-1", again=False)
    board.begin("rl-2", again=True)
    put_progress(tmp_path, "rl-1")
    lines = shown(board, console)
    assert lines[0].split() == ["stage", "command", "state", "step", "left"]
    assert lines[1].split()[:3] == ["rl-0", "grpo", "done"]
    assert "greedy 20.0% -> 90.0%" in lines[1]
    assert lines[2].split() == ["rl-1", "grpo", "running", "training", "2/3", "1:05"]
    assert lines[3].split() == ["rl-2", "grpo", "running", "loading"]
    assert lines[4].split() == ["rl-3", "grpo", "waiting"]
    assert lines[5].endswith("1 of 4 stages done")
    put_progress(tmp_path, "rl-2", what="evaluating the model before training", done=0.25, total=1, left_s=None)
    assert "evaluating the model before training 25%" in shown(board, console)[3]
    board.end("rl-1", DONE)
    assert shown(board, console)[5].endswith("2 of 4 stages done")


def test_a_low_terminal_shows_what_runs(tmp_path):
    console = a_console(12, terminal=True)
    board = Board(graph(30), tmp_path, console)
    for n in range(9):
        board.end(f"rl-{n}", DONE)
    board.begin("rl-20", again=False)
    lines = shown(board, console)
    assert len(lines) < 12
    assert any(line.startswith("rl-20") for line in lines)
    assert [line.split()[0] for line in lines[1:-2]] == ["rl-3", "rl-4", "rl-5", "rl-6", "rl-7", "rl-8"]


def test_what_is_finished_is_named_on_resume(tmp_path):
    console = a_console(terminal=False)
    for name in ("rl-0", "rl-2"):
        StepFiles(tmp_path, name).file("json").write_text(json.dumps(DONE))
    with Board(graph(3), tmp_path, console):
        pass
    assert console.file.getvalue() == "finished  rl-0, rl-2 (2 of 3 stages done)\n"


def test_plain_lines_come_now_and_then(tmp_path):
    now = [0.0]
    console = a_console(terminal=False)
    with Board(graph(2), tmp_path, console, clock=lambda: now[0]) as board:
        board.begin("rl-0", again=True)
        put_progress(tmp_path, "rl-0")
        for now[0] in range(1, 70):
            board.refresh()
        board.stopped("rl-0")
    assert console.file.getvalue().splitlines() == [
        "resume    rl-0: r1lite grpo",
        *["running   rl-0: training 2/3, 1:05 left (0 of 2 stages done)"] * 2,
        "stopped   rl-0",
    ]


def test_progress_is_written_by_stretches(tmp_path):
    path, reporter = tmp_path / "x.progress", Reporter()
    reporter.note("training", 1, 4)  # nobody asked
    assert read_progress(path) is None
    reporter.write_to(path)
    reporter.note("training", 1, 4)
    assert read_progress(path) == Progress("training", 1, 4, None)  # how long one takes isn't known yet
    reporter.note("training", 4, 4)  # the last one is written at once
    found = read_progress(path)
    assert (found.done, found.left_s) == (4, 0.0)
    reporter.note("measuring", 0.0, 1)
    assert read_progress(path) == Progress("measuring", 0.0, 1, None)
    path.write_text('{"what"')
    assert read_progress(path) is None
