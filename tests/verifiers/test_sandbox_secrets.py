"""What a submission can read: no expected value, no secret, of the machine what runs need."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from typing import Any

import pytest
from processes_for_tests import descendants
from sandbox_for_tests import ADD, GOOD, needs

from verifiers import Completion, Problem
from verifiers.sandbox import CodeVerifier


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


def test_of_the_machine_only_what_runs_need_is_readable() -> None:
    paths = ["/usr/local/share", "/usr/share/doc", "/usr/src", "/usr/games", "/srv", "/proc", "/sys", "/etc/hostname"]
    code = f"import os\ndef add(a, b): return [path for path in {paths} if os.path.exists(path)]"
    needs("ns")
    with CodeVerifier(isolation="ns", servers=1) as verifier:
        assert verifier(Problem(tests={**ADD, "outs": [[]]}), Completion(code)).reason == "AC"


def test_the_trainers_secrets_are_not_in_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hidden")
    code = "import os, sys\ndef add(a, b): return sorted(set(os.environ) & {'API_TOKEN', 'USER', 'PYTHONPATH'})"
    with CodeVerifier(servers=1) as verifier:
        assert verifier(Problem(tests={**ADD, "outs": [[]]}), Completion(code)).reason == "AC"
