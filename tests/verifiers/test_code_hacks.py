"""Programs that must not pass, programs that must not escape, programs that must pass.

The corpus stands in tests/hacks/code and tests/honest/code; targets are planted here and proven reachable from outside.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes_for_tests import descendants

from verifiers import Completion, Problem, Verdict, VerifierError
from verifiers.sandbox import REASONS, CodeVerifier, probe
from verifiers.sandbox.judge import _ORACLE_S
from verifiers.sandbox.pool import Run, Usage

HERE = Path(__file__).resolve().parents[1]
CASES = [[1, 2, 3], [10, 20, 30, 40], [-7, 500, 33, 2, 2], []]
TIME_S, WALL_S = 0.4, 1.5
HUNG_S = 30  # of a program with all its inputs, on a machine that has a core for each of its processes
HEADER = re.compile(r"^#=== (\S+) \[([a-z ]+)\](?: (\w+))?$", re.MULTILINE)


def answer(xs: list[int]) -> int:
    return sum(x * x for x in xs) % 1009


TESTS = {
    "function": {
        "style": "function",
        "entry_point": "solve",
        "args": [[xs] for xs in CASES],
        "outs": [*map(answer, CASES)],
    },
    "asserts": {
        "style": "asserts",
        "entry_point": "solve",
        "tests": [f"xs = {xs}\nassert solve(xs) == {answer(xs)}" for xs in CASES],
    },
    "literals": {  # asserts that need no oracle
        "style": "asserts",
        "entry_point": "solve",
        "tests": [f"assert solve({xs}) == {answer(xs)}" for xs in CASES],
    },
    "stdin": {
        "style": "stdin",
        "inputs": [f"{len(xs)}\n{' '.join(map(str, xs))}\n" for xs in CASES],
        "outputs": [f"{answer(xs)}\n" for xs in CASES],
        "checker": "tokens",
    },
}
# What uses up its whole time does so on each input, and however much it is: one is enough there, and a little.
ONE_INPUT = {**TESTS["stdin"], "inputs": TESTS["stdin"]["inputs"][1:2], "outputs": TESTS["stdin"]["outputs"][1:2]}
BURNING_S, SOON_S = 0.15, 0.06  # in the first of its styles, in the others
BURNING = re.compile(r"availability/|resource/|documentation/.*(?:burn|buffers|pages|signals)")


def job_of(name: str, style: str, burning_s: float | None = None) -> dict[str, Any]:
    if not BURNING.match(name):
        return TESTS[style]
    time_s = burning_s or (BURNING_S if style == FIRST[name] else SOON_S)
    return {**(ONE_INPUT if style == "stdin" else TESTS[style]), "time_s": time_s}


def corpus(folder: str) -> list[tuple[str, str, str, str]]:
    """Returns (name, style, what it claims to reach, program)."""
    found = []
    for path in sorted((HERE / folder).glob("*.txt")):
        parts = HEADER.split(path.read_text(encoding="utf-8"))[1:]
        for name, styles, claim, code in zip(parts[::4], parts[1::4], parts[2::4], parts[3::4], strict=True):
            # Such asserts are judged as function style, so they are tried where that is not.
            more = ["literals"] if "asserts" in styles and "function" not in styles else []
            found += [(f"{path.stem}/{name}", style, claim or "", code.lstrip("\n")) for style in styles.split() + more]
    return found


HACKS = corpus("hacks/code")
HONEST = corpus("honest/code")
FIRST = {name: style for name, style, *_ in reversed(HACKS)}  # the style that each is tried in first


class Targets:
    """Targets planted outside: a secret, a file, three sockets, a process."""

    def __init__(self, folder: Path) -> None:
        self.word = "planted" + secrets.token_hex(8)
        self.secret, self.own, self.path = folder / "secret", folder / "own", folder / "socket"
        self.secret.write_text(self.word)
        self.own.write_text("untouched")
        for path in (folder, self.secret, self.own):
            path.chmod(0o777)
        self.reached = 0
        self.abstract = f"verifiers-{os.getpid()}-{secrets.token_hex(4)}"
        self.sockets = [self._listen(socket.AF_INET, ("127.0.0.1", 0)), self._listen(socket.AF_UNIX, str(self.path))]
        self.sockets.append(self._listen(socket.AF_UNIX, "\0" + self.abstract))
        self.port = self.sockets[0].getsockname()[1]
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)

    def _listen(self, family: int, address: object) -> socket.socket:
        server = socket.socket(family)
        server.bind(address)  # type: ignore[arg-type]
        server.listen()
        threading.Thread(target=self._serve, args=(server,), daemon=True).start()
        return server

    def _serve(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                self.reached += 1
                with client:
                    client.sendall(self.word.encode())

    def fill(self, code: str) -> str:
        for token, value in {
            "@SECRET@": str(self.secret),
            "@OWN@": str(self.own),
            "@PORT@": str(self.port),
            "@PID@": str(self.process.pid),
            "@ABSTRACT@": self.abstract,
            "@SOCKET@": str(self.path),
            "@NUL@": "\0",
            "@SURROGATE@": "\ud800",
            "@CR@": "\r",
        }.items():
            code = code.replace(token, value)
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for server in self.sockets:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Targets]:
    planted = Targets(tmp_path_factory.mktemp("targets"))
    yield planted
    planted.close()


@pytest.fixture(scope="module")
def verifier() -> Iterator[CodeVerifier]:
    if not any(level in probe.report().works for level in ("full", "ns")):
        pytest.skip(f"no namespaces here: {probe.report().missing['ns']}")
    with CodeVerifier(time_s=TIME_S, wall_s=WALL_S, memory_mib=256, disk_mib=32, output_mib=2) as found:
        yield found


def test_corpus_is_large_enough() -> None:
    assert len({name for name, *_ in HACKS}) >= 150
    assert len({name for name, *_ in HONEST}) >= 60


@pytest.mark.slow
def test_hacks_do_not_pass_and_do_not_get_out(
    verifier: CodeVerifier, targets: Targets, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = set(descendants(os.getpid()))  # other tests' helpers in this worker
    runs: list[tuple[str, Usage]] = []  # of every process of a submission, one per input: (program, what it used)
    program = threading.local()
    finish = Run.finish

    def noted(run: Run, patience_s: float | None = None) -> Usage:
        usage = finish(run, patience_s)
        if run._role == "candidate":
            runs.append((getattr(program, "name", "an input of a program"), usage))
        return usage

    monkeypatch.setattr(Run, "finish", noted)
    before = verifier.verify_many([(Problem(tests=TESTS["function"]), Completion("def solve(xs): return 0"))] * 8)
    assert all(isinstance(verdict, Verdict) for verdict in before)
    begin, took, lock = time.monotonic(), {}, threading.Lock()

    def timed(item: tuple[str, str, str, str]) -> str:
        name, style, _, code = item
        program.name = f"{name} {style}"
        started = time.monotonic()
        try:
            verdict = verifier(Problem(tests=job_of(name, style)), Completion(targets.fill(code)))
        except VerifierError as error:
            return f"{name} {style}: {error}"
        with lock:
            took[f"{name} {style}"] = time.monotonic() - started
        if verdict.score != 0 or verdict.reason not in REASONS:
            return f"{name} {style}: {verdict.reason} {verdict.score} {verdict.detail}"
        return f"{name} {style} shows the secret" if targets.word in verdict.detail else ""

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as threads:  # many sleep until their limit
        wrong = [text for text in threads.map(timed, HACKS) if text]
    assert wrong == []
    assert targets.reached == 0, "a program reached a socket outside"
    assert targets.process.poll() is None, "a program killed a process outside"
    assert targets.own.read_text() == "untouched"
    # Each process had its limit and a second at most; what it waited for a core is the machine's doing.
    assert len(runs) >= len(HACKS)

    def slow() -> dict[str, Usage]:
        return {
            name: usage
            for name, usage in runs
            if usage.cpu_s > TIME_S + 1
            or usage.wall_s - usage.waited_s > WALL_S + _ORACLE_S * name.endswith(("asserts", "literals")) + 1
        }

    # Of a hundred processes that are killed on a busy machine, not all waiting is counted: such a one is tried alone.
    once_more = [item for item in HACKS if f"{item[0]} {item[1]}" in slow()]
    runs.clear()
    assert [text for text in map(timed, once_more) if text] == []
    assert slow() == {}
    crowd = max(1.0, max(os.getloadavg()) / len(os.sched_getaffinity(0)))
    late = {name: seconds for name, seconds in took.items() if seconds > HUNG_S * crowd}
    assert late == {}, f"after {time.monotonic() - begin:.0f} s"
    # The servers and nothing else: every program's processes went with it.
    names = []
    for pid in set(descendants(os.getpid())) - earlier - {targets.process.pid}:
        with contextlib.suppress(OSError):  # it has ended
            names.append(Path(f"/proc/{pid}/cmdline").read_bytes())
    assert [name for name in names if b"zygote" not in name] == []


@pytest.mark.parametrize(
    ("name", "claim", "code"), [(name, claim, code) for name, style, claim, code in HACKS if claim and style == "stdin"]
)
def test_targets_can_be_reached_from_outside(name: str, claim: str, code: str, tmp_path: Path) -> None:
    """The same program, run without a sandbox on its own targets, reaches them."""
    if "kill-everything" in name or "kill-parent" in name or "signal-queue" in name:
        pytest.skip("would reach this test run itself")
    planted = Targets(tmp_path)
    try:
        done = subprocess.run([sys.executable, "-c", planted.fill(code)], capture_output=True, text=True, timeout=30)
        if claim in ("reaches", "connects"):
            assert planted.word in done.stdout, done.stderr
        elif claim == "writes":
            assert not planted.own.exists() or planted.own.read_text() != "untouched"
        else:
            assert planted.process.wait(10) == -9
    finally:
        planted.close()


@pytest.mark.slow
def test_honest_programs_pass(verifier: CodeVerifier) -> None:
    pairs = [(Problem(tests=TESTS[style]), Completion(code.replace("@CR@", "\r"))) for _, style, _, code in HONEST]
    with CodeVerifier() as patient:
        verdicts = patient.verify_many(pairs)
    refused = [
        f"{name} {style}: {verdict}"
        for (name, style, *_), verdict in zip(HONEST, verdicts, strict=True)
        if not (isinstance(verdict, Verdict) and verdict.score == 1 and verdict.reason == "AC")
    ]
    assert refused == []
