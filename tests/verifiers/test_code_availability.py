"""Programs that would stall, poison or exhaust the judge: each ends in a verdict, even while other processes fork."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from test_code_hacks import HACKS, TESTS, job_of

from verifiers import Completion, Problem, Verdict
from verifiers.sandbox import REASONS, CodeVerifier, probe
from verifiers.sandbox.pool import Run, Usage

TIME_S, WALL_S = 0.1, 0.5
AVAILABILITY = [item for item in HACKS if item[0].startswith("availability/")]
GOOD = "def solve(xs): return sum(x * x for x in xs) % 1009"
GOOD_PROGRAM = "input()\nprint(sum(int(x) ** 2 for x in input().split()) % 1009)"


def forked(native: bool) -> int:
    """Forks a child that inherits every open descriptor. A native fork bypasses what Python does after a fork."""
    pid = ctypes.PyDLL(None).fork() if native else os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    return pid


@pytest.fixture
def sleepers() -> Iterator[None]:
    """Forks this process again and again, as a data loader does for its workers."""
    pids: list[int] = []
    stop = threading.Event()

    def fork() -> None:
        while not stop.wait(0.03):
            pids.append(forked(native=bool(len(pids) % 2)))
            if len(pids) > 30:
                end(pids.pop(0))

    def end(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    thread = threading.Thread(target=fork)
    thread.start()
    yield
    stop.set()
    thread.join()
    for pid in pids:
        end(pid)


def test_corpus_is_large_enough() -> None:
    assert len({name for name, *_ in AVAILABILITY}) >= 80


@pytest.mark.slow
def test_every_program_ends_as_a_verdict_at_every_weaker_level(sleepers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs each program at one of the other levels in turn; `test_code_hacks` runs all of them at the best level."""
    levels = [level for level in probe.report().works if level != probe.report().best] or [probe.report().best]
    assert levels[0] is not None
    used: list[Usage] = []
    finish = Run.finish

    def noted(run: Run, patience_s: float | None = None) -> Usage:
        used.append(finish(run, patience_s))
        return used[-1]

    monkeypatch.setattr(Run, "finish", noted)
    wrong = []
    for index, level in enumerate(levels):
        options = {"time_s": TIME_S, "wall_s": WALL_S, "memory_mib": 128, "disk_mib": 16, "output_mib": 1}
        with CodeVerifier(isolation=level, servers=3, **options) as verifier:
            mine = AVAILABILITY[index :: len(levels)]
            verdicts = verifier.verify_many(
                [(Problem(tests=job_of(name, style, TIME_S)), Completion(code)) for name, style, _, code in mine]
            )
            honest = [
                verifier(Problem(tests=TESTS["function"]), Completion(GOOD)),
                verifier(Problem(tests=TESTS["asserts"]), Completion(GOOD)),
                verifier(Problem(tests=TESTS["stdin"]), Completion(GOOD_PROGRAM)),
            ]
        wrong += [
            f"{level} {name} {style}: {verdict}"
            for (name, style, *_), verdict in zip(mine, verdicts, strict=True)
            if not (isinstance(verdict, Verdict) and verdict.score == 0 and verdict.reason in REASONS)
        ]
        wrong += [f"{level}, an honest one: {verdict}" for verdict in honest if verdict.score != 1]
    assert wrong == []
    assert [usage for usage in used if usage.wall_s - usage.waited_s > WALL_S + 2 or usage.cpu_s > TIME_S + 1] == []
