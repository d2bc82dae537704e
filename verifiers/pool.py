"""Scores in worker processes with hard deadlines: order is kept, and no verifier can stop the run.

A worker is a fresh Python process (never a fork: the caller may hold torch and threads) that communicates over two
pipes. Items are sent in chunks. The worker writes to a page of shared memory which item it is working on and since
when. So an item that hangs is identified, only its worker is killed, and the rest of its chunk is scored elsewhere.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import marshal
import mmap
import operator
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from verifiers.core import Completion, Problem, Verdict, VerifierError
from verifiers.cores import cores
from verifiers.registry import REGISTERED
from verifiers.reward import Reward, Score

_HEADER = struct.Struct("<Q")  # length of a message
# A worker's note: its index in the chunk (-1: none), followed by the monotonic time in seconds at which it began that
# item. The two are not written atomically: the time is written first, so that no index appears with an outdated time.
PLACE, SINCE = struct.Struct("<q"), struct.Struct("<d")
PAGE_SIZE = PLACE.size + SINCE.size
_MAX_CHUNK = 256
_MAX_CHUNK_BYTES = 1 << 20
_AHEAD = 3  # chunks assigned to a worker at a time, including the one it works on
_START_TIMEOUT_S = 120.0
_MAX_FAILED_STARTS = 3
_POLL_S = 0.05
LATE = "no verdict within"  # in the error of a completion whose deadline passed
CLOSED = 97  # exit status of a worker whose verifier closed the worker's pipes
_CLOSED = "the verifier closed file descriptors of its process that it does not own"
_WHY = {
    -signal.SIGKILL: "the process ended: killed, perhaps for its memory",
    -signal.SIGSEGV: "the process ended: segmentation fault",
    CLOSED: _CLOSED,
}
_LAST_S = 1.0  # time for a process to exit after its pipe has ended

Item = tuple[int, Problem, Completion]  # with its index in the caller's order


class Pool:
    """Worker processes that score completions with one reward.

    Args:
        reward: sent to the workers by name and options; verifier objects in it must be importable (picklable).
        workers: number of processes; None = one per available core.
        timeout_s: hard deadline of one completion, in seconds of wall time.
        memory_mib: private memory of a worker; exceeding it raises MemoryError in the worker, or ends it. None = no
            limit.
        environment: environment variables that differ in the workers.
        dies_with_thread: the thread that creates and uses the pool also outlives it; the kernel then ends the workers
            with that thread, as it does for the main thread.

    Raises (when created or used): ValueError if the reward can't be sent or set up in a worker; VerifierError if
        workers keep dying before they score anything.
    """

    def __init__(
        self,
        reward: Reward,
        *,
        workers: int | None = None,
        timeout_s: float = 30.0,
        memory_mib: int | None = 4096,
        environment: Mapping[str, str] | None = None,
        dies_with_thread: bool = False,
    ) -> None:
        count = cores() if workers is None else workers
        if count < 1 or timeout_s <= 0:
            raise ValueError(f"workers must be >= 1 and timeout_s > 0, got {count} and {timeout_s}")
        self.reward, self.timeout_s, self.memory_mib = reward, timeout_s, memory_mib
        try:
            self._setup = pickle.dumps((sys.path, REGISTERED, reward.formula, reward.options, reward.ready, memory_mib))
        except Exception as error:  # pickling a user's object may raise anything
            raise ValueError(
                f"the reward '{reward.formula}' can't be sent to worker processes: {error}; name its verifiers as "
                "'module:attr' instead of passing them"
            ) from error
        self._bound = dies_with_thread or threading.current_thread() is threading.main_thread()
        self._environment = dict(environment or {})
        self._lock = threading.Lock()  # one map() at a time
        self._failed_starts = 0
        self._workers: list[_Worker] = []
        self._workers = [_Worker(self._setup, self._environment, self._bound) for _ in range(count)]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the workers at once."""
        for worker in self._workers:
            worker.kill()
        self._workers = []

    def map(self, pairs: Iterable[tuple[Problem, Completion]]) -> Generator[Score, None, None]:
        """Yields scores in order as they arrive. `pairs` is read only as far ahead as the workers need.

        A verifier that hangs, crashes or returns nonsense leaves its own completion unscored, with the reason.
        """
        with self._lock:
            if not self._workers:
                raise ValueError("this pool is closed")
            source = enumerate(pairs)
            waiting: collections.deque[Item] = collections.deque()  # items of a killed worker's chunk, sent first
            done: dict[int, Score] = {}
            turn, finished = 0, False
            try:
                while True:
                    for worker in self._workers:
                        while worker.may_take(turn):
                            chunk, finished = _chunk(waiting, source, finished)
                            if not chunk:
                                break
                            worker.give(chunk)
                    while turn in done:
                        yield done.pop(turn)
                        turn += 1
                    if not any(worker.chunks for worker in self._workers):
                        if finished and not waiting and not done:
                            return
                        continue
                    if not done or turn not in done:
                        self._collect(waiting, done)
            finally:
                for i, worker in enumerate(self._workers):
                    if worker.chunks:  # the caller stopped early: pending results are not wanted any more
                        worker.kill()
                        self._workers[i] = _Worker(self._setup, self._environment, self._bound)

    def _collect(self, waiting: collections.deque[Item], done: dict[int, Score]) -> None:
        """Collects the workers' results, and replaces workers that died or are late."""
        busy = {worker.out: worker for worker in self._workers if worker.chunks}
        writers = {worker.into: worker for worker in self._workers if worker.unsent}
        readable, writable, _ = select.select(list(busy), list(writers), [], _POLL_S)
        for pipe in writable:
            writers[pipe].flush()
        for pipe in readable:
            worker = busy[pipe]
            if not worker.receive():
                self._bury(worker, "" if worker.has_ended() else _CLOSED, waiting, done)
                continue
            for message in worker.messages():
                self._failed_starts = 0
                if message == "ready":
                    worker.ready = True
                elif isinstance(message, str):
                    raise ValueError(f"the reward '{self.reward.formula}' can't be set up in a worker: {message}")
                else:
                    for (place, _, _), result in zip(worker.chunks.popleft(), message, strict=True):
                        done[place] = self._score(result)
        now = time.monotonic()
        for worker in list(self._workers):
            if worker.chunks and worker.is_late(now, self.timeout_s):
                self._bury(worker, f"{LATE} {self.timeout_s:g} s", waiting, done)

    def _bury(self, worker: _Worker, why: str, waiting: collections.deque[Item], done: dict[int, Score]) -> None:
        """Replaces a worker: the item it worked on is unscored, the rest of its chunk is scored again."""
        place = worker.progress()[0]
        started = worker.ready
        code = worker.kill()
        items = [item for chunk in worker.chunks for item in chunk]
        if started and 0 <= place < len(worker.chunks[0]):
            culprit = items.pop(place)
            problem = culprit[1]
            why = why or _WHY.get(code, f"the process ended: exit status {code}")
            names = "', '".join(self.reward.verifiers)
            error = f"VerifierError: '{names}': {why} (on problem {problem.id or problem.prompt[:60]!r})"
            done[culprit[0]] = Score(None, {}, error, self.reward.versions)
        else:
            self._failed_starts += 1
            if self._failed_starts >= _MAX_FAILED_STARTS * len(self._workers):
                raise VerifierError(
                    f"the worker processes of '{self.reward.formula}' die before they score anything "
                    f"({why or f'exit status {code}'}); does importing its verifiers end the process?"
                )
        waiting.extendleft(reversed(items))
        self._workers[self._workers.index(worker)] = _Worker(self._setup, self._environment, self._bound)

    def _score(self, result: tuple[Any, ...]) -> Score:
        reward, verdicts, error = result
        return Score(reward, _Verdicts(self.reward.verifiers, verdicts), error, self.reward.versions)


def _chunk(
    waiting: collections.deque[Item], source: Iterator[tuple[int, tuple[Problem, Completion]]], finished: bool
) -> tuple[list[Item], bool]:
    """Returns the next items to send, and whether the source has ended. A chunk is small for long completions."""
    chunk: list[Item] = []
    size = 0
    while len(chunk) < _MAX_CHUNK and size < _MAX_CHUNK_BYTES:
        if waiting:
            item = waiting.popleft()
        elif finished:
            break
        else:
            try:
                place, (problem, completion) = next(source)
            except StopIteration:
                finished = True
                break
            item = (place, problem, completion)
        chunk.append(item)
        size += len(item[2].text) + 200
    return chunk, finished


class _Worker:
    """One process with its pipes and the chunks sent to it."""

    def __init__(self, setup: bytes, environment: Mapping[str, str], bound: bool) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # shared with the process until kill()
        self._file.truncate(PAGE_SIZE)
        self._page = mmap.mmap(self._file.fileno(), PAGE_SIZE)
        self._page[:] = PLACE.pack(-1) + SINCE.pack(time.monotonic())
        self._suspected: tuple[int, float] | None = None
        # The worker imports this package from the same place as we do, whatever its working directory is.
        code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r}); import verifiers.worker as w; "
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"{code}w.main({self._file.fileno()}, {bound})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[self._file.fileno()],
            start_new_session=True,
            env={**os.environ, **environment},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.into, self.out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self.into, False)
        os.set_blocking(self.out, False)
        self.ready = False
        self.chunks: collections.deque[list[Item]] = collections.deque()
        self._born = time.monotonic()
        self.unsent = bytearray(_HEADER.pack(len(setup)) + setup)
        self._received = bytearray()

    def may_take(self, turn: int) -> bool:
        """True if it has too few items; a worker far ahead of the oldest open item must wait for that item."""
        if len(self.chunks) >= _AHEAD:
            return False
        return not self.chunks or self.chunks[-1][-1][0] < turn + 16 * _MAX_CHUNK

    def give(self, chunk: list[Item]) -> None:
        """Sends a chunk of items."""
        rows = [(*OF_PROBLEM(p), *OF_COMPLETION(c)) for _, p, c in chunk]
        try:
            body = b"m" + marshal.dumps(rows)
        except ValueError:  # other columns of a row hold values that are not plain types
            rows = [(*OF_PROBLEM(p)[:2], *_plain_gold(p), *OF_COMPLETION(c)) for _, p, c in chunk]
            body = b"p" + pickle.dumps(rows, pickle.HIGHEST_PROTOCOL)
        self.chunks.append(chunk)
        self.unsent += _HEADER.pack(len(body)) + body
        self.flush()

    def flush(self) -> None:
        """Writes as much as the pipe accepts."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # receive() notices a dead worker
            while self.unsent:
                del self.unsent[: os.write(self.into, self.unsent[: 1 << 20])]

    def receive(self) -> bool:
        """Reads available data; returns False if the process has ended."""
        with contextlib.suppress(BlockingIOError):
            while True:
                piece = os.read(self.out, 1 << 20)
                if not piece:
                    return False
                self._received += piece
                if len(piece) < 1 << 16:
                    break
        return True

    def messages(self) -> Iterator[Any]:
        """Yields the complete messages received."""
        while len(self._received) >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._received)
            if len(self._received) < _HEADER.size + size:
                return
            body = bytes(self._received[_HEADER.size : _HEADER.size + size])
            del self._received[: _HEADER.size + size]
            yield marshal.loads(body)

    def progress(self) -> tuple[int, float]:
        """Returns (index in the chunk of the current item, or -1; time at which it began)."""
        return int(PLACE.unpack_from(self._page)[0]), float(SINCE.unpack_from(self._page, PLACE.size)[0])

    def is_late(self, now: float, timeout_s: float) -> bool:
        """True if the current item, or the start of the process, takes too long."""
        place, since = seen = self.progress()
        if place < 0:
            return not self.ready and now - self._born > _START_TIMEOUT_S
        # Read twice: another processor may see one half of the note before the other.
        before, self._suspected = self._suspected, seen if now - since > timeout_s else None
        return self._suspected is not None and self._suspected == before

    def has_ended(self) -> bool:
        """True if the process has exited, or exits now that its pipe has ended."""
        try:
            self._process.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> int:
        """Kills the process and everything it started; returns its exit status."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._page.close()
        self._file.close()
        return code


# The fields, in order.
OF_PROBLEM = operator.attrgetter("prompt", "answer", "tests", "language", "id", "meta")
OF_COMPLETION = operator.attrgetter(
    "text", "token_ids", "logprobs", "finish_reason", "policy_version", "prefill", "inserted"
)


def _plain_gold(problem: Problem) -> tuple[Any, ...]:
    tests = dict(problem.tests) if problem.tests is not None else None
    return (tests, problem.language, problem.id, dict(problem.meta))


class _Verdicts(Mapping[str, Verdict]):
    """Verdicts as received over the pipe; each is built when it is accessed, because most never are."""

    __slots__ = ("_names", "_rows")

    def __init__(self, names: Mapping[str, object], rows: list[tuple[Any, ...]]) -> None:
        self._names, self._rows = names, rows

    def __getitem__(self, name: str) -> Verdict:
        for known, row in zip(self._names, self._rows, strict=False):
            if known == name:
                return Verdict(*row)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return itertools.islice(iter(self._names), len(self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr(dict(self))
