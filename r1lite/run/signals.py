"""Handles SIGINT, SIGTERM, SIGHUP and SIGUSR1, which Slurm sends before a job's time is over if it is asked to.

They stop a run at a point from which it can be resumed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from r1lite.distributed.world import ALONE, World
from r1lite.errors import Interrupted

_ONE_STOP_S = 2.0


class StopSignal:
    """Records the first signal; a further one, more than two seconds after it, ends the process immediately.

    Earlier ones belong to the first: where every process of a job is signalled, a rank gets the signal also from its
    launcher. A signal that the process was started to ignore (`nohup`) stays ignored.

    Between `interruptible()` blocks the signal is only recorded, so that weights, files and counters stay consistent.
    `agree()` later raises Interrupted on all ranks together.
    """

    def __init__(self) -> None:
        self.world: World = ALONE
        self._received: int | None = None
        self._received_at = 0.0
        self._interruptible = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopSignal:
        # Python only delivers signals to the main thread; a run in another thread can't be stopped by them.
        signums = (
            (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
            if threading.current_thread() is threading.main_thread()
            else ()
        )
        for signum in signums:
            if signal.getsignal(signum) is not signal.SIG_IGN:
                self._before[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)  # type: ignore[arg-type]

    def check(self) -> None:
        """Raises Interrupted if a signal was received."""
        if self._received is not None:
            raise Interrupted(self._received)

    def agree(self) -> None:
        """Raises Interrupted on every rank if any rank received a signal."""
        if signum := int(self.world.max(self._received or 0)):
            raise Interrupted(signum)

    @contextlib.contextmanager
    def interruptible(self, *, together: bool = False) -> Iterator[None]:
        """Within the block a signal raises Interrupted immediately. The block must not change the run's state.

        Args:
            together: the ranks wait for each other in the block. Since a rank that left would leave the others waiting,
                the signal is only recorded if there are several ranks.
        """
        if together and self.world.size > 1:
            yield
            return
        self.check()
        self._interruptible = True
        try:
            yield
        finally:
            self._interruptible = False

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self._received is not None:
            if time.monotonic() - self._received_at > _ONE_STOP_S:
                os._exit(128 + signum)
            return
        self._received, self._received_at = signum, time.monotonic()
        if self._interruptible:
            raise Interrupted(signum)
