"""The isolation levels and limits: who can use them, what they hold, what they count."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import re
import subprocess
from pathlib import Path

import pytest
from sandbox_for_tests import ADD, GOOD, ROOT, needs, started

from verifiers import Completion, GoldError, Problem, VerifierError
from verifiers.sandbox import CodeVerifier, Limits, judge, pool, probe, seccomp
from verifiers.sandbox.names import free_names


def test_free_names() -> None:
    source = "import math\nx = Node(1)\ndef h(a): return g(a)\nassert math.pi and h(x) == f(len(x))"
    assert set(free_names([source])) == {"Node", "f", "g"}
    with pytest.raises(GoldError):
        free_names(["("])


def test_filters_fit_the_kernels_limits() -> None:
    for namespaces in (True, False):
        for processes in (True, False):
            assert 0 < len(seccomp.for_run(namespaces=namespaces, processes=processes)) // 8 < 4096
    assert 0 < len(seccomp.for_server()) // 8 < 4096


@pytest.mark.parametrize("level", ["ns", "landlock"])
def test_an_ordinary_user_can_run_it(level: str) -> None:
    needs(level)
    if os.geteuid() != 0:
        pytest.skip("this test run is an ordinary user's already")
    python = "/usr/bin/python3"
    prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    seen = subprocess.run(
        [
            *prefix,
            python,
            "-c",
            f"import sys; assert sys.version_info >= (3, 11); open({str(ROOT / 'pyproject.toml')!r})",
        ],
        capture_output=True,
        text=True,
    )
    if seen.returncode:
        pytest.skip(f"an ordinary user can't run {python} 3.11 on this checkout: {seen.stderr.strip()[-200:]}")
    host = started("verifier.close()", level, prefix, python)
    said, _ = host.communicate(timeout=60)
    assert said == f"1.0 {level}\n"


def test_weaker_levels_hold_too(tmp_path: Path) -> None:
    needs("landlock")
    secret = tmp_path / "secret"
    secret.write_text("do not read")
    os.chmod(tmp_path, 0o755)
    attacks = [
        f"open({str(secret)!r}).read()",
        f"open({str(secret)!r}, 'w')",
        "__import__('os').kill(1, 9)",
        f"__import__('os').chmod({str(secret)!r}, 0o777)",
        "__import__('os').fork()",
        "__import__('socket').create_connection(('127.0.0.1', 9))",
        f"open('/proc/{os.getpid()}/environ').read()",
        "open('/etc/passwd').read()",
        f"__import__('os').kill({os.getpid()}, 0)",
        f"__import__('resource').prlimit({os.getpid()}, 0)",
    ]
    program = (
        "import tempfile\nopen('m', 'w').write('x')\ntempfile.mkdtemp()\ndef add(a, b):\n    return open('m').read()"
    )
    with CodeVerifier(isolation="landlock", servers=2) as verifier:
        for attack in attacks:
            verdict = verifier(Problem(tests=ADD), Completion(f"def add(a, b):\n    {attack}\n    return 3"))
            assert verdict.reason in ("RTE", "SV"), (attack, verdict)
            assert "level landlock" in verdict.detail
        assert verifier(Problem(tests={**ADD, "outs": ["x"]}), Completion(program)).reason == "AC"
    assert secret.read_text() == "do not read"


def test_rlimits_alone_must_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_trouble", lambda level: "" if level == "rlimit-only" else "refused")
    with pytest.raises(VerifierError, match=r"can't be isolated on this machine .full: refused"):
        CodeVerifier()(Problem(tests=ADD), Completion(GOOD))
    with pytest.raises(VerifierError, match="'ns' is unavailable here: refused"):
        CodeVerifier(isolation="ns")(Problem(tests=ADD), Completion(GOOD))
    with CodeVerifier(isolation="rlimit-only", servers=1) as verifier:
        assert "level rlimit-only" in verifier(Problem(tests=ADD), Completion(GOOD)).detail


class _Used:
    """A run of which only the clock is used."""

    def __init__(self, wall_s: float, waited_s: float) -> None:
        self.wall_s, self.waited_s, self.killed = wall_s, waited_s, False

    def ended(self) -> bool:
        return False

    def kill(self) -> None:
        self.killed = True

    def progress(self) -> pool.Usage:
        return pool.Usage(0, 0, 0.1, self.wall_s, self.waited_s, 0)


@pytest.mark.parametrize(
    ("elapsed", "begun", "waited", "end"),
    [
        (1.0, 1.0, 0.0, ""),
        (2.5, 2.5, 0.0, "late"),
        (2.5, 2.5, 1.0, ""),
        (2.5, 0.007, 0.0, ""),  # its server was still busy with the folders of the run before
        (4.5, 2.5, 0.0, "late"),
        (19.0, 19.0, 18.0, ""),
        (21.0, 21.0, 20.0, "overloaded"),
        (21.0, 0.1, 0.0, "overloaded"),
        (21.0, 21.0, 3.0, "late"),
    ],
)
def test_assert_style_counts_no_time_without_a_core(elapsed: float, begun: float, waited: float, end: str) -> None:
    candidate, oracle = _Used(begun, waited / 2), _Used(elapsed, waited / 2)
    clock = judge._Clock(candidate, oracle, 2.0)  # type: ignore[arg-type]
    clock._started -= elapsed
    clock._next -= elapsed
    if end == "overloaded":
        with pytest.raises(VerifierError, match="overloaded"):
            clock.look()
    else:
        clock.look()
        assert clock.late is candidate.killed is (end == "late")


STORM = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    try:
        pid = os.fork()
    except OSError:
        time.sleep(0.001)
        continue
    if pid == 0:
        until = time.perf_counter() + 0.004
        while time.perf_counter() < until:
            pass
        os._exit(0)
"""


def test_a_run_gets_no_time_for_crowding_itself() -> None:
    """Nobody waits for its children, so their CPU time can't explain that it waits for a core."""
    needs("ns")
    tests = {"style": "stdin", "inputs": ["3\n"], "outputs": ["9\n"]}
    with CodeVerifier(isolation="ns", servers=1, time_s=1) as verifier:
        verdict = verifier(Problem(tests=tests), Completion(STORM))
    wall = re.search(r"wall ([\d.]+) s", verdict.detail)
    assert verdict.reason == "TLE", verdict
    assert wall is not None
    assert float(wall[1]) < 2.9, verdict  # of 2; earlier half as much again


def test_without_namespaces_no_datagram_is_sent(tmp_path: Path) -> None:
    needs("landlock")
    code = """
import errno, socket
def add(a, b):
    for make in (socket.socket, socket.socketpair):
        try:
            make(socket.AF_UNIX, socket.SOCK_DGRAM)
            return -1
        except OSError as error:
            assert error.errno == errno.EPERM
    one, other = socket.socketpair()
    one.sendall(b"x")
    return a + b if other.recv(1) == b"x" else -2
"""
    for level in ("landlock", "rlimit-only"):
        with CodeVerifier(isolation=level, servers=1) as verifier:
            assert verifier(Problem(tests=ADD), Completion(code)).score == 1


@pytest.mark.parametrize("level", ["ns", "landlock", "rlimit-only"])
def test_segments_semaphores_and_queues_of_other_processes_are_out_of_reach(level: str) -> None:
    needs(level)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    segment, semaphores, queue = libc.shmget(0, 8, 0o1600), libc.semget(0, 1, 0o1600), libc.msgget(0, 0o1600)
    name = f"/verifiers-{os.getpid()}".encode()
    os.close(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None))
    code = f"""
import ctypes
libc = ctypes.CDLL(None)
def add(a, b):
    tried = [libc.shmat({segment}, None, 0), libc.shmctl({segment}, 0, None), libc.semctl({semaphores}, 0, 16, 7),
             libc.semop({semaphores}, bytes(6), 1), libc.semtimedop({semaphores}, bytes(6), 1, None),
             libc.msgsnd({queue}, bytes([1] + [0] * 15), 8, 0), libc.msgrcv({queue}, bytes(16), 8, 0, 0o4000),
             libc.msgctl({queue}, 0, None), libc.mq_unlink({name!r})]
    return a + b if set(tried) == {{-1}} else tried
"""
    try:
        with CodeVerifier(isolation=level, servers=1) as verifier:
            verdict = verifier(Problem(tests=ADD), Completion(code))
    finally:
        left = (
            libc.mq_unlink(name),
            libc.shmctl(segment, 0, None),
            libc.semctl(semaphores, 0, 0),
            libc.msgctl(queue, 0, None),
        )
    assert verdict.score == 1, verdict
    assert left == (0, 0, 0, 0)


@pytest.mark.parametrize("level", ["full", "ns", "landlock"])
def test_a_chosen_package_comes_with_what_it_requires(level: str) -> None:
    needs(level)
    code = "def add(a, b):\n    import sympy\n    return int(sympy.Integer(a) + b)"
    with CodeVerifier(isolation=level, servers=1, packages=["sympy"]) as verifier:
        verdict = verifier(Problem(tests=ADD), Completion(code))
    assert verdict.score == 1, verdict


def test_a_file_keeps_no_hint_of_a_run() -> None:
    needs("ns")
    code = """
import errno, fcntl
def add(a, b):
    try:
        fcntl.fcntl(open("/dev/null"), 1036, (3).to_bytes(8, "little"))  # F_SET_RW_HINT
    except OSError as error:
        return a + b if error.errno == errno.EPERM else -1
"""
    with CodeVerifier(isolation="ns", servers=1) as verifier:
        verdict = verifier(Problem(tests=ADD), Completion(code))
    assert verdict.score == 1, verdict


def test_cpu_time_of_children_that_nobody_waits_for_counts() -> None:
    needs("full")
    code = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def add(a, b):
    for _ in range(8):
        if os.fork() == 0:
            while time.process_time() < 0.2: pass
            os._exit(0)
        try: os.wait()
        except ChildProcessError: pass
    return a + b
"""
    with CodeVerifier(isolation="full", servers=1, time_s=0.5, wall_s=30) as verifier:
        assert verifier(Problem(tests=ADD), Completion(code)).reason == "TLE"
    with CodeVerifier(isolation="full", servers=1, time_s=5, wall_s=30) as verifier:
        assert verifier(Problem(tests=ADD), Completion(code)).reason == "AC"


def test_limits_say_what_is_wrong() -> None:
    assert Limits(time_s=2).wall == 4
    assert Limits(time_s=0.5).wall == 1.5
    assert Limits(time_s=0.5, wall_s=1.5, output_mib=0.5).output_mib == 0.5
    whole = ("memory_mib", "processes", "file_mib", "disk_mib", "inodes", "open_files")
    bad = [("time_s", math.nan), ("wall_s", math.inf), ("processes", -1), ("output_mib", True)]
    for name, value in (*bad, *itertools.product(whole, (100.5, 100.0, True, math.nan, "100"))):
        with pytest.raises(ValueError, match=f"{name} must be a {'whole ' if name in whole else ''}number above 0"):
            Limits(**{name: value})


def test_many_processes_share_one_memory_limit() -> None:
    needs("ns")
    code = """
import os
for _ in range(6):
    if os.fork() == 0:
        block = bytearray(100 << 20)
        for i in range(0, len(block), 4096): block[i] = 1
        import time; time.sleep(3)
        os._exit(0)
for _ in range(6): os.wait()
def add(a, b): return a + b
"""
    for level in ("ns", "full"):
        if level in probe.report().works:
            with CodeVerifier(isolation=level, memory_mib=256, servers=1) as verifier:
                verdict = verifier(Problem(tests=ADD), Completion(code))
                assert verdict.reason in ("MLE", "RTE", "TLE"), verdict
                assert level == "full" or verdict.reason == "MLE", verdict
