"""Runs a submission against tests of each style. Values are compared here, outside the submission's process."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import select
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from verifiers.core import GoldError, VerifierError
from verifiers.sandbox import wire
from verifiers.sandbox.checkers import PROGRAM_ENTRY, CheckerFailedError
from verifiers.sandbox.languages import Language, installed
from verifiers.sandbox.limits import MIB, Limits
from verifiers.sandbox.locks import NO_ADDRESS_LIMIT, POOL_KEEPS_TIME
from verifiers.sandbox.pool import Pool, Run, Usage, finishing
from verifiers.sandbox.spec import AssertTests, FunctionTests, StdinTests
from verifiers.sandbox.threads import threads
from verifiers.sandbox.watch import KILLED_BY_WATCH, PATIENCE, WALL

_SHOWN = 200  # characters of a value in a verdict's detail
_QUICK_S = 0.02  # most runs end within this time: their answers are read together, without a wake-up for each
_CHUNK = 1 << 16
_TRICKLE, _TRICKLE_S = 1 << 12, 0.001  # small pieces are left to accumulate, because each would wake us
_LOOK_S = 0.05
_PATIENCE_S = 0.1  # time for a process to end after its last answer
_TESTS_S = 1.0  # CPU time of the test code's own work, beyond the submission's limit
_ORACLE_S = 0.9  # the oracle's share of the wall clock in assert style
_STDERR_BYTES = 64 << 10
_BUILD = Limits(time_s=10, wall_s=30, memory_mib=1536, processes=64, file_mib=64, disk_mib=256)
_SMALL = 1 << 12  # bytes of an answer that is cheap to read whatever it holds
_MOST_PARTS = 200_000  # parts of an answer that is passed to a checker of the user


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of all tests of one submission."""

    verdict: str  # AC, or the verdict of the first test that failed
    passed: int
    total: int
    text: str = ""  # the first failing test and its result
    usage: Usage | None = None  # of the run that decided
    flags: tuple[str, ...] = ()


class Frames:
    """Reads messages of a run, each of at most `limit` bytes, until its channel or the run itself ends.

    Args:
        look: called now and then while no message arrives.
    """

    def __init__(self, run: Run, limit: int, look: Callable[[], None] | None = None) -> None:
        self._run, self._limit, self._look = run, limit, look
        self.buffer = bytearray()
        self._over = False

    def next(self) -> list[Any] | None:
        """Returns the next message; None at the end. Raises WireError for one that can't be accepted."""
        body = self.next_bytes()
        return None if body is None else as_message(body)

    def next_bytes(self) -> bytes | None:
        if not self._fill(wire.HEADER_SIZE):
            return None
        size = wire.header(self.buffer)
        if size > self._limit:
            raise wire.WireError(f"a message of {size} bytes; the limit is {self._limit}")
        if not self._fill(wire.HEADER_SIZE + size):
            return None
        body = bytes(self.buffer[wire.HEADER_SIZE : wire.HEADER_SIZE + size])
        del self.buffer[: wire.HEADER_SIZE + size]
        return body

    def _fill(self, size: int) -> bool:
        while len(self.buffer) < size:
            try:
                # The kernel closes descriptors that are sent along, because nobody requests them.
                data = self._run.channel.recv(_CHUNK, socket.MSG_DONTWAIT)
            except BlockingIOError:
                if self._over:
                    return False
                self._wait()
                continue
            except OSError:
                return False
            if not data:
                return False
            self.buffer += data
            if len(data) < _TRICKLE and len(self.buffer) < size and not self._over:
                self._over = self._run.ended(_TRICKLE_S)
        return True

    def _wait(self) -> None:
        channel = self._run.channel.fileno()
        if not self._run.wait({channel: select.POLLIN}, _LOOK_S if self._look else None):
            self._over = self._run.ended()
            if self._look:
                self._look()


def as_message(body: bytes) -> list[Any]:
    message = wire.unpack(body)
    if type(message) is not list or not message or type(message[0]) is not str:
        raise wire.WireError("malformed message")
    return message


def _how_it_ended(usage: Usage) -> tuple[str, str, tuple[str, ...]]:
    """Returns verdict, text and flags of a process that sent no answer."""
    if usage.verdict == "SV":
        return "SV", "a forbidden system call", ("denied_syscall",)
    if usage.verdict:
        return usage.verdict, KILLED_BY_WATCH.get(usage.killed, "the limit was reached"), ()
    if usage.signal:
        return "RTE", f"killed by {signal.Signals(usage.signal).name}", ()
    return "EXIT", f"the process ended with status {usage.exit_code} before its call returned", ("premature_exit",)


def judge_function(
    pool: Pool,
    tests: FunctionTests,
    code: str,
    limits: Limits,
    *,
    stop: bool,
    common: bool = False,
    role: str = "candidate",
) -> Outcome:
    """Judges function style: all calls run in one process, in order."""
    job = {"mode": "function", "code": code, "entry": tests.entry_point, "calls": tests.calls, "prefix": tests.prefix,
           "common": common}  # fmt: skip
    test_of = tests.test_of or range(len(tests.calls))
    lacking = Counter(test_of)  # test -> its calls that have not returned the right value
    verdict, text, flags = "AC", "", tuple[str, ...]()
    run = pool.start(role, limits, job)
    over = False
    with finishing(run):
        run.ended(_QUICK_S)
        frames = Frames(run, int(limits.output_mib * MIB))
        for index, test in enumerate(test_of):
            try:
                found = _called(frames.next_bytes(), tests, index)
            except wire.WireError as error:
                found = _untakable(error)
                run.kill()
            if found is None:
                over = True
                break
            lacking[test] -= found[0] == "AC"
            if found[0] != "AC" and verdict == "AC":
                verdict, text, flags = found[0], f"test {test}: {found[1]}", found[2]
            if found[0] != "AC" and (stop or found[3]):
                run.kill()
                break
        usage = run.finish(None if over else _PATIENCE_S)
    if over:
        how = _how_it_ended(usage)
        flags += how[2]
        if verdict == "AC":
            verdict, text = how[0], f"test {test}: {how[1]}"
    elif verdict == "AC" and usage.verdict == "MLE":
        verdict, text = "MLE", "the memory limit was reached"
    passed = sum(not left for left in lacking.values())
    return Outcome(verdict, passed, len(lacking), text, usage, flags)


def run_checker(pool: Pool, program: str, given: Any, expected: Any, got: Any, limits: Limits) -> bool:
    """Runs `check(given, expected, got)` of a program that came with the tests, in a run of its own.

    Raises: GoldError if it raises, ends or returns anything but true or false: the tests are at fault.
    """
    seen: list[Any] = []

    def keep(_given: Any, _expected: Any, answer: Any) -> bool:
        seen.append(answer)
        return type(answer) is bool

    try:
        arguments = [wire.encode(value, _refuse) for value in (given, expected, got)]
    except wire.WireError as error:
        raise CheckerFailedError(f"the tests' own checker can't receive its values: {error}") from error
    tests = FunctionTests(
        PROGRAM_ENTRY,
        [[arguments, []]],
        [()],
        [()],
        keep,
    )
    # Not as a candidate: a candidate is waiting for this answer, and may hold the only server for candidates.
    outcome = judge_function(pool, tests, program, limits, stop=True, role="oracle")
    if outcome.verdict != "AC":
        said = f"{outcome.verdict} {outcome.text[:_SHOWN]}"
        raise CheckerFailedError(f"the tests' own checker returned neither true nor false: {said}")
    return bool(seen[0])


def _refuse(value: Any) -> Any:
    raise wire.WireError(f"{type(value).__name__} is not data")


def _called(body: bytes | None, tests: FunctionTests, index: int) -> tuple[str, str, tuple[str, ...], bool] | None:
    """Returns (verdict, text, flags, whether no further test can run) of an answer; None at the end of the process."""
    if body is None:
        return None
    if len(body) > _SMALL and (too_large := _too_large(body, tests, index)):
        if not body.startswith(b'["ok",'):
            raise wire.WireError(f"a message of {len(body)} bytes; the limit is {_SMALL}")
        return too_large, f"{_call(tests, index)} returned far more than expected: {len(body)} bytes", (), False
    match as_message(body):
        case ["ok", raw]:
            if type(raw) is dict and list(raw) == ["o"]:
                shown = f"returned {str(raw['o'])[:100]}, which is not data"
                return "WA", f"{_call(tests, index)} {shown}", ("not_data",), False
            try:
                got = wire.decode(raw, _no_data)
            except _NoDataError as error:
                return (
                    "WA",
                    f"{_call(tests, index)} returned a value that contains {error}, which is not data",
                    ("not_data",),
                    False,
                )
            if tests.check(tests.given[index], tests.outs[index], got):
                return "AC", "", (), False
            wanted = _shown(tests.outs[index])
            return "WA", f"{_call(tests, index)} returned {_shown(got)}, expected {wanted}", (), False
        case ["raised", str(verdict), [str(name), *_], str(reason)]:
            verdict = verdict if verdict in ("RTE", "EXIT", "MLE") else "RTE"
            flags = ("premature_exit",) if verdict == "EXIT" else ()
            return verdict, f"{_call(tests, index)} raised {name[:100]}: {reason[:500]}", flags, False
        case ["bad", str(reason)]:
            return "WA", f"{_call(tests, index)} returned a value that can't be sent: {reason[:200]}", (), False
        case ["load", "CE", str(reason)]:
            return "CE", reason[:1000], (), True
        case ["load", str(verdict), [str(name), *_], str(reason)]:
            verdict = verdict if verdict in ("RTE", "EXIT", "MLE") else "RTE"
            flags = ("premature_exit",) if verdict == "EXIT" else ()
            return verdict, f"while loading: {name[:100]}: {reason[:1000]}", flags, True
    raise wire.WireError("malformed message")


def _too_large(body: bytes, tests: FunctionTests, index: int) -> str:
    """Returns the verdict on a message that holds more than a right answer can; "" if it doesn't.

    It is determined without parsing: our work must be bounded by the expected value, not by what a submission sends.
    """
    right = wire.pack(wire.encode(tests.outs[index], repr))
    parts, most = _parts(body), _parts(right)
    if tests.own_checker:
        return "OLE" if parts > max(_MOST_PARTS, 4 * most) else ""
    return "WA" if len(body) > 4 * len(right) + 256 * most + _SMALL or parts > 4 * most + _SMALL else ""


def _parts(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


class _NoDataError(Exception):
    """A value contains an object of the submission's own class."""


def _no_data(tag: str, body: Any) -> Any:
    if tag == "o":
        raise _NoDataError(str(body)[:100])
    return wire.no_reference(tag, body)


def _untakable(error: wire.WireError) -> tuple[str, str, tuple[str, ...], bool]:
    if "limit is" in str(error):
        return "OLE", str(error), (), True
    return "SV", str(error), ("forged_message",), True


def judge_asserts(
    pool: Pool, tests: AssertTests, code: str, limits: Limits, *, stop: bool, common: bool = False
) -> Outcome:
    """Judges assert style: the tests run in an oracle, which calls the submission in its own process.

    Tests that only compare calls with literals need no oracle: they are judged as function style, by Python's `==`.
    """
    patient = _patient(limits)
    if tests.compared is not None:
        return judge_function(pool, tests.compared, code, patient, stop=stop, common=common)
    total = len(tests.tests)
    output = int(limits.output_mib * MIB)
    trusted = Limits(
        time_s=limits.time_s + _TESTS_S, memory_mib=max(1024, limits.memory_mib), output_mib=limits.output_mib
    )
    prints = any("stdout" in source for source in (*tests.setup, *tests.tests))
    served = {"mode": "function", "code": code, "entry": tests.entry_point, "prefix": tests.prefix, "common": common,
              "prints": prints}  # fmt: skip
    asked = {"mode": "oracle", "entry": tests.entry_point, "names": tests.names.submission,
             "supplied": tests.names.library, "setup": tests.setup, "tests": tests.tests, "stop": stop,
             "limit": output}  # fmt: skip
    server = pool.take("oracle")  # first, because starting it may take longer than the submission's time limit
    try:
        candidate = pool.start("candidate", patient, served, flags=POOL_KEEPS_TIME)
    except BaseException:
        pool.give_back("oracle", server)
        raise
    with finishing(candidate):
        oracle = pool.start_on(
            server, "oracle", trusted, asked, extra=candidate.channel.fileno(), flags=POOL_KEEPS_TIME
        )
        with finishing(oracle):
            clock = _Clock(candidate, oracle, patient.wall)
            oracle.ended(_QUICK_S)
            frames = Frames(oracle, 64 * MIB, clock.look)
            try:
                at, said = None, frames.next()
                while said is not None and said[0] == "at":
                    at, said = said[1], frames.next()
            except wire.WireError as error:
                raise VerifierError(f"the process that runs the tests: {error}") from error
            if said is not None:
                clock.hang_up()
            trusted_usage = oracle.finish(_PATIENCE_S if said is not None else None)
        if said is None:
            candidate.kill()
        usage = candidate.finish(_PATIENCE_S)
    if clock.late:
        usage = replace(usage, killed=WALL)
    if said is None:
        return _without_oracle(usage, trusted_usage, at, total)
    if said[0] == "gold":
        raise GoldError(f"the tests are at fault: {said[1]}")
    _, results, stopped, calls = said
    return _counted(tests, results, stopped, calls, total, usage)


@functools.lru_cache(64)
def _patient(limits: Limits) -> Limits:
    return replace(limits, wall_s=limits.wall + _ORACLE_S)


class _Clock:
    """The wall clock of assert style, in which two processes take turns.

    Time that either waited for a core, or for its server to begin with it, does not count.
    It also tells the oracle when the submission has ended, even if another process holds an end of their channel.
    """

    def __init__(self, candidate: Run, oracle: Run, wall_s: float) -> None:
        self._candidate, self._oracle, self._wall_s = candidate, oracle, wall_s
        self._started = time.monotonic()
        self._next = self._started + wall_s
        self._told = False
        self.late = False

    def look(self) -> None:
        if self._candidate.ended():
            self.hang_up()
        now = time.monotonic()
        if now < self._next:
            return
        if self.late:  # the oracle had time to report its progress
            self._oracle.kill()
            self._next = math.inf
            return
        elapsed = now - self._started
        used = [run.progress() for run in (self._candidate, self._oracle)]
        begun = [usage for usage in used if usage]
        waited = sum(usage.waited_s for usage in begun)
        waited += max((elapsed - usage.wall_s for usage in begun), default=0.0)
        left = self._wall_s - elapsed + waited
        if left > 0 and elapsed >= PATIENCE * self._wall_s:
            raise VerifierError(
                f"the machine is overloaded: the tests waited {elapsed - self._wall_s:.1f} s for a core"
            )
        self._next = now + max(left, _LOOK_S)
        if left <= 0:
            self.late = True
            self._candidate.kill()
            self._next = now + _ORACLE_S

    def hang_up(self) -> None:
        if not self._told:
            self._told = True
            with contextlib.suppress(OSError):
                self._candidate.channel.shutdown(socket.SHUT_RDWR)


def _without_oracle(usage: Usage, trusted: Usage, at: int | None, total: int) -> Outcome:
    """Returns the outcome if the trusted side ended early: caused by the submission's values, if it had any.

    `at` is the test that was running, or None if none had begun.
    """
    test = f"test {at or 0}"
    if usage.killed == WALL:
        return Outcome("TLE", 0, total, f"{test}: {KILLED_BY_WATCH[WALL]}", usage)
    if trusted.verdict in ("TLE", "MLE"):
        lacking = "time" if trusted.verdict == "TLE" else "memory"
        text = f"{test}: the test ran out of {lacking} on the submission's values"
        return Outcome(trusted.verdict, 0, total, text, usage)
    if at is not None:
        text = f"{test}: the test's process ended with status {trusted.status} on the submission's values"
        return Outcome("RTE", 0, total, text, usage)
    raise VerifierError(f"the process that runs the tests ended with status {trusted.status}")


def _counted(
    tests: AssertTests, results: list[list[str]], stopped: list[str], calls: int, total: int, usage: Usage
) -> Outcome:
    passed = sum(verdict == "AC" for verdict, _ in results)
    failed = next(((index, result[0], result[1]) for index, result in enumerate(results) if result[0] != "AC"), None)
    flags: tuple[str, ...] = ()
    if failed is None and not stopped:
        if calls == 0:
            raise GoldError("no test ever calls the submission")
        if usage.verdict == "MLE":
            return Outcome("MLE", passed, total, "the memory limit was reached", usage)
        return Outcome("AC", passed, total, "", usage)
    if failed is not None:
        index, verdict, text = failed
    else:
        index = len(results)
        verdict, text = stopped
        if verdict == "EXIT":
            if usage.killed or usage.signal or "status" in text or "ended" in text:
                verdict, text, flags = _how_it_ended(usage)
            else:
                flags = ("premature_exit",)
        elif verdict == "SV":
            flags = ("forged_message",)
    where = tests.tests[index] if index < total else ""
    return Outcome(verdict, passed, total, f"test {index}: {_short(where)}: {text}", usage, flags)


def judge_stdin(
    pool: Pool, tests: StdinTests, code: str, limits: Limits, language: Language, *, stop: bool, parallel: int
) -> Outcome:
    """Judges standard input style: a process per input, several at a time; the first failure decides."""
    total = len(tests.inputs)
    binary = b""
    if language.build:
        built = _built(pool, code, language)
        if isinstance(built, Outcome):
            return replace(built, total=total)
        binary = built
    job, address_limit = _program_job(code, language, limits)
    outcomes: dict[int, Outcome] = {}
    trouble: list[BaseException] = []
    order = iter(range(total))
    lock = threading.Lock()

    def work() -> None:
        while not trouble:
            with lock:
                index = next(order, None)
                if index is None or (stop and any(done.verdict != "AC" for done in outcomes.values())):
                    return
            try:
                done = _one_input(pool, tests, index, job, binary, limits, address_limit)
            except BaseException as error:  # raised again below, in the caller's thread
                trouble.append(error)
                return
            with lock:
                outcomes[index] = done

    with threads(work, min(parallel, total) - 1):
        work()
    if trouble:
        raise trouble[0]
    failed = min((index for index, done in outcomes.items() if done.verdict != "AC"), default=None)
    passed = sum(done.verdict == "AC" for done in outcomes.values())
    decisive = outcomes[failed if failed is not None else max(outcomes)]
    flags = tuple(dict.fromkeys(flag for done in outcomes.values() for flag in done.flags))
    return replace(decisive, passed=passed, total=total, flags=flags)


def _program_job(code: str, language: Language, limits: Limits) -> tuple[dict[str, Any], bool]:
    if language.name == "python":
        return {"mode": "program", "code": code}, True
    if language.build:
        return {"mode": "execute", "binary": True, "argv": ["program"], "files": {}}, language.address_limit
    command, *rest = (part.format(memory=limits.memory_mib) for part in language.start)
    job = {"mode": "execute", "binary": False, "argv": [installed(command), *rest], "files": {language.file: code}}
    return job, language.address_limit


def _built(pool: Pool, code: str, language: Language) -> bytes | Outcome:
    """Returns the compiled program, or the outcome CE. Raises VerifierError at a level where no compiler can run."""
    if pool.level not in ("full", "ns"):
        raise VerifierError(f"level {pool.level} has no processes for a compiler: {language.name} needs 'ns' or 'full'")
    command = [installed(language.build[0]), *language.build[1:]]
    code = language.preamble + code
    job = {"mode": "compile", "code": code, "file": language.file, "command": command, "output": "program"}
    run = pool.start("candidate", _BUILD, job)
    with finishing(run):
        frames = Frames(run, _BUILD.file_mib * MIB)
        said = frames.next()
        binary = frames.next_bytes() if said is not None and said[0] == "built" else None
        usage = run.finish()
    if binary is not None:
        return binary
    if said is not None and said[0] == "load":
        return Outcome("CE", 0, 0, str(said[2])[:2000], usage)
    how = usage.verdict or f"status {usage.status}"
    return Outcome("CE", 0, 0, f"the compiler was stopped: {how}", usage)


def _one_input(
    pool: Pool, tests: StdinTests, index: int, job: dict[str, Any], binary: bytes, limits: Limits, address_limit: bool
) -> Outcome:
    opened: list[int] = []

    def own(*descriptors: int) -> tuple[int, ...]:
        opened.extend(descriptors)
        return descriptors

    try:
        (source,) = own(_in_memory("stdin", tests.inputs[index].encode("utf-8", "surrogateescape")))
        program = own(_in_memory("program", binary, sealed=True))[0] if binary else None
        out, out_end = own(*os.pipe2(os.O_CLOEXEC))
        err, err_end = own(*os.pipe2(os.O_CLOEXEC))
        run = pool.start(
            "candidate",
            limits,
            job,
            stdin=source,
            stdout=out_end,
            stderr=err_end,
            extra=program,
            flags=0 if address_limit else NO_ADDRESS_LIMIT,
        )
        with finishing(run):
            for descriptor in (out_end, err_end):
                os.close(descriptor)
                opened.remove(descriptor)
            streams, too_much = _drained(run, out, err, int(limits.output_mib * MIB))
            while not run.ended(None):
                pass
            said, odd = _reports(run)
            usage = run.finish()
    finally:
        for descriptor in opened:
            os.close(descriptor)
    printed, errors = (stream.decode("utf-8", "replace") for stream in streams)
    flags: tuple[str, ...] = ("odd_descriptor",) if odd else ()
    verdict, text = _program_verdict(usage, said, errors, too_much)
    if verdict == "SV":
        flags += ("denied_syscall",)
    if verdict == "AC":
        verdict = tests.check(tests.inputs[index], tests.outputs[index], printed)
        if verdict != "AC":
            text = f"printed {_shown(printed)}, expected {_shown(tests.outputs[index])}"
    return Outcome(verdict, int(verdict == "AC"), 1, text and f"test {index}: {text}", usage, flags)


def _program_verdict(usage: Usage, said: list[Any] | None, errors: str, too_much: bool) -> tuple[str, str]:
    last = errors.strip().rpartition("\n")[2][:500]
    if too_much:
        return "OLE", "more output than allowed"
    if usage.verdict:
        return usage.verdict, _how_it_ended(usage)[1]
    if said is not None and usage.status:
        return said[1], str(said[2])[:1000]
    if usage.status and ("bad_alloc" in last or "heap out of memory" in errors or last.startswith("MemoryError")):
        return "MLE", last
    if usage.signal:
        return "RTE", f"killed by {signal.Signals(usage.signal).name}"
    if usage.exit_code:
        return "RTE", f"ended with status {usage.exit_code}: {last}"
    return "AC", ""


def _drained(run: Run, out: int, err: int, limit: int) -> tuple[tuple[bytes, bytes], bool]:
    """Returns both streams once both are closed or the run has ended; a run that prints more than `limit` is killed.

    The end of a stream alone may never come: the run may have sent it elsewhere, or a fork of this process holds it.
    """
    parts: dict[int, bytearray] = {out: bytearray(), err: bytearray()}
    kept = {out: limit, err: min(limit, _STDERR_BYTES)}
    total = {out: 0, err: 0}
    too_much = over = False
    still = {out, err}
    for descriptor in still:
        os.set_blocking(descriptor, False)
    while still:
        ready = run.wait(dict.fromkeys(still, select.POLLIN)) if not over else list(still)
        if not ready:
            over = run.ended()
        trickle = bool(ready)
        for descriptor in ready:
            try:
                data = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                data = b""
            if not data:
                still.discard(descriptor)
            trickle &= 0 < len(data) < _TRICKLE
            total[descriptor] += len(data)
            parts[descriptor] += data[: max(0, kept[descriptor] - len(parts[descriptor]))]
            if total[descriptor] > limit and not too_much:
                too_much = True
                run.kill()
        if trickle and not over:
            over = run.ended(_TRICKLE_S)
    return (bytes(parts[out]), bytes(parts[err])), too_much


def _reports(run: Run) -> tuple[list[Any] | None, bool]:
    """Returns the harness's message beside the streams, and whether other data was written there. The run has ended.

    The program can write there too, so nothing in it is treated as an infrastructure error.
    """
    frames = Frames(run, 1 << 16)
    said: list[Any] | None = None
    try:
        while (message := frames.next()) is not None:
            match message:
                case ["load", "CE", str()] | ["load", "MLE", list(), str()] if said is None:
                    said = message
                case _:
                    return said, True
    except wire.WireError:
        return said, True
    return said, bool(frames.buffer)


def _in_memory(name: str, data: bytes, *, sealed: bool = False) -> int:
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | (os.MFD_ALLOW_SEALING if sealed else 0))
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _call(tests: FunctionTests, index: int) -> str:
    return _short(f"{tests.entry_point}({', '.join(_shown(arg) for arg in tests.given[index])})")


class _EnoughError(Exception):
    """Enough is shown."""


def _shown(value: Any) -> str:
    """Returns the beginning of a value for a reader; always fast."""
    parts: list[str] = []

    def put(text: str) -> None:
        parts.append(text)
        if sum(map(len, parts)) > _SHOWN:
            raise _EnoughError

    def walk(item: Any) -> None:
        if isinstance(item, str | bytes | bytearray):
            put(repr(item[: _SHOWN + 1]))
        elif isinstance(item, int) and item.bit_length() > 600:
            put(f"an integer of {item.bit_length()} bits")
        elif isinstance(item, list | tuple | set | frozenset | dict):
            if len(item) > 50:
                put(f"{type(item).__name__} of {len(item)}")
                return
            opening, closing = "[]" if isinstance(item, list) else "()" if isinstance(item, tuple) else "{}"
            put(opening if item or not isinstance(item, set | frozenset) else "set(")
            for number, one in enumerate(item):
                put(", " if number else "")
                walk(one)
                if isinstance(item, dict):
                    put(": ")
                    walk(item[one])
            put("," if isinstance(item, tuple) and len(item) == 1 else "")
            put(closing if item or not isinstance(item, set | frozenset) else ")")
        else:
            try:
                put(repr(item))
            except ValueError:  # a fraction of integers with too many digits
                put(type(item).__name__)

    with contextlib.suppress(_EnoughError):
        walk(value)
    return _short("".join(parts))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
