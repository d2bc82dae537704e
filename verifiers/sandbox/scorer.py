"""The trusted side of a third-party scorer, which is called where the answer can reach nothing."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import verifiers
from verifiers.core import GoldError, Verdict, VerifierError
from verifiers.cores import cores
from verifiers.sandbox import judge, packages, probe, wire
from verifiers.sandbox.limits import MIB, Limits
from verifiers.sandbox.pool import Pool, ServerDied, Usage, finishing
from verifiers.sandbox.watch import KILLED_BY_WATCH

REASONS = {
    "raised": "the scorer raised on this answer, but not on the problem's own answer",
    "code": "the scorer was about to run code from the answer",
    "timeout": "the scorer took too long on this answer",
    "memory": "the scorer took too much memory on this answer",
    "crashed": "the scorer's process ended on this answer",
}  # reasons why an answer scores 0 without a score from the scorer
_OF_VERDICT = {"TLE": "timeout", "MLE": "memory", "OLE": "memory"}
_MESSAGE_BYTES = 1 << 20
_PATIENCE_S = 0.1
_MAX_REASON = 60

Row = Mapping[str, Any]


class _Trouble(Exception):
    """The scorer returned no score: `reason` is one of REASONS."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Scorer:
    """Calls `target` in fork-servers that have imported it once; each call is a locked-in process of its own.

    Inside, only its package, what that requires, this package and the interpreter can be read.

    Args:
        target: "module:attr", a verifier or a scoring function (see `verifiers.sandboxed`).
        options: keyword arguments for it.
        more: further modules that it imports.
        isolation: as for the code verifier.
        evaluates: code from an answer may run beside the scorer; without it such an answer scores 0.
        servers: number of calls at a time; None: one per core.

    Raises: ValueError for a module that can't be found, or an isolation that does not exist.
    """

    def __init__(
        self,
        target: str,
        options: Mapping[str, Any],
        *,
        more: Sequence[str] = (),
        isolation: str = "auto",
        evaluates: bool = False,
        servers: int | None = None,
        limits: Limits,
    ) -> None:
        if isolation != "auto" and isolation not in probe.LEVELS:
            raise ValueError(f"isolation must be 'auto' or one of {', '.join(probe.LEVELS)}; got {isolation!r}")
        self.target = target
        own = {"verifiers": os.path.dirname(os.path.realpath(verifiers.__file__))}
        self._packages = {**packages.needed_by(target.partition(":")[0], more), **own}
        self._scorer = {"target": target, "options": dict(options)}
        self._isolation, self._evaluates, self._limits = isolation, evaluates, limits
        self.servers = servers or cores()
        self._pool: Pool | None = None
        self._lock, self._pid = threading.Lock(), os.getpid()

    def verdict(self, row: Row, own: Row) -> Verdict:
        """Returns the scorer's verdict on a row.

        If it gives none (it raises, hangs, dies), it is tried on `own`, the same problem with its own answer. If that
        works, the answer is to blame and scores 0; otherwise nothing is known about the answer.

        Args:
            row, own: input for the scorer, as `scoring.main` takes it.

        Raises: VerifierError: the scorer can't start, returns no score, or also fails on `own`; the host lacks
            descriptors, processes or memory.
        """
        try:
            return self._judged(row, own)
        except (OSError, MemoryError) as error:
            raise VerifierError(f"the check could not be made: {type(error).__name__}: {error}") from error

    @property
    def level(self) -> str:
        """The isolation level in force. Raises VerifierError if there is none."""
        return probe.choose(self._isolation)

    def close(self) -> None:
        """Ends the servers; this also happens when the interpreter ends."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def prepare(self) -> None:
        """Starts a server now, which imports the scorer's package; the first verdict reports a failure to start."""
        with contextlib.suppress(VerifierError, OSError, MemoryError):
            pool = self._ready()
            pool.give_back("candidate", pool.take("candidate"))

    def _judged(self, row: Row, own: Row) -> Verdict:
        try:
            return self._tried(row)
        except _Trouble as trouble:
            try:
                self._tried(own)
            except _Trouble as again:
                hint = "; a scorer that evaluates code needs `evaluates: true`" if again.reason == "code" else ""
                raise VerifierError(f"{self.target} fails on the problem's own answer too: {again}{hint}") from trouble
            return Verdict(0.0, trouble.reason, str(trouble))

    def _tried(self, row: Row) -> Verdict:
        pool = self._ready()
        try:
            return self._once(pool, row)
        except ServerDied:  # tried again on a fresh server; a second failure is not an accident
            return self._once(pool, row)

    def _ready(self) -> Pool:
        if self._pid != os.getpid():  # a forked worker: the servers, and perhaps a held lock, belong to the parent
            self._pid, self._pool, self._lock = os.getpid(), None, threading.Lock()
        with self._lock:
            if self._pool is None:
                self._pool = Pool(
                    self.level, self.servers, self._limits, packages=self._packages, preload=(), scorer=self._scorer
                )
                weakref.finalize(self, self._pool.close)
            return self._pool

    def _once(self, pool: Pool, row: Row) -> Verdict:
        try:
            job = {"mode": "score", "row": wire.encode(dict(row), _no_data), "evaluates": self._evaluates}
        except wire.WireError as error:
            raise GoldError(f"{self.target}: the problem can't be sent to the sandbox: {error}") from error
        run = pool.start("candidate", self._limits, job)
        with finishing(run):
            try:
                message = judge.Frames(run, _MESSAGE_BYTES).next()
            except wire.WireError as error:
                run.kill()
                message = ["malformed", str(error)]
            usage = run.finish(None if message is None else _PATIENCE_S)
        if message is None:
            raise _ended(usage)
        try:
            return self._read(message, row)
        except (wire.WireError, TypeError, ValueError, AttributeError) as error:
            raise _Trouble("crashed", f"it sent something that is not a score: {error}") from error

    def _read(self, message: list[Any], row: Row) -> Verdict:
        match message:
            case ["scored", raw, of_answer]:
                number = wire.decode(raw, wire.no_reference)
                if number is None:
                    return Verdict(None, "abstained")
                return self._verdict(number, "ok" if number else "zero", answer=row["answer"] if of_answer else None)
            case ["verdict", raw]:
                score, reason, detail, answer, span, flags = wire.decode(raw, wire.no_reference)
                return self._verdict(score, reason[:_MAX_REASON], detail, answer, span, flags)
            case ["raised", "GoldError", str(text)]:
                raise GoldError(f"{self.target}: {text}")
            case ["raised", "VerifierError", str(text)]:
                raise VerifierError(f"{self.target}: {text}")
            case ["raised", str(kind), str(text)]:
                raise _Trouble("raised", f"it raised {kind[:100]}: {text}")
            case ["code", str(what)]:
                raise _Trouble("code", f"code in the evaluated text: {what[:100]}")
        raise wire.WireError("malformed message")

    def _verdict(
        self,
        score: Any,
        reason: str,
        detail: str = "",
        answer: str | None = None,
        span: Any = None,
        flags: Sequence[str] = (),
    ) -> Verdict:
        if score is not None and not (isinstance(score, int | float) and math.isfinite(score) and 0 <= score <= 1):
            raise VerifierError(f"{self.target} returned {score!r}; a score is a number in [0, 1]")
        if span is not None:
            start, end = map(int, span)
            span = (start, end) if 0 <= start <= end else None
        return Verdict(score, reason, detail, answer, span, flags=tuple(flags))


def _ended(usage: Usage) -> _Trouble:
    how = (usage.signal and f"killed by {signal.Signals(usage.signal).name}") or f"exit status {usage.exit_code}"
    return _Trouble(_OF_VERDICT.get(usage.verdict, "crashed"), KILLED_BY_WATCH.get(usage.killed, how))


def _no_data(value: Any) -> Any:
    raise wire.WireError(f"{type(value).__name__} is not data")


def limits(time_s: float, memory_mib: int) -> Limits:
    """Returns the limits of one score."""
    return Limits(time_s=time_s, memory_mib=memory_mib, processes=8, output_mib=_MESSAGE_BYTES / MIB)
