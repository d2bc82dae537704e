"""Ends a run that has stopped making progress, with the stacks of all its threads.

A hung run looks like a slow one and costs the machine until somebody looks. Every kind of work has a limit of its own;
each sign of life starts it anew.
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
_TELL_S = 2.0  # for the other ranks' answer
_OTHER_S = 10.0  # another rank ends the run, with this process: so long it has for that
_GRACE_S = 30.0  # after the limit, the interpreter's own alarm goes off: for a call that never gives the lock back


class Watchdog:
    """Watches one run from a thread of its own.

    The watching thread writes the stacks to standard error and to `folder`/stacks.txt and ends the process with exit
    code 1. Where a library holds the interpreter's lock that thread can't run, so faulthandler's alarm, which needs no
    lock, stands behind it 30 s later. A process that was stopped (Ctrl-Z) for longer than the limit counts as hung.
    Each thread that works has a limit of its own.
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
        # Told to the other ranks before this one ends; False: one of them ends the run already, and says why.
        self.tell: Callable[[str], bool] = lambda message: True
        self.who = ""  # of several ranks
        self._raised_in: tuple[str, str] | None = None  # the innermost work that an exception has left
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
        """Watches the block, in the thread that is in it.

        Args:
            kind: load, rollout, score, train or save; decides on the limit.
            note: what is in work, for the reader of the message.
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
        """A sign of life: the limit of this thread's present work starts anew."""
        work = self._works.get(threading.get_ident())
        if work is not None:
            self._begin(work[0], work[1])

    def doing(self) -> str:
        """What is in work, or was when an exception came out of it, in words."""
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
                # Copied in one go, which no other thread can come between.
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
        resume = f"; the last checkpoint stands: --resume --out {self.folder}" if self.folder else ""
        message = (
            f"error: {self.who}no progress for {self._limits[kind]:g} s in {_WORDS[kind]}{doing}{resume}. "
            f"If that work may take longer: --stall-{kind}-s"
        )
        if not self._is_first(message.removeprefix("error: ")):
            time.sleep(_OTHER_S)
            os._exit(_EXIT_CODE)
        # Straight to the descriptors: what hangs may hold the locks of sys.stderr.
        _write(_STDERR, message)
        if self.folder is not None:
            # The disk may be what hangs or is full.
            with contextlib.suppress(OSError), open(self.folder / "stacks.txt", "wb", buffering=0) as file:
                _write(file.fileno(), message)
        os._exit(_EXIT_CODE)  # nothing that may hang as well: no exit handlers, no joins

    def _is_first(self, message: str) -> bool:
        """Whether this rank is the one that says what ends the run; it is where the others can't be told."""
        answers = [True]
        asking = threading.Thread(target=lambda: answers.append(self.tell(message)), daemon=True)
        asking.start()
        asking.join(_TELL_S)
        return answers[-1]


def _write(descriptor: int, message: str) -> None:
    with contextlib.suppress(OSError):  # closed: nobody to tell
        os.write(descriptor, message.encode("utf-8", "backslashreplace") + b"\n")
        faulthandler.dump_traceback(descriptor, all_threads=True)
