"""The code verifier: runs a submission against the problem's tests where it can't cheat."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from verifiers.core import Completion, Problem, Verdict, VerifierError
from verifiers.cores import cores
from verifiers.sandbox import judge, probe, spec
from verifiers.sandbox.checkers import Allowed, load
from verifiers.sandbox.languages import LANGUAGES
from verifiers.sandbox.limits import DEFAULTS, Limits
from verifiers.sandbox.packages import needed_by
from verifiers.sandbox.pool import Pool, ServerDied
from verifiers.sandbox.signs import signs
from verifiers.sandbox.submission import NoSubmissionError, extract
from verifiers.sandbox.threads import verdicts

REASONS = ("AC", "WA", "PE", "TLE", "MLE", "OLE", "RTE", "CE", "EXIT", "SV")


class CodeVerifier:
    """1 for a submission that passes all tests of the problem; otherwise 0, or the share of passed tests.

    Reasons: AC accepted, WA wrong answer, PE differs in white space only, TLE MLE OLE time, memory, output or disk
    limit, RTE exception, signal or exit status, CE does not compile (or holds no code), EXIT ended before its call
    returned, SV a forbidden system call or a forged message. `flags` name signs of cheating. An infrastructure error
    (overload, a dead server, tests that can't be read) raises VerifierError.

    The submission is the last fitting fenced block after `</think>`, else the whole text. Known limits: function and
    assert style are Python only; objects of the submission's own classes equal only themselves.

    Args:
        language: "python", or "cpp" or "javascript" for tests of style "stdin".
        isolation: "auto" takes the strongest level of this machine, never "rlimit-only"; or a level by name.
        partial: score the share of passed tests instead of all or nothing.
        common_names: functions find names such as `math`, `List` and `sqrt` without importing them; in plain Python
            that is a NameError.
        servers: number of runs at a time; None: two per core.
        packages: installed packages that submissions may import, with all that these require; by default only the
            standard library.
        preload: those of them that are imported before the fork, so that runs need not import them.
        checkers: functions "module:fn" of this process that tests may name; data alone never runs one.
        time_s, wall_s, memory_mib, processes, output_mib, file_mib, disk_mib, open_files: of one run, see Limits.

    Raises:
        ValueError: an invalid option.
        VerifierError: (on first use) this machine can't isolate code; the message says what is missing.
    """

    version = "10"
    kind = "program"
    isolated = True

    def __init__(
        self,
        *,
        language: str = "python",
        isolation: str = "auto",
        partial: bool = False,
        common_names: bool = False,
        servers: int | None = None,
        packages: Sequence[str] = (),
        preload: Sequence[str] = (),
        checkers: Sequence[str] = (),
        time_s: float = DEFAULTS.time_s,
        wall_s: float | None = None,
        memory_mib: int = DEFAULTS.memory_mib,
        processes: int = DEFAULTS.processes,
        output_mib: float = DEFAULTS.output_mib,
        file_mib: int = DEFAULTS.file_mib,
        disk_mib: int = DEFAULTS.disk_mib,
        open_files: int = DEFAULTS.open_files,
    ) -> None:
        if language not in LANGUAGES:
            raise ValueError(f"unknown language {language!r}; known: {', '.join(LANGUAGES)}")
        if isolation != "auto" and isolation not in probe.LEVELS:
            raise ValueError(f"isolation must be 'auto' or one of {', '.join(probe.LEVELS)}; got {isolation!r}")
        if servers is not None and (not isinstance(servers, int) or servers < 1):
            raise ValueError(f"servers must be a whole number >= 1, got {servers}")
        self.language = LANGUAGES[language]
        self.partial = partial
        self.limits = Limits(
            time_s=time_s, wall_s=wall_s, memory_mib=memory_mib, processes=processes, output_mib=output_mib,
            file_mib=file_mib, disk_mib=disk_mib, open_files=open_files,
        )  # fmt: skip
        self._common = common_names
        self._isolation = isolation
        self._servers = servers or 2 * cores()
        self._packages = {name: path for package in packages for name, path in needed_by(package).items()}
        self._preload = tuple(preload)
        for name in checkers:
            load(name)
        self._allowed = Allowed(frozenset(checkers), self._checks)
        self._pool: Pool | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        """Judges one completion; safe from any thread."""
        return self._judged(problem, completion, parallel=self._servers)

    def verify_many(self, pairs: Iterable[tuple[Problem, Completion]]) -> list[Verdict | Exception]:
        """Judges many pairs in order, on all cores. If an item raises, the exception takes the place of its verdict."""
        items = list(pairs)
        parallel = max(1, self._servers // max(1, len(items)))  # with few items, each runs several inputs at a time
        return verdicts(functools.partial(self._judged, parallel=parallel), items, self._servers)

    @property
    def level(self) -> str:
        """The isolation level in force."""
        return self._ready().level

    def close(self) -> None:
        """Ends the servers; this also happens when the interpreter ends. The verifier can be used again afterwards."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def __enter__(self) -> CodeVerifier:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ready(self) -> Pool:
        if self._pid != os.getpid():  # a forked worker: the servers, and perhaps a held lock, belong to the parent
            self._pid, self._pool, self._lock = os.getpid(), None, threading.Lock()
        with self._lock:
            if self._pool is None:
                level = probe.choose(self._isolation)
                self._pool = Pool(level, self._servers, self.limits, packages=self._packages, preload=self._preload)
                weakref.finalize(self, self._pool.close)
            return self._pool

    def _judged(self, problem: Problem, completion: Completion, *, parallel: int) -> Verdict:
        try:
            return self._verdict(problem, completion, parallel=parallel)
        except (OSError, MemoryError) as error:  # descriptors, processes or memory of the host process
            raise VerifierError(f"the check could not be made: {type(error).__name__}: {error}") from error

    def _verdict(self, problem: Problem, completion: Completion, *, parallel: int) -> Verdict:
        tests = spec.read(problem, self._allowed)
        limits = spec.limits_for(problem, self.limits)
        entry = None if isinstance(tests, spec.StdinTests) else tests.entry_point
        if entry is not None and self.language.name != "python":
            raise VerifierError(f"{self.language.name} programs are tested by style 'stdin' only")
        try:
            code, span = extract(completion.text, self.language.tags, entry)
        except NoSubmissionError as error:
            return Verdict(0.0, "CE", str(error))
        pool = self._ready()
        try:
            outcome = self._run(pool, tests, code, limits, parallel)
        except ServerDied:  # tried again on a fresh server; a second failure is not an accident
            outcome = self._run(pool, tests, code, limits, parallel)
        score = outcome.passed / outcome.total if self.partial and outcome.total else float(outcome.verdict == "AC")
        flags = tuple(dict.fromkeys((*outcome.flags, *signs(code))))
        parts = [outcome.text] if outcome.text else []
        parts += [f"{outcome.passed} of {outcome.total} tests passed", f"level {pool.level}", str(outcome.usage)]
        return Verdict(score, outcome.verdict, "; ".join(parts), answer=code, span=span, flags=flags)

    def _checks(self, program: str, given: Any, expected: Any, got: Any) -> bool:
        return judge.run_checker(self._ready(), program, given, expected, got, self.limits)

    def _run(self, pool: Pool, tests: spec.Tests, code: str, limits: Limits, parallel: int) -> judge.Outcome:
        stop = not self.partial
        if isinstance(tests, spec.FunctionTests):
            return judge.judge_function(pool, tests, code, limits, stop=stop, common=self._common)
        if isinstance(tests, spec.AssertTests):
            return judge.judge_asserts(pool, tests, _continued(tests, code), limits, stop=stop, common=self._common)
        return judge.judge_stdin(pool, tests, code, limits, self.language, stop=stop, parallel=parallel)


def _continued(tests: spec.AssertTests, code: str) -> str:
    """Joins the prompt and a base model's completion, which continues the prompt in the middle of a function."""
    if tests.prompt and code[:1] in " \t\n" and f"def {tests.entry_point}" not in code:
        return tests.prompt + code
    return code
