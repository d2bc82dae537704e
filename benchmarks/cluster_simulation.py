"""A thousand scoring workers, simulated: where the process that hands out rows is the limit.

    python benchmarks/cluster_simulation.py [--verdicts programs maths] [--workers 16 64 256 1000] [--seconds 60]

The code that hands out calls and takes results in is the real one (`verifiers.on_ray`), and so are its CPU seconds;
what Ray costs this process for a call is measured before, on this machine. Simulated are the workers, on a clock of
their own: verdicts that take as long as measured ones did (maths), or as programs do (log-normal, one in a thousand
runs into the deadline), a worker that is lost every ten hours, and twenty seconds until another one is there.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import os
import random
import secrets
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": "local"}
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}

from cluster import made

from verifiers import Completion, Problem, Reward
from verifiers.on_ray import fleet
from verifiers.on_ray.actors import Actors
from verifiers.on_ray.host import Ready
from verifiers.on_ray.judge import Node
from verifiers.worker import Result, plain_result

_LOST_EVERY_S, _RESTART_S = 36_000.0, 20.0
_DEADLINE_S = 10.0  # of a program
_WARM_S = 15.0  # until calls have their length, and the first deadlines have passed


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds of this process, in Ray."""

    call: float  # to hand out a call and to take in its result
    row: float  # more for each row of it
    waiting: float  # more for each call that `ray.wait` is told of, whenever it is called


def measured_costs(rows: list[tuple[Problem, Completion]]) -> Costs:
    """What Ray costs here; medians."""
    import ray

    ray.init(num_cpus=2, object_store_memory=200 << 20, log_to_driver=False, include_dashboard=False)
    result = plain_result(Reward("math + 0.1*format")(*rows[0]))

    class Answers:
        def call(self, job: Any) -> Any:
            return [result] * len(job), 0.5

        def never(self) -> None:
            time.sleep(3600)

    worker: Any = ray.remote(num_cpus=0.1)(Answers)
    busy, stuck = worker.remote(), worker.remote()
    job = [((p.prompt, p.answer), (c.text,)) for p, c in rows]

    def cost(size: int) -> float:
        found = []
        for _ in range(50):
            began = time.process_time()
            reference = busy.call.remote(job[:size])
            ray.wait([reference])
            ray.get(reference)
            found.append(time.process_time() - began)
        return statistics.median(found)

    small, large = cost(1), cost(len(job))
    done, pending = busy.call.remote(job[:1]), [stuck.never.remote() for _ in range(2000)]
    ray.wait([done])

    def wait(count: int) -> float:
        found = []
        for _ in range(50):
            began = time.process_time()
            ray.wait([*pending[:count], done], num_returns=1, timeout=1)
            found.append(time.process_time() - began)
        return statistics.median(found)

    waiting = (wait(2000) - wait(1)) / 1999
    ray.shutdown()
    return Costs(small, max(0.0, large - small) / (len(job) - 1), max(0.0, waiting))


class Cluster:
    """What `Fleet` uses of Ray, on a clock of its own: it goes on by this process's CPU seconds, and while it waits."""

    class Lost(Exception):
        """An actor's end."""

    def __init__(
        self, costs: Costs, seconds_of: Callable[[random.Random], float], reward: Reward, result: Result, seed: int
    ) -> None:
        self.costs, self.seconds_of, self.result = costs, seconds_of, result
        self.said = Ready("simulated", 0, Node({}, [dict(reward.versions)]))
        self.rng, self.now, self.cpu = random.Random(seed), 0.0, 0.0
        self.busy = 0.0  # seconds of all workers
        self.rows = 0  # whose results were taken in
        self._coming: list[tuple[float, int, _Reference]] = []
        self._here: set[_Reference] = set()  # finished, and not taken
        self._numbers, self._seen = itertools.count(), time.process_time()
        self.exceptions = SimpleNamespace(RayError=Cluster.Lost, RayTaskError=type("RayTaskError", (Exception,), {}))

    def lap(self) -> None:
        """This process has computed since."""
        seen = time.process_time()
        self.spend(seen - self._seen)

    def forget(self) -> None:
        """What this process has computed since is the simulation's own."""
        self._seen = time.process_time()

    def spend(self, seconds: float) -> None:
        self.cpu += seconds
        self.now += seconds
        self._seen = time.process_time()

    def remote(self, **resources: Any) -> Callable[[Any], Any]:
        return lambda actor: SimpleNamespace(remote=lambda *arguments: _Handle(self))

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1e6}

    available_resources = cluster_resources

    def kill(self, handle: _Handle) -> None:
        handle.lost_at = min(handle.lost_at, self.now)

    def finishes(self, handle: _Handle, at: float, result: Any) -> _Reference:
        reference = _Reference(min(at, handle.lost_at), at <= handle.lost_at, result)
        heapq.heappush(self._coming, (reference.at, next(self._numbers), reference))
        return reference

    def wait(self, references: list[_Reference], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        self.lap()
        self.spend(self.costs.waiting * len(references))
        known, until = set(references), self.now + timeout
        while True:
            while self._coming and self._coming[0][0] <= self.now:
                self._here.add(heapq.heappop(self._coming)[2])
            found = list(itertools.islice(self._here & known, num_returns))
            if found or self.now >= until:
                break
            self.now = min(until, self._coming[0][0] if self._coming else until)
        self.forget()
        return found, []

    def get(self, reference: _Reference) -> Any:
        self.lap()
        self._here.discard(reference)
        if not reference.arrives:
            raise Cluster.Lost("node")
        if isinstance(reference.result, tuple):
            self.rows += len(reference.result[0])
            self.busy += reference.result[1]
        return reference.result


@dataclass(eq=False, slots=True)
class _Reference:
    at: float
    arrives: bool
    result: Any


@dataclass(eq=False)
class _Handle:
    """An actor, whose calls are made one after the other."""

    cluster: Cluster
    lost_at: float = 0.0
    free_at: float = 0.0
    ready: Any = field(init=False)
    call: Any = field(init=False)

    def __post_init__(self) -> None:
        cluster = self.cluster
        self.lost_at = cluster.now + _RESTART_S + cluster.rng.expovariate(1 / _LOST_EVERY_S)
        self.free_at = cluster.now + (_RESTART_S if cluster.now else 0.0)
        self.ready = SimpleNamespace(remote=lambda: cluster.finishes(self, self.free_at, cluster.said))
        self.call = SimpleNamespace(remote=self._call)

    def _call(self, job: tuple[int, list[Any]]) -> _Reference:
        cluster, rows = self.cluster, len(job[1])
        cluster.lap()
        cluster.spend(cluster.costs.call + cluster.costs.row * rows)
        seconds = sum(cluster.seconds_of(cluster.rng) for _ in range(rows))
        cluster.forget()
        self.free_at = max(self.free_at, cluster.now) + seconds
        return cluster.finishes(self, self.free_at, ([cluster.result] * rows, seconds))


def simulate(
    workers: int, seconds_of: Callable[[random.Random], float], costs: Costs, rows: list[Any], seconds: float
) -> str:
    """A line of the table: this many workers for so many seconds of their clock, of which the warm-up is none."""
    reward = Reward("math + 0.1*format")
    cluster = Cluster(costs, seconds_of, reward, plain_result(reward(*rows[0])), seed=workers)
    clock = SimpleNamespace(monotonic=lambda: cluster.now, sleep=lambda seconds: None)
    vars(fleet).update(imported=lambda: cluster, connect=lambda ray, address: True, time=clock)

    actors = Actors([reward], count=workers)
    actors.start()
    scores = actors.map(0, itertools.cycle(rows))
    until = cluster.now + _WARM_S
    before = (0.0, 0, 0.0, 0.0)
    for _ in scores:
        if cluster.now < until:
            continue
        cluster.lap()
        now = (cluster.now, cluster.rows, cluster.busy, cluster.cpu)
        if before[0]:
            break
        before, until = now, cluster.now + seconds
    scores.close()
    took, scored, busy, ours = (one - other for one, other in zip(now, before, strict=True))
    return f"{workers:,} | {scored / took:,.0f} | {busy / workers / took:.0%} | {ours / took:.0%}"


def maths(rng: random.Random) -> float:
    """Seconds of a verdict: .3 ms, some ten times as long."""
    return 3e-4 * rng.lognormvariate(0, 0.7)


def programs(rng: random.Random) -> float:
    """Seconds of a program with its tests: 50 ms, a few seconds, or for ever."""
    return _DEADLINE_S if rng.random() < 1e-3 else min(_DEADLINE_S, 0.05 * rng.lognormvariate(0, 1))


def main() -> None:
    """Measures, simulates, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", nargs="+", choices=("maths", "programs"), default=["maths", "programs"])
    parser.add_argument("--workers", type=int, nargs="+", default=[16, 64, 256, 1000])
    parser.add_argument("--seconds", type=float, default=60.0, help="of the simulated clock, after 15 of warm-up")
    options = parser.parse_args()
    rows = list(made(512))
    costs = measured_costs(rows)
    print(
        f"Ray costs this process {1e3 * costs.call:.2f} ms a call, {1e3 * costs.row:.3f} ms a row, "
        f"{1e6 * costs.waiting:.2f} us for each call that it waits for\n"
    )
    print("| verdicts | workers | rows/s | workers busy | this process busy |\n| --- | --- | --- | --- | --- |")
    for name in options.verdicts:
        seconds_of = {"maths": maths, "programs": programs}[name]
        for workers in options.workers:
            print(f"| {name} | {simulate(workers, seconds_of, costs, rows, options.seconds)} |", flush=True)


if __name__ == "__main__":
    main()
