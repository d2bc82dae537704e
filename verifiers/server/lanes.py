"""Scoring for a server: a bounded queue of rows, and lanes (a thread with a worker process) that process it."""

from __future__ import annotations

import collections
import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verifiers.core import Completion, Problem
from verifiers.pool import Pool
from verifiers.reward import Reward, Score

_ROWS_AT_ONCE = 32
_POOLS_PER_LANE = 4


class Full(Exception):
    """The queue has no room; try again later."""


class Job:
    """Some rows of one request."""

    def __init__(self, reward: Reward, pairs: Sequence[tuple[Problem, Completion]], done: Callable[[], object]) -> None:
        """`done` is called once, in any thread, when all scores are available."""
        self.reward = reward
        self.pairs = list(pairs)
        self.scores: list[Score | None] = [None] * len(self.pairs)
        self.cancelled = False
        self._done = done
        self._left = len(self.pairs)
        self._lock = threading.Lock()
        if not self.pairs:
            done()

    def put(self, index: int, score: Score) -> None:
        """Stores a result."""
        with self._lock:
            self.scores[index] = score
            self._left -= 1
            is_last = not self._left
        if is_last and not self.cancelled:
            self._done()


class Lanes:
    """Accepts jobs until `max_rows` wait, and scores them with `count` worker processes.

    A verifier that hangs blocks only its own lane, for at most `timeout_s`.
    """

    def __init__(self, *, count: int, max_rows: int, timeout_s: float, memory_mib: int | None) -> None:
        self.max_rows, self.timeout_s, self.memory_mib = max_rows, timeout_s, memory_mib
        self._waiting: collections.deque[tuple[Job, int, int]] = collections.deque()  # job, start, stop
        self._rows = 0
        self._changed = threading.Condition()
        self._closing = False
        self._threads = [threading.Thread(target=self._lane, name=f"lane-{i}", daemon=True) for i in range(count)]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Number of rows that no lane has taken yet."""
        return self._rows

    def submit(self, job: Job) -> None:
        """Queues a job. Raises Full."""
        with self._changed:
            if self._closing or self._rows + len(job.pairs) > self.max_rows:
                raise Full
            for start in range(0, len(job.pairs), _ROWS_AT_ONCE):
                self._waiting.append((job, start, min(start + _ROWS_AT_ONCE, len(job.pairs))))
            self._rows += len(job.pairs)
            self._changed.notify_all()

    def withdraw(self, job: Job) -> None:
        """Removes the rows of a job that nobody waits for any more."""
        job.cancelled = True
        with self._changed:
            kept = [entry for entry in self._waiting if entry[0] is not job]
            self._rows -= sum(stop - start for _, start, stop in self._waiting) - sum(b - a for _, a, b in kept)
            self._waiting = collections.deque(kept)

    def close(self) -> None:
        """Ends the lanes; rows that still wait are unscored."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=self.timeout_s + 5)

    def _lane(self) -> None:
        pools: collections.OrderedDict[str, Pool] = collections.OrderedDict()
        try:
            while True:
                with self._changed:
                    while not self._waiting and not self._closing:
                        self._changed.wait()
                    if self._closing:
                        return
                    job, start, stop = self._waiting.popleft()
                    self._rows -= stop - start
                if not job.cancelled:
                    self._score(pools, job, start, stop)
        finally:
            for pool in pools.values():
                pool.close()

    def _score(self, pools: collections.OrderedDict[str, Pool], job: Job, start: int, stop: int) -> None:
        key = json.dumps([job.reward.formula, job.reward.options], sort_keys=True, default=str)
        place = start
        try:
            if key not in pools:
                if len(pools) >= _POOLS_PER_LANE:
                    pools.popitem(last=False)[1].close()
                pools[key] = Pool(
                    job.reward, workers=1, timeout_s=self.timeout_s, memory_mib=self.memory_mib, dies_with_thread=True
                )
            pools.move_to_end(key)
            with contextlib.closing(pools[key].map(job.pairs[start:stop])) as scores:
                for score in scores:
                    job.put(place, score)
                    place += 1
                    if job.cancelled:
                        break
        except Exception as error:  # of setting up or starting a worker; no later row would be scored without this lane
            if key in pools:
                pools.pop(key).close()
            for rest in range(place, stop):
                job.put(rest, Score(None, {}, f"{type(error).__name__}: {error}", job.reward.versions))


class Metrics:
    """Counters in Prometheus' text format."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: collections.Counter[tuple[str, tuple[tuple[str, str], ...]]] = collections.Counter()
        self._seconds: collections.defaultdict[str, float] = collections.defaultdict(float)

    def request(self, route: str, code: int, began: float) -> None:
        """Counts a request that began at this monotonic time."""
        with self._lock:
            self._counts["verifiers_requests_total", (("code", str(code)), ("route", route))] += 1
            self._seconds[route] += time.monotonic() - began

    def scored(self, scores: Sequence[Score]) -> None:
        """Counts rows by verifier and reason."""
        with self._lock:
            self._counts["verifiers_rows_total", ()] += len(scores)
            for score in scores:
                if score.reward is None:
                    self._counts["verifiers_unscored_rows_total", ()] += 1
                for name, verdict in score.verdicts.items():
                    labels = (("reason", verdict.reason), ("verifier", name))
                    self._counts["verifiers_verdicts_total", labels] += 1

    def text(self, gauges: Mapping[str, float]) -> str:
        """Returns all metrics as text."""
        lines: list[str] = []
        with self._lock:
            for name in sorted({name for name, _ in self._counts}):
                lines.append(f"# TYPE {name} counter")
                lines += [
                    f"{name}{_labels(labels)} {count}"
                    for (known, labels), count in sorted(self._counts.items())
                    if known == name
                ]
            lines.append("# TYPE verifiers_request_seconds_total counter")
            lines += [
                f"verifiers_request_seconds_total{_labels((('route', route),))} {spent:.6f}"
                for route, spent in sorted(self._seconds.items())
            ]
        for name, value in gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{key}="{escaped(value)}"' for key, value in labels) + "}" if labels else ""


def as_json(score: Score) -> dict[str, Any]:
    """Returns a score as the server sends it."""
    return {
        "reward": score.reward,
        "error": score.error or None,
        "verdicts": {
            name: {**verdict.as_json(), "version": score.versions.get(name, "")}
            for name, verdict in score.verdicts.items()
        },
    }
