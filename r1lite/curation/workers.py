"""Runs jobs in several processes.

Each worker is a new Python process (never a fork) that receives jobs over a pipe and answers with their numbers; rows
travel only through files. If the parent is killed, the worker reads the end of its pipe and ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from r1lite.curation.passes import Do, Doer, Numbered
from r1lite.errors import RunError, UserError
from verifiers.worker import end_with_parent

_AHEAD = 2  # jobs handed out per worker, including the one in progress


@contextlib.contextmanager
def open_workers(make: Callable[[], Doer], folder: Path, workers: int) -> Iterator[Do]:
    """Yields a function that runs jobs in `workers` processes, or in this process if there is one worker or one job.

    Raises: RunError with the worker's last output if a worker dies.
    """
    started: list[_Worker] = []
    here: list[Doer] = []

    def do(jobs: Sequence[Numbered]) -> Iterator[int]:
        count = min(workers, len(jobs))
        if count > 1:
            started.extend(_Worker(make) for _ in range(count - len(started)))
            yield from _deal(started, jobs)
            return
        for number, job in jobs:
            if not here:
                here.append(make())
            here[0](number, job)
            yield number

    try:
        yield do
    finally:
        for worker in started:
            worker.end()
        for doer in here:
            doer.close()


class _Worker:
    """A worker process, its pipes, and the number of jobs that it has."""

    def __init__(self, make: Callable[[], Doer]) -> None:
        self.said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in end()
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from r1lite.curation.workers import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.inbox, self.outbox, self.given = self.process.stdin, self.process.stdout, 0
        self._send((make, os.getpid()))

    def give(self, job: Numbered) -> None:
        """Sends one more job to the process."""
        self._send(job)
        self.given += 1

    def take(self) -> int:
        """The number of a finished job. Raises RunError if the process ended instead."""
        line = self.outbox.readline()
        if not line.endswith(b"\n"):
            raise RunError(f"a worker process ended{self._last_words()}; finished work is kept: continue with --resume")
        self.given -= 1
        return int(line)

    def end(self) -> None:
        """Ends the process at once."""
        self.process.kill()
        self.process.communicate()
        self.said.close()

    def _send(self, message: object) -> None:
        data = memoryview(pickle.dumps(message))
        try:
            while data:
                data = data[self.inbox.write(data) :]
        except BrokenPipeError:
            raise RunError(f"a worker process ended{self._last_words()}") from None

    def _last_words(self) -> str:
        code = self.process.wait()
        self.said.seek(0)
        lines = [line for line in self.said.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return f": {lines[-1]}" if lines else f" with exit status {code}"


def _deal(workers: list[_Worker], jobs: Sequence[Numbered]) -> Iterator[int]:
    waiting = iter(jobs)
    with selectors.DefaultSelector() as ready:
        for worker in workers:
            ready.register(worker.outbox, selectors.EVENT_READ, worker)
        for worker, job in zip(workers * _AHEAD, waiting, strict=False):
            worker.give(job)
        while any(worker.given for worker in workers):
            for key, _ in ready.select():
                worker = key.data
                yield worker.take()
                if (another := next(waiting, None)) is not None:
                    worker.give(another)


def main() -> None:
    """Main function of a worker: reads the doer of jobs, then jobs until the pipe ends."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # a verifier's prints must not go into the pipe
    end_with_parent()  # otherwise it could write to a folder that a resumed run uses
    make, parent = pickle.load(inbox)
    if os.getppid() != parent:  # the parent was killed before end_with_parent() took effect
        return
    doer: Doer = make()
    try:
        while True:
            try:
                number, job = pickle.load(inbox)
            except EOFError:
                return
            doer(number, job)
            outbox.write(b"%d\n" % number)
    except UserError as error:
        sys.exit(str(error))  # the parent reports this last line
    finally:
        doer.close()
