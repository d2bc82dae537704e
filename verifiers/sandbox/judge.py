"""Runs a submission against tests of each style. Values are compared here, outside the process that made them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from verifiers.core import GoldError, VerifierError
from verifiers.sandbox import wire
from verifiers.sandbox.languages import Language, installed
from verifiers.sandbox.limits import MIB, Limits
from verifiers.sandbox.pool import Pool, Run, Usage
from verifiers.sandbox.spec import AssertTests, FunctionTests, StdinTests
from verifiers.sandbox.watch import KILLED_BY_WATCH, WALL

_SHOWN = 200  # characters of a value in a verdict's detail
_QUICK_S = 0.02  # most runs are over by then: their answers are read together, instead of waking us with each
_PATIENCE_S = 0.1  # for a process to end after its last answer
_TESTS_S = 1.0  # CPU time of the test code's own work, beyond what the submission may take
_ORACLE_S = 0.9  # the oracle's share of the wall clock in assert style
_STDERR_BYTES = 64 << 10
_BUILD = Limits(time_s=10, wall_s=30, memory_mib=1536, processes=64, file_mib=64, disk_mib=256)
_RAN_OUT = ("TLE", "MLE", "OLE", "SV")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What all tests of one submission came to."""

    verdict: str  # AC, or that of the first test that failed
    passed: int
    total: int
    text: str = ""  # the first failing test and what it gave
    usage: Usage | None = None  # of the run that decided
    flags: tuple[str, ...] = ()


class _Frames:
    """Messages of an untrusted process, each at most `limit` bytes."""

    def __init__(self, channel: socket.socket, limit: int) -> None:
        self._channel, self._limit = channel, limit
        self._buffer = bytearray()

    def next(self) -> list[Any] | None:
        """A message, None at the end. Raises WireError for one that can't be taken."""
        body = self.next_bytes()
        if body is None:
            return None
        message = wire.unpack(body)
        if type(message) is not list or not message or type(message[0]) is not str:
            raise wire.WireError("malformed message")
        return message

    def next_bytes(self) -> bytes | None:
        if not self._fill(wire.HEADER_SIZE):
            return None
        size = wire.header(self._buffer)
        if size > self._limit:
            raise wire.WireError(f"a message of {size} bytes; the limit is {self._limit}")
        if not self._fill(wire.HEADER_SIZE + size):
            return None
        body = bytes(self._buffer[wire.HEADER_SIZE : wire.HEADER_SIZE + size])
        del self._buffer[: wire.HEADER_SIZE + size]
        return body

    def _fill(self, size: int) -> bool:
        while len(self._buffer) < size:
            try:
                data = self._channel.recv(1 << 16)
            except TimeoutError as error:
                raise VerifierError("a sandbox server does not answer") from error
            except OSError:
                return False
            if not data:
                return False
            self._buffer += data
        return True


@contextlib.contextmanager
def _ended(run: Run) -> Iterator[None]:
    """However the block is left, the run is over and its server is back."""
    try:
        yield
    except BaseException:
        run.kill()
        with contextlib.suppress(VerifierError):
            run.finish()
        raise


def _send(run: Run, job: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # it died meanwhile: the end of the run tells how
        run.channel.sendall(wire.pack(job))


def _how_it_ended(usage: Usage) -> tuple[str, str, tuple[str, ...]]:
    """Verdict, text and flags of a process that gave no answer."""
    if usage.verdict == "SV":
        return "SV", "a forbidden system call", ("denied_syscall",)
    if usage.verdict:
        return usage.verdict, KILLED_BY_WATCH.get(usage.killed, "the limit was reached"), ()
    if usage.signal:
        return "RTE", f"killed by {signal.Signals(usage.signal).name}", ()
    return "EXIT", f"the process ended with status {usage.exit_code} before its call returned", ("premature_exit",)


def judge_function(pool: Pool, tests: FunctionTests, code: str, limits: Limits, *, stop: bool) -> Outcome:
    """Function style: all calls in one process, in order."""
    job = {"mode": "function", "code": code, "entry": tests.entry_point, "calls": tests.calls, "prefix": tests.prefix}
    total, passed = len(tests.calls), 0
    verdict, text, flags = "AC", "", tuple[str, ...]()
    run = pool.start("candidate", limits)
    ended = False
    with _ended(run):
        _send(run, job)
        run.ends_within(_QUICK_S)
        frames = _Frames(run.channel, int(limits.output_mib * MIB))
        for index in range(total):
            try:
                found = _called(frames.next(), tests, index)
            except wire.WireError as error:
                found = _untakable(error)
                run.kill()
            if found is None:
                ended = True
                break
            passed += found[0] == "AC"
            if found[0] != "AC" and verdict == "AC":
                verdict, text, flags = found[0], f"test {index}: {found[1]}", found[2]
            if found[0] != "AC" and (stop or found[3]):
                run.kill()
                break
        usage = run.finish(None if ended else _PATIENCE_S)
    if ended:
        how = _how_it_ended(usage)
        flags += how[2]
        if verdict == "AC":
            verdict, text = how[0], f"test {passed}: {how[1]}"
    elif verdict == "AC" and usage.verdict == "MLE":
        verdict, text = "MLE", "the memory limit was reached"
    return Outcome(verdict, passed, total, text, usage, flags)


def _called(
    message: list[Any] | None, tests: FunctionTests, index: int
) -> tuple[str, str, tuple[str, ...], bool] | None:
    """(verdict, text, flags, no further test can run) of one answer; None at the end of the process."""
    if message is None:
        return None
    match message:
        case ["ok", raw]:
            if type(raw) is dict and list(raw) == ["o"]:
                shown = f"returned {str(raw['o'])[:100]}, which is no data"
                return "WA", f"{_call(tests, index)} {shown}", ("not_data",), False
            try:
                got = wire.decode(raw, _no_data)
            except _NoDataError as error:
                return (
                    "WA",
                    f"{_call(tests, index)} returned {error} in what it gave, which is no data",
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
            return "WA", f"{_call(tests, index)} returned what can't be sent: {reason[:200]}", (), False
        case ["load", "CE", str(reason)]:
            return "CE", reason[:1000], (), True
        case ["load", str(verdict), [str(name), *_], str(reason)]:
            verdict = verdict if verdict in ("RTE", "EXIT", "MLE") else "RTE"
            flags = ("premature_exit",) if verdict == "EXIT" else ()
            return verdict, f"while loading: {name[:100]}: {reason[:1000]}", flags, True
    raise wire.WireError("malformed message")


class _NoDataError(Exception):
    """An object of the submission's own class stands in a value."""


def _no_data(tag: str, body: Any) -> Any:
    if tag == "o":
        raise _NoDataError(str(body)[:100])
    return wire.no_reference(tag, body)


def _untakable(error: wire.WireError) -> tuple[str, str, tuple[str, ...], bool]:
    if "limit is" in str(error):
        return "OLE", str(error), (), True
    return "SV", str(error), ("forged_message",), True


def judge_asserts(pool: Pool, tests: AssertTests, code: str, limits: Limits, *, stop: bool) -> Outcome:
    """Assert style: the tests run in an oracle, which calls the submission in its own process."""
    total = len(tests.tests)
    output = int(limits.output_mib * MIB)
    # The submission's wall clock also runs while the oracle starts and its test code does its own work.
    patient = replace(limits, wall_s=limits.wall + _ORACLE_S)
    trusted = Limits(
        time_s=limits.time_s + _TESTS_S, memory_mib=max(1024, limits.memory_mib), output_mib=limits.output_mib
    )
    candidate = pool.start("candidate", patient)
    with _ended(candidate):
        _send(candidate, {"mode": "function", "code": code, "entry": tests.entry_point, "prefix": tests.prefix})
        candidate.channel.settimeout(None)  # the oracle shares the open socket, and wants it blocking
        oracle = pool.start("oracle", trusted, extra=candidate.channel.fileno())
        with _ended(oracle):
            _send(
                oracle,
                {"mode": "oracle", "entry": tests.entry_point, "names": tests.names.submission,
                 "supplied": tests.names.library, "setup": tests.setup,
                 "tests": tests.tests, "stop": stop, "limit": output},
            )  # fmt: skip
            oracle.ends_within(_QUICK_S)
            frames = _Frames(oracle.channel, 64 * MIB)
            at, said = 0, frames.next()
            while said is not None and said[0] == "at":
                at, said = said[1], frames.next()
            if said is not None:
                candidate.channel.shutdown(socket.SHUT_RDWR)
            trusted_usage = oracle.finish()
        if said is None:
            candidate.kill()
        usage = candidate.finish(_PATIENCE_S)
    stopped_early = not trusted_usage.verdict and (said is None or (said[0] == "verdicts" and said[2]))
    worked_s = trusted_usage.cpu_s + usage.cpu_s  # the two take turns, so it could not have been done sooner
    if usage.killed == WALL and stopped_early and worked_s < limits.wall and trusted_usage.waited_s > _ORACLE_S / 2:
        raise VerifierError(f"the machine is overloaded: the tests waited {trusted_usage.waited_s:.1f} s for a core")
    if said is None:
        return _without_oracle(usage, trusted_usage, at, total)
    if said[0] == "gold":
        raise GoldError(f"the tests are at fault: {said[1]}")
    _, results, stopped, calls = said
    return _counted(tests, results, stopped, calls, total, usage)


def _without_oracle(usage: Usage, trusted: Usage, at: int, total: int) -> Outcome:
    """The trusted side itself ran out of something: by what the submission gave it, unless it never got so far."""
    if trusted.verdict in ("TLE", "MLE"):
        text = f"test {at}: the test ran out of {'time' if trusted.verdict == 'TLE' else 'memory'} on what it was given"
        return Outcome(trusted.verdict, 0, total, text, usage)
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
    """Standard input style: a process per input, several at a time, and the first that fails decides."""
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

    others = [threading.Thread(target=work, daemon=True) for _ in range(min(parallel, total) - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
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
    """The compiled program, or the outcome CE."""
    command = [installed(language.build[0]), *language.build[1:]]
    code = language.preamble + code
    run = pool.start("candidate", _BUILD)
    with _ended(run):
        _send(run, {"mode": "compile", "code": code, "file": language.file, "command": command, "output": "program"})
        frames = _Frames(run.channel, _BUILD.file_mib * MIB)
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
            stdin=source,
            stdout=out_end,
            stderr=err_end,
            extra=program,
            address_limit=address_limit,
        )
        with _ended(run):
            for descriptor in (out_end, err_end):
                os.close(descriptor)
                opened.remove(descriptor)
            _send(run, job)
            streams, too_much = _drained(run, out, err, int(limits.output_mib * MIB))
            said, odd = _reports(run)
            usage = run.finish()
    finally:
        for descriptor in opened:
            os.close(descriptor)
    printed, errors = (stream.decode("utf-8", "replace") for stream in streams)
    flags: tuple[str, ...] = ("odd_descriptor",) if odd else ()
    if said is not None and said[1] == "IE":
        raise VerifierError(str(said[2]))
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
    """Both streams until the process has closed them; a run that prints more than `limit` is killed."""
    parts: dict[int, bytearray] = {out: bytearray(), err: bytearray()}
    limits = {out: limit, err: _STDERR_BYTES}
    too_much = False
    poll = select.poll()
    for descriptor in parts:
        poll.register(descriptor, select.POLLIN)
    still = set(parts)
    while still:
        for descriptor, _ in poll.poll():
            data = os.read(descriptor, 1 << 16)
            if not data:
                poll.unregister(descriptor)
                still.discard(descriptor)
            elif len(parts[descriptor]) + len(data) <= limits[descriptor]:
                parts[descriptor] += data
            elif descriptor == out and not too_much:
                too_much = True
                run.kill()
    return (bytes(parts[out]), bytes(parts[err])), too_much


def _reports(run: Run) -> tuple[list[Any] | None, bool]:
    """What the harness said beside the streams, and whether something else was written there."""
    frames = _Frames(run.channel, 1 << 16)
    said: list[Any] | None = None
    run.channel.setblocking(False)
    try:
        while (message := frames.next()) is not None:
            match message:
                case ["load", "CE" | "IE", str()] | ["load", "MLE", list(), str()] if said is None:
                    said = message
                case _:
                    return said, True
    except (wire.WireError, VerifierError):
        return said, True
    return said, bool(frames._buffer)


def _in_memory(name: str, data: bytes, *, sealed: bool = False) -> int:
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | (os.MFD_ALLOW_SEALING if sealed else 0))
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _call(tests: FunctionTests, index: int) -> str:
    return _short(f"{tests.entry_point}({', '.join(_shown(arg) for arg in tests.given[index])})")


def _shown(value: Any) -> str:
    """A value for a reader; never slow, whatever it is."""
    if isinstance(value, str):
        return repr(value[: _SHOWN + 1])[:_SHOWN]
    if isinstance(value, int) and value.bit_length() > 600:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | tuple | set | frozenset | dict | bytes | bytearray) and len(value) > 50:
        return f"{type(value).__name__} of {len(value)}"
    try:
        return _short(repr(value))
    except (ValueError, RecursionError):  # an integer with too many digits somewhere inside
        return type(value).__name__


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
