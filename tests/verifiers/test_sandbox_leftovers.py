"""What runs leave behind: no process, no file, nothing for the next run."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path

import pytest
from processes_for_tests import descendants
from sandbox_for_tests import ADD, GOOD, needs, started

from verifiers import Completion, Problem
from verifiers.sandbox import CodeVerifier


@pytest.mark.parametrize("level", ["full", "ns", "landlock"])
def test_no_run_leaves_a_queue_or_a_segment_for_the_next(level: str) -> None:
    """The runs of a server share an IPC namespace, so nothing that would outlive a run in it can be created."""
    needs(level)
    code = """
import ctypes
def f(key):
    libc, found = ctypes.CDLL(None, use_errno=True), []
    for name, *arguments in (("shmget", key, 4096, 0o1600), ("semget", key, 1, 0o1600), ("msgget", key, 0o1600),
                             ("mq_open", b"/q", 0o102, 0o600, None)):
        found.append(getattr(libc, name)(*arguments) >= 0 or ctypes.get_errno())
    return found
"""
    tests = {"style": "function", "entry_point": "f", "args": [[77]], "outs": [[errno.EPERM] * 4]}
    with CodeVerifier(isolation=level, servers=1) as verifier:
        verdict = verifier(Problem(tests=tests), Completion(code))
    assert verdict.score == 1, verdict


def leftovers(host: int, folder: Path) -> set[str]:
    """Returns what one host process left behind; its temporary files lie in `folder`. Others may run meanwhile."""
    found = {str(path) for path in folder.glob("verifiers-*")}
    for top in ("/sys/fs/cgroup",):
        for folder, names, _ in os.walk(top):
            found.update(f"{folder}/{name}" for name in names if name.startswith(f"verifiers-{host}-"))
    found.update(
        line for line in Path("/proc/self/mounts").read_text().splitlines() if "/box" in line or "sandbox" in line
    )
    return found


HANG = """
import threading
slow = "import time\\ndef f(x):\\n    time.sleep(100)"
threading.Thread(target=lambda: verifier(Problem(tests=tests), Completion(slow)), daemon=True).start()
time.sleep(0.3)
"""


@pytest.mark.parametrize("level", ["full", "ns", "landlock"])
@pytest.mark.parametrize("end", ["exit", "close", "SIGTERM", "SIGKILL", "SIGINT"])
def test_nothing_is_left_behind(level: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs(level)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = leftovers(0, tmp_path)  # mounts
    if end in ("exit", "close"):
        host = started("verifier.close()" if end == "close" else HANG, level)
        said, _ = host.communicate(timeout=60)
    else:
        # A shell starts what runs in the background with SIGINT ignored, and children inherit that.
        heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        host = started(heard + HANG + "print('ready', flush=True)\ntime.sleep(100)", level)
        said = host.stdout.readline()
        assert host.stdout.readline() == "ready\n"
        processes = descendants(host.pid)
        assert len(processes) >= 2
        host.send_signal(getattr(signal, end))
        host.wait(30)
        host.stdout.close()
        deadline = time.monotonic() + 60
        while any(os.path.exists(f"/proc/{pid}/root") and b"zygote" in cmdline(pid) for pid in processes):
            assert time.monotonic() < deadline, "processes are left"
            time.sleep(0.02)
    assert said == f"1.0 {level}\n"
    deadline = time.monotonic() + 60
    while leftovers(host.pid, tmp_path) - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert leftovers(host.pid, tmp_path) - before == set()


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_no_run_changes_the_null_device_of_the_next() -> None:
    code = """
import fcntl, os
def add(a, b):
    before = [fcntl.fcntl(n, fcntl.F_GETFL) & (os.O_NONBLOCK | os.O_APPEND) for n in (0, 1, 2)]
    for n in (0, 1, 2): fcntl.fcntl(n, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)
    return before
"""
    with CodeVerifier(servers=1) as verifier:
        for _ in range(2):
            assert verifier(Problem(tests={**ADD, "outs": [[0, 0, 0]]}), Completion(code)).reason == "AC"


def test_closing_twice_and_using_again() -> None:
    verifier = CodeVerifier(servers=1)
    for _ in range(2):
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1
        verifier.close()
        verifier.close()
