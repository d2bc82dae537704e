"""Ends a run that has stopped making progress, with the stacks of all its threads.

A hung run looks like a slow one and blocks the machine until somebody notices. Each kind of work has its own time
limit, which restarts at each sign of life.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from r1lite.config import WatchdogConfig

_POLL_S = 0.25
_EXIT_CODE = 1
_STDERR = 2
_WORDS = {"load": "loading", "rollout": "sampling", "score": "scoring", "train": "learning", "save": "saving"}
_TELL_S = 2.0  # time for the other ranks to answer
_OTHER_S = 10.0  # time for another rank that ends the run to end this process too
_GRACE_S = 30.0  # after the limit, faulthandler's alarm fires: for a call that never releases the interpreter's lock


class Watchdog:
    """Watches a run from its own thread.

    When a limit expires, the watching thread writes all stacks to standard error and to `folder`/stacks.txt and ends
    the process with exit code 1. It can't run while a library holds the interpreter's lock, so faulthandler's alarm,
    which needs no lock, fires 30 s later. A process that was stopped (Ctrl-Z) for longer than the limit counts as hung.
    Each working thread has its own limit.
    """

    def __init__(self, limits: WatchdogConfig) -> None:
        self._limits = {
            "load": limits.stall_load_s,
            "rollout": limits.stall_rollout_s,
            "score": limits.stall_score_s,
            "train": limits.stall_train_s,
            "save": limits.stall_save_s,
        }
        self.folder: Path | None = None  # the run directory, once there is one
        self.resume = ""  # the command that resumes the run, known beforehand: to read a file now could hang too
        # Tells the other ranks before this one ends; returns False if another rank is already ending the run.
        self.tell: Callable[[str], bool] = lambda message: True
        self.who = ""  # name of this rank, if there are several
        self._raised_in: tuple[str, str] | None = None  # the innermost work that raised an exception
        # By thread: (kind, note, deadline on the monotonic clock). A thread only ever changes its own.
        self._works: dict[int, tuple[str, str, float]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    @contextlib.contextmanager
    def during(self, kind: str, note: str = "") -> Iterator[None]:
        """Watches the block, for the calling thread.

        Args:
            kind: load, rollout, score, train or save; determines the limit.
            note: the current work, for the message.
        """
        outer = self._works.get(threading.get_ident())
        self._raised_in = None
        self._begin(kind, note)
        try:
            yield
        except BaseException:
            self._raised_in = self._raised_in or (kind, note)
            raise
        finally:
            self._works.pop(threading.get_ident(), None)
            if outer is not None:
                self._begin(outer[0], outer[1])

    def beat(self) -> None:
        """Restarts the time limit of this thread's current work."""
        work = self._works.get(threading.get_ident())
        if work is not None:
            self._begin(work[0], work[1])

    def doing(self) -> str:
        """Returns a description of the current work, or of the work that raised an exception."""
        works = [self._raised_in] if self._raised_in else [(kind, note) for kind, note, _ in [*self._works.values()]]
        return " and ".join(f"{_WORDS[kind]}{f' ({note})' if note else ''}" for kind, note in works) or "between works"

    def _begin(self, kind: str, note: str) -> None:
        limit, me = self._limits[kind], threading.get_ident()
        if limit > 0:
            self._works[me] = (kind, note, time.monotonic() + limit)
        else:
            self._works.pop(me, None)

    def _watch(self) -> None:
        try:
            while not self._ended.wait(_POLL_S):
                # Copied in one operation, which no other thread can interrupt.
                work = min(list(self._works.values()), key=lambda work: work[2], default=None)
                if work is None:
                    faulthandler.cancel_dump_traceback_later()
                    continue
                left = work[2] - time.monotonic()
                if left <= 0:
                    self._end(*work[:2])
                faulthandler.dump_traceback_later(left + _GRACE_S, exit=True, file=_STDERR)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _end(self, kind: str, note: str) -> None:
        doing = f" ({note})" if note else ""
        resume = f"; the last checkpoint remains: {self.resume}" if self.resume else ""
        message = (
            f"error: {self.who}no progress for {self._limits[kind]:g} s in {_WORDS[kind]}{doing}{resume}. "
            f"To allow more time, raise --stall-{kind}-s"
        )
        if not self._is_first(message.removeprefix("error: ")):
            time.sleep(_OTHER_S)
            os._exit(_EXIT_CODE)
        # Written directly to the descriptors: the hung thread may hold the locks of sys.stderr.
        _write(_STDERR, message)
        if self.folder is not None:
            # The disk may hang or be full.
            with contextlib.suppress(OSError), open(self.folder / "stacks.txt", "wb", buffering=0) as file:
                _write(file.fileno(), message)
        os._exit(_EXIT_CODE)  # no exit handlers and no joins, which could hang too

    def _is_first(self, message: str) -> bool:
        """Returns whether this rank reports the error; True also if the other ranks can't be reached."""
        answers = [True]
        asking = threading.Thread(target=lambda: answers.append(self.tell(message)), daemon=True)
        asking.start()
        asking.join(_TELL_S)
        return answers[-1]


def _write(descriptor: int, message: str) -> None:
    with contextlib.suppress(OSError):  # closed
        os.write(descriptor, message.encode("utf-8", "backslashreplace") + b"\n")
        faulthandler.dump_traceback(descriptor, all_threads=True)
