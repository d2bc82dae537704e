"""The sandbox itself: what can be read in it, what it leaves behind, who may run it."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from processes_for_tests import descendants

from verifiers import Completion, GoldError, Problem, VerifierError
from verifiers.sandbox import CodeVerifier, Limits, judge, pool, probe, seccomp, wire
from verifiers.sandbox.names import free_names

ROOT = Path(__file__).resolve().parents[2]
ADD = {"style": "function", "entry_point": "add", "args": [[1, 2]], "outs": [3]}
GOOD = "def add(a, b): return a + b"


def needs(level: str) -> None:
    if level not in probe.report().works:
        pytest.skip(f"isolation level '{level}': {probe.report().missing[level]}")


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


def memory_of(pid: int) -> bytes:
    """Returns everything a process can read of itself; nothing for one that has ended."""
    found = []
    with (
        contextlib.suppress(FileNotFoundError, ProcessLookupError),
        open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as maps,
        open(f"/proc/{pid}/mem", "rb", 0) as memory,
    ):
        for line in maps:
            addresses, permissions, *_ = line.split()
            if "r" not in permissions:
                continue
            first, last = (int(part, 16) for part in addresses.split("-"))
            with contextlib.suppress(OSError, ValueError):
                memory.seek(first)
                found.append(memory.read(last - first))
    return b"".join(found)


@pytest.mark.parametrize("style", ["function", "literals", "asserts", "stdin"])
def test_expected_values_are_in_no_untrusted_memory(style: str) -> None:
    """A canary in each trusted place is found at most in the oracle, never in a candidate or its server."""
    if os.geteuid() != 0:
        pytest.skip("reading the memory of another process needs root")
    needs("ns")
    canary = "canary" + secrets.token_hex(12)
    marker = "marker" + secrets.token_hex(12)
    code = f"import time\nmark = {marker!r}\ndef add(a, b):\n    time.sleep(1.5)\n    return a + b\n"
    tests: dict[str, dict[str, Any]] = {
        "function": {**ADD, "outs": [canary]},
        "asserts": {
            "style": "asserts",
            "entry_point": "add",
            "setup": f"want = {canary!r}",
            "tests": [f"found = add(1, 2)\nassert found == {canary!r}"],
        },
        "literals": {"style": "asserts", "entry_point": "add", "tests": [f"assert add(1, 2) == {canary!r}"]},
        "stdin": {"style": "stdin", "inputs": ["1 2"], "outputs": [canary]},
    }
    code += "add(1, 2)" if style == "stdin" else ""
    others = set(descendants(os.getpid()))  # of other tests; reading them takes longer than a run
    with CodeVerifier(servers=1) as verifier:
        # What is being started is for a moment a copy of this process.
        verdicts = [verifier(Problem(tests=tests[style]), Completion(GOOD))]
        # Twice: a server that has kept anything of the first run would hand it to the second. Again where a look at all
        # that memory took longer than the run, on a busy machine.
        seen = 0
        for _ in range(30):
            thread = threading.Thread(
                target=lambda: verdicts.append(verifier(Problem(tests=tests[style]), Completion(code)))
            )
            thread.start()
            complete = False
            while thread.is_alive():  # looked at again and again: when a run has begun depends on the machine
                images = {pid: memory_of(pid) for pid in descendants(os.getpid()) if pid not in others}
                servers = [pid for pid in images if descendants(pid)]
                with_marker = {pid for pid, image in images.items() if marker.encode() in image}
                with_canary = {pid for pid, image in images.items() if canary.encode() in image}
                assert not with_marker & with_canary
                # Only the oracle's run may hold it, and only in assert style; its server never does.
                assert len(with_canary) <= (style == "asserts")
                assert not set(servers) & (with_canary | with_marker)
                complete |= bool(with_marker) and len(with_canary) == (style == "asserts")
                thread.join(0.1)
            seen += complete
            if seen == 2:
                break
        assert seen == 2, "the scan does not find what must be there"
        assert all(verdict.score == 0 for verdict in verdicts)


SCAN = """
import ctypes, os
def add(a, b):
    # Reads every mapped page near the heap through a pipe: a bad address is an error there, not a crash.
    libc = ctypes.CDLL(None, use_errno=True)
    r, w = os.pipe()
    drow = b"@DROW@"  # backwards, so that it does not find itself
    hits = pages = 0
    for start in {id(object()) & ~0xFFFFFFF, id([]) & ~0xFFFFFFF, ctypes.addressof(ctypes.c_int()) & ~0xFFFFFFF}:
        for address in range(start, start + (1 << 28), 4096):
            if libc.write(w, ctypes.c_void_p(address), 4096) == 4096:
                pages += 1
                hits += drow in os.read(r, 4096)[::-1]
    return [pages > 100, hits]
"""


def test_a_program_that_scans_its_own_memory_finds_no_test() -> None:
    needs("ns")
    word = secrets.token_hex(8)
    tests = {
        "style": "asserts",
        "entry_point": "add",
        "tests": [f"r = add(1, 2)\nassert r == [True, 0], 'canary-{word}'"],
    }
    with CodeVerifier(servers=1, time_s=10) as verifier:
        verdict = verifier(Problem(tests=tests), Completion(SCAN.replace("@DROW@", f"canary-{word}"[::-1])))
        assert verdict.reason == "AC", verdict.detail


HOST = """
import sys, time, os
sys.path.insert(0, {root!r})
from verifiers import Completion, Problem
from verifiers.sandbox import CodeVerifier
verifier = CodeVerifier(servers=2, isolation={level!r})
tests = {{"style": "function", "entry_point": "f", "args": [[1]], "outs": [2]}}
verdict = verifier(Problem(tests=tests), Completion("def f(x): return x + 1"))
print(verdict.score, verifier.level, flush=True)
{then}
"""


def started(then: str, level: str = "auto", prefix: tuple[str, ...] = (), python: str = sys.executable) -> Any:
    code = HOST.format(root=str(ROOT), level=level, then=then)
    return subprocess.Popen([*prefix, python, "-c", code], stdout=subprocess.PIPE, text=True, cwd="/")


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


class _Used:
    """A run of which only the clock is used."""

    def __init__(self, waited_s: float) -> None:
        self.waited_s, self.killed = waited_s, False

    def ended(self) -> bool:
        return False

    def kill(self) -> None:
        self.killed = True

    def progress(self) -> pool.Usage:
        return pool.Usage(0, 0, 0.1, 0.0, self.waited_s, 0)


@pytest.mark.parametrize(
    ("elapsed", "waited", "end"),
    [
        (1.0, 0.0, ""),
        (2.5, 0.0, "late"),
        (2.5, 1.0, ""),
        (19.0, 18.0, ""),
        (21.0, 20.0, "overloaded"),
        (21.0, 3.0, "late"),
    ],
)
def test_assert_style_counts_no_time_without_a_core(elapsed: float, waited: float, end: str) -> None:
    candidate, oracle = _Used(waited / 2), _Used(waited / 2)
    clock = judge._Clock(candidate, oracle, 2.0)  # type: ignore[arg-type]
    clock._started -= elapsed
    clock._next -= elapsed
    if end == "overloaded":
        with pytest.raises(VerifierError, match="overloaded"):
            clock.look()
    else:
        clock.look()
        assert clock.late is candidate.killed is (end == "late")


def test_of_the_machine_only_what_runs_need_is_readable() -> None:
    paths = ["/usr/local/share", "/usr/share/doc", "/usr/src", "/usr/games", "/srv", "/proc", "/sys", "/etc/hostname"]
    code = f"import os\ndef add(a, b): return [path for path in {paths} if os.path.exists(path)]"
    needs("ns")
    with CodeVerifier(isolation="ns", servers=1) as verifier:
        assert verifier(Problem(tests={**ADD, "outs": [[]]}), Completion(code)).reason == "AC"


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


def test_the_trainers_secrets_are_not_in_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hidden")
    code = "import os, sys\ndef add(a, b): return sorted(set(os.environ) & {'API_TOKEN', 'USER', 'PYTHONPATH'})"
    with CodeVerifier(servers=1) as verifier:
        assert verifier(Problem(tests={**ADD, "outs": [[]]}), Completion(code)).reason == "AC"


def test_closing_twice_and_using_again() -> None:
    verifier = CodeVerifier(servers=1)
    for _ in range(2):
        assert verifier(Problem(tests=ADD), Completion(GOOD)).score == 1
        verifier.close()
        verifier.close()


def test_limits_say_what_is_wrong() -> None:
    assert Limits(time_s=2).wall == 4
    assert Limits(time_s=0.5).wall == 1.5
    for bad in ({"time_s": math.nan}, {"processes": -1}, {"memory_mib": True}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            Limits(**bad)


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
