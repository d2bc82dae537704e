"""What goes wrong outside a submission is unscored, and the next verdicts are right."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from processes_for_tests import descendants
from sandbox_for_tests import ADD, GOOD, ROOT, needs

from verifiers import Completion, Problem, VerifierError
from verifiers.sandbox import CodeVerifier, Limits, pool, probe, wire


def test_a_dead_server_is_replaced_and_never_a_zero() -> None:
    earlier = set(descendants(os.getpid()))  # other tests' helpers in this worker

    def servers() -> list[int]:
        return [child for child in descendants(os.getpid()) if child not in earlier]

    with CodeVerifier(servers=1) as verifier:
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1
        assert servers()
        for child in servers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1
        killer = threading.Timer(0.4, lambda: [os.kill(child, signal.SIGKILL) for child in servers()[:1]])
        killer.start()
        with contextlib.suppress(VerifierError):  # killed in the middle: tried again, else unscored
            verdict = verifier(Problem(tests=ADD), Completion("import time\ntime.sleep(1)\n" + GOOD))
            assert verdict.score == 1
        killer.join()
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1


# Tables of many small mappings, which the kernel charges to the cgroup but not to the processes, in many processes.
MAPPINGS = """
import ctypes, os
def add(a, b):
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    made = 0
    while libc.mmap(None, 4096, made % 2, 0x22, -1, 0) not in (None, 2**64 - 1):
        made += 1
    for _ in range(25):
        os.fork()
    os._exit(0)
"""


def test_when_memory_runs_out_the_run_ends_and_not_its_server() -> None:
    needs("full")
    earlier = set(descendants(os.getpid()))
    with CodeVerifier(isolation="full", servers=1, memory_mib=256, time_s=2) as verifier:
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1
        servers = set(descendants(os.getpid())) - earlier
        for _ in range(2):
            assert verifier(Problem(tests=ADD), Completion(MAPPINGS)).score == 0
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1
        assert servers <= set(descendants(os.getpid()))


@pytest.mark.parametrize("level", ["full", "ns"])
def test_a_run_can_not_lower_its_own_priority(level: str) -> None:
    """It would wait for a core as on an overloaded machine, and so run late or unscored."""
    needs(level)
    code = """
import os
def f(x):
    found = []
    for lower in (lambda: os.nice(19), lambda: os.setpriority(os.PRIO_PROCESS, 0, 5),
                  lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)),
                  lambda: os.sched_setaffinity(0, {0})):
        try:
            lower()
            found.append(0)
        except OSError as error:
            found.append(error.errno)
    return found
"""
    tests = {"style": "function", "entry_point": "f", "args": [[1]], "outs": [[errno.EPERM] * 4]}
    with CodeVerifier(isolation=level, servers=1) as verifier:
        verdict = verifier(Problem(tests=tests), Completion(code))
    assert verdict.score == 1, verdict


@pytest.mark.parametrize("level", ["full", "ns", "landlock"])
def test_a_job_that_can_not_be_read_is_our_trouble(level: str) -> None:
    needs(level)
    with CodeVerifier(isolation=level, servers=1) as verifier:
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1
        run = verifier._ready().start("candidate", Limits())
        run.channel.sendall(wire.frame(b"no job"))
        with pytest.raises(VerifierError, match="locked in or given its job"):
            run.finish(5)
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1


def test_tests_that_do_not_fit_in_the_memory_are_not_the_submissions_failure() -> None:
    large = {**ADD, "args": [["x" * (100 << 20), ""]], "outs": [""]}
    with CodeVerifier(servers=1, memory_mib=64) as verifier:
        with pytest.raises(VerifierError, match="given its job"):
            verifier(Problem(tests=large), Completion(GOOD))
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1


@pytest.mark.parametrize("level", ["full", "ns", "landlock", "rlimit-only"])
def test_a_strangers_kill_is_unscored(level: str) -> None:
    needs(level)
    slow = {**ADD, "time_s": 20}
    with CodeVerifier(isolation=level, servers=1) as verifier:
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1
        servers = set(descendants(os.getpid()))
        found: list[Any] = []

        def judged() -> None:
            found.extend(
                verifier.verify_many([(Problem(tests=slow), Completion("import time\ntime.sleep(20)\n" + GOOD))])
            )

        thread = threading.Thread(target=judged)
        thread.start()
        while not (runs := set(descendants(os.getpid())) - servers):
            time.sleep(0.02)
        os.kill(runs.pop(), signal.SIGKILL)
        thread.join()
        assert isinstance(found[0], VerifierError), found
        assert "outside the sandbox" in str(found[0])
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1


LACKING = """
import errno, os, resource, subprocess, sys, threading
sys.path.insert(0, {root!r})
from verifiers import Completion, Problem, VerifierError
from verifiers.sandbox import CodeVerifier
tests = [{{"style": "function", "entry_point": "f", "args": [[1]], "outs": [2]}},
         {{"style": "asserts", "entry_point": "f", "tests": ["x = 1\\nassert f(x) == 2"]}},
         {{"style": "stdin", "inputs": ["1"] * 4, "outputs": ["2"] * 4}}]
code = "def f(x): return x + 1\\nimport sys\\nif sys.argv[0]: print(2)"
pairs = [(Problem(tests=one), Completion(code)) for one in tests]
verifier = CodeVerifier(servers=2)
def scores():
    return [getattr(verdict, "score", "unscored") for verdict in verifier.verify_many(pairs)]
print(scores())
{lack}
print(scores())
{back}
print(scores())
"""


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize(
    ("lack", "back"),
    [
        (
            "before = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir('/proc/self/fd')), before[1]))",
            "resource.setrlimit(resource.RLIMIT_NOFILE, before)",
        ),
        (
            "def refuse(*_, **__): raise BlockingIOError(errno.EAGAIN, 'Resource temporarily unavailable')\n"
            'def no_thread(self): raise RuntimeError("can\'t start new thread")\n'
            "start, popen = threading.Thread.start, subprocess.Popen\n"
            "subprocess.Popen, threading.Thread.start = refuse, no_thread",
            "subprocess.Popen, threading.Thread.start = popen, start",
        ),
    ],
    ids=["descriptors", "processes"],
)
def test_what_the_host_lacks_is_unscored(lack: str, back: str, warm: bool) -> None:
    """... and it costs nothing: the next verdicts are right."""
    if probe.report().best is None:
        pytest.skip(f"nothing here isolates code: {probe.report().missing}")
    lack = lack if warm else "verifier.close()\n" + lack
    code = LACKING.format(root=str(ROOT), lack=lack, back=back)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    first, second, third = done.stdout.splitlines() or [done.stderr] * 3
    assert first == third == "[1.0, 1.0, 1.0]", done.stderr
    assert set(second.strip("[]").split(", ")) <= {"1.0", "'unscored'"}
    assert warm or "unscored" in second


def test_overload_is_unscored_and_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = pool.Usage(9, 5, 0.1, 20.0, 18.0, 0)
    with pytest.raises(VerifierError, match="overloaded"):
        pool.Run._check(usage)


def test_forked_workers_have_servers_of_their_own() -> None:
    with CodeVerifier(servers=1) as verifier:
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            score = verifier(Problem(tests=ADD), Completion(GOOD)).score
            os.write(writer, str(score).encode())
            verifier.close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert os.read(reader, 10) == b"1.0"
        os.close(reader)
        os.close(writer)
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1
