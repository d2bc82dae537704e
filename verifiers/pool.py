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
from dataclasses import dataclass
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
_CHUNK_S = 0.02  # what a chunk should take: its items wait for one another, and each chunk costs a fraction of this
_AHEAD = 3  # chunks of a single call assigned to a worker at a time, including the one it works on
START_TIMEOUT_S = 120.0
MAX_FAILED_STARTS = 3  # of each worker
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


class _Call:
    """One call of `Pool.map`: its items, and the scores that wait for their turn."""

    def __init__(self, pairs: Iterable[tuple[Problem, Completion]]) -> None:
        self._source = enumerate(pairs)
        self._ended = False
        self.again: collections.deque[Item] = collections.deque()  # items of a killed worker's chunk, sent first
        self.done: dict[int, Score] = {}
        self.turn = 0  # index of the oldest item whose score was not taken
        self.out = 0  # items at the workers
        self.failure: BaseException | None = None

    @property
    def is_done(self) -> bool:
        return self._ended and not self.again and not self.out and not self.done

    def chunk(self, most: int) -> list[Item]:
        """Returns up to so many items, fewer for long completions, and none if it is far ahead of its oldest item."""
        chunk: list[Item] = []
        size = 0
        while len(chunk) < most and size < _MAX_CHUNK_BYTES:
            if self.again:
                item = self.again.popleft()
            elif self._ended or self.out + len(self.done) > 16 * _MAX_CHUNK:
                break
            else:
                found = next(self._source, None)
                if found is None:
                    self._ended = True
                    break
                place, (problem, completion) = found
                item = (place, problem, completion)
            chunk.append(item)
            size += len(item[2].text) + 200
        self.out += len(chunk)
        return chunk

    def take(self) -> list[Score]:
        """Returns the scores whose turn it is."""
        scores = []
        while self.turn in self.done:
            scores.append(self.done.pop(self.turn))
            self.turn += 1
        return scores


@dataclass(frozen=True, slots=True)
class _Chunk:
    call: _Call
    items: list[Item]


class Pool:
    """Worker processes that score completions with one reward.

    Args:
        reward: sent to the workers by name and options; verifier objects in it must be importable (picklable).
        workers: number of processes; None = one per available core.
        timeout_s: hard deadline of one completion, in seconds of wall time.
        start_timeout_s: the same for the start of a worker, which imports and prepares the verifiers.
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
        start_timeout_s: float = START_TIMEOUT_S,
        memory_mib: int | None = 4096,
        environment: Mapping[str, str] | None = None,
        dies_with_thread: bool = False,
    ) -> None:
        count = cores() if workers is None else workers
        if count < 1 or not timeout_s > 0:  # also refuses NaN
            raise ValueError(f"workers must be >= 1 and timeout_s > 0, got {count} and {timeout_s}")
        self.reward, self.timeout_s, self.memory_mib = reward, timeout_s, memory_mib
        self.start_timeout_s = start_timeout_s
        try:
            self._setup = pickle.dumps((sys.path, REGISTERED, reward.formula, reward.options, reward.ready, memory_mib))
        except Exception as error:  # pickling a user's object may raise anything
            raise ValueError(
                f"the reward '{reward.formula}' can't be sent to worker processes: {error}; name its verifiers as "
                "'module:attr' instead of passing them"
            ) from error
        self._bound = dies_with_thread or threading.current_thread() is threading.main_thread()
        self._environment = dict(environment or {})
        # Several map() may run: one of their threads reads from the workers, while the others wait for this condition.
        self._changed = threading.Condition()
        self._reading = False
        self._wake = os.pipe()  # ends the wait of the thread that reads, as more workers have work
        self._leaving = 0  # threads that wait until no other one reads
        self._calls: list[_Call] = []
        self._chunk_size = 1.0  # items
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
        if self._workers:
            os.close(self._wake[0])
            os.close(self._wake[1])
        self._workers = []

    def map(self, pairs: Iterable[tuple[Problem, Completion]]) -> Generator[Score, None, None]:
        """Yields scores in order as they arrive. `pairs` is read only as far ahead as the workers need.

        A verifier that hangs, crashes or returns nonsense leaves its own completion unscored, with the reason. Calls
        from several threads share the workers: none waits for another's slow items while a worker is free.
        """
        call = _Call(pairs)
        with self._changed:
            if not self._workers:
                raise ValueError("this pool is closed")
            self._calls.append(call)
        try:
            while (scores := self._next(call)) is not None:
                yield from scores
        finally:
            self._leave(call)

    def _next(self, call: _Call) -> list[Score] | None:
        """Waits for the next scores of a call; returns None at its end."""
        with self._changed:
            while True:
                if call.failure is not None:
                    raise call.failure
                if not self._workers:
                    raise ValueError("this pool is closed")
                self._hand_out(call)
                if scores := call.take():
                    return scores
                if call.is_done:
                    return None
                if self._reading or self._leaving:
                    self._changed.wait()
                    continue
                self._reading = True
                try:
                    self._collect()
                except BaseException as error:
                    for one in self._calls:
                        one.failure = error
                    raise
                finally:
                    self._reading = False
                    self._changed.notify_all()

    def _hand_out(self, call: _Call) -> None:
        """Gives items to free workers, first one chunk to each, and further ones only if no other call needs them."""
        size = max(1, int(self._chunk_size))
        for depth in range(_AHEAD if size > 1 and len(self._calls) == 1 else 1):
            for worker in self._workers:
                if len(worker.chunks) <= depth:
                    if not (items := call.chunk(size)):
                        return
                    worker.give(call, items)
                    if self._reading:
                        os.write(self._wake[1], b".")

    def _leave(self, call: _Call) -> None:
        """Ends a call. If its caller stopped early, workers that still have its items are replaced."""
        with self._changed:
            if call.out:
                self._leaving += 1
                while self._reading:
                    self._changed.wait()
                self._leaving -= 1
                for i, worker in enumerate(self._workers):
                    if any(chunk.call is call for chunk in worker.chunks):
                        worker.kill()
                        for chunk in reversed(worker.chunks):
                            self._again(chunk.call, chunk.items)
                        self._workers[i] = _Worker(self._setup, self._environment, self._bound)
            self._calls.remove(call)
            self._changed.notify_all()

    @staticmethod
    def _again(call: _Call, items: list[Item]) -> None:
        call.again.extendleft(reversed(items))
        call.out -= len(items)

    def _collect(self) -> None:
        """Collects the workers' results, and replaces workers that died or are late."""
        busy = {worker.out: worker for worker in self._workers if worker.chunks}
        writers = {worker.into: worker for worker in self._workers if worker.unsent}
        poll = select.poll()  # not select(), which accepts no descriptor above 1023
        for pipe in (*busy, self._wake[0]):
            poll.register(pipe, select.POLLIN)
        for pipe in writers:
            poll.register(pipe, select.POLLOUT)
        self._changed.release()
        try:
            ready = [pipe for pipe, _ in poll.poll(1000 * _POLL_S)]
        finally:
            self._changed.acquire()
        for pipe in writers.keys() & ready:
            writers[pipe].flush()
        if self._wake[0] in ready:
            os.read(self._wake[0], 1 << 16)
        for pipe in ready:
            if pipe not in busy:
                continue
            worker = busy[pipe]
            if not worker.receive():
                self._bury(worker, "" if worker.has_ended() else _CLOSED)
                continue
            for message in worker.messages():
                self._failed_starts = 0
                if message == "ready":
                    worker.ready = True
                elif isinstance(message, str):
                    raise ValueError(f"the reward '{self.reward.formula}' can't be set up in a worker: {message}")
                else:
                    self._take(worker, *message)
        now = time.monotonic()
        for worker in list(self._workers):
            if worker.chunks and worker.is_late(now, self.timeout_s, self.start_timeout_s):
                late = f"{LATE} {self.timeout_s:g} s" if worker.ready else f"not ready in {self.start_timeout_s:.3g} s"
                self._bury(worker, late)

    def _take(self, worker: _Worker, seconds: float, results: list[tuple[Any, ...]]) -> None:
        """Stores the results of a worker's oldest chunk; the size of the next chunks follows from its time."""
        chunk = worker.chunks.popleft()
        chunk.call.out -= len(chunk.items)
        for (place, _, _), result in zip(chunk.items, results, strict=True):
            chunk.call.done[place] = self._score(result)
        fitting = len(chunk.items) * _CHUNK_S / max(seconds, 1e-6)
        fitting = min(max(fitting, self._chunk_size / 4), self._chunk_size * 2)  # one chunk's time is not that of all
        self._chunk_size = min(max(fitting, 1.0), _MAX_CHUNK)

    def _bury(self, worker: _Worker, why: str) -> None:
        """Replaces a worker: the item it worked on is unscored, the rest of its chunk is scored again."""
        place = worker.progress()[0]
        started = worker.ready
        code = worker.kill()
        first = worker.chunks[0]
        if started and 0 <= place < len(first.items):
            culprit = first.items.pop(place)
            first.call.out -= 1
            problem = culprit[1]
            why = why or _WHY.get(code, f"the process ended: exit status {code}")
            names = "', '".join(self.reward.verifiers)
            error = f"VerifierError: '{names}': {why} (on problem {problem.name!r})"
            first.call.done[culprit[0]] = Score(None, {}, error, self.reward.versions)
        else:
            self._failed_starts += 1
            if self._failed_starts >= MAX_FAILED_STARTS * len(self._workers):
                does = "hang" if why.startswith("not ready") else "end the process"
                raise VerifierError(
                    f"the worker processes of '{self.reward.formula}' die before they score anything "
                    f"({why or f'exit status {code}'}); does importing or preparing its verifiers {does}?"
                )
        for chunk in reversed(worker.chunks):
            self._again(chunk.call, chunk.items)
        self._workers[self._workers.index(worker)] = _Worker(self._setup, self._environment, self._bound)

    def _score(self, result: tuple[Any, ...]) -> Score:
        reward, verdicts, error = result
        return Score(reward, _Verdicts(self.reward.verifiers, verdicts), error, self.reward.versions)


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
        self.chunks: collections.deque[_Chunk] = collections.deque()
        self._born = time.monotonic()
        self.unsent = bytearray(_HEADER.pack(len(setup)) + setup)
        self._received = bytearray()

    def give(self, call: _Call, items: list[Item]) -> None:
        """Sends a chunk of items."""
        # Not with marshal, as results are: it writes NumPy's numbers and arrays in a row as mere bytes.
        rows = [(*OF_PROBLEM(p)[:2], *_plain_gold(p), *OF_COMPLETION(c)) for _, p, c in items]
        try:
            body = b"p" + pickle.dumps(rows, pickle.HIGHEST_PROTOCOL)
        except RecursionError:  # JSON that is nested 500 levels deep; marshal takes 2,000
            body = b"m" + marshal.dumps(rows)
        self.chunks.append(_Chunk(call, items))
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

    def is_late(self, now: float, timeout_s: float, start_timeout_s: float) -> bool:
        """True if the current item, or the start of the process, takes too long."""
        place, since = seen = self.progress()
        if place < 0:
            return not self.ready and now - self._born > start_timeout_s
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
