"""Simulates a thousand scoring workers, to find out when the process that hands out rows becomes the limit.

    python benchmarks/cluster_simulation.py [--verdicts programs maths] [--workers 16 64 256 1000] [--seconds 60]

The code that hands out calls and collects results is the real one (`verifiers.on_ray`), with its real CPU seconds. The
cost of Ray per call in this process is measured first, on this machine. The workers are simulated with their own clock:
verdicts take as long as measured ones (maths) or as programs (log-normal; one in a thousand reaches the deadline). A
worker is lost every ten hours and is replaced after twenty seconds.
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
_DEADLINE_S = 10.0  # deadline of a program
_WARM_S = 15.0  # warm-up: until the sizes of calls have settled and the first deadlines have passed


@dataclass(frozen=True, slots=True)
class Costs:
    """Cost of Ray in this process, in CPU seconds."""

    call: float  # to hand out a call and to collect its result
    row: float  # in addition, for each row of the call
    waiting: float  # in addition, for each call in the list of every `ray.wait`


def measured_costs(rows: list[tuple[Problem, Completion]]) -> Costs:
    """Cost of Ray on this machine, as medians."""
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
    """The parts of Ray that `Fleet` uses, with a simulated clock that advances by this process's CPU time and waits."""

    class Lost(Exception):
        """Raised if an actor is lost."""

    def __init__(
        self, costs: Costs, seconds_of: Callable[[random.Random], float], reward: Reward, result: Result, seed: int
    ) -> None:
        self.costs, self.seconds_of, self.result = costs, seconds_of, result
        self.said = Ready("simulated", 0, Node({}, [dict(reward.versions)]))
        self.rng, self.now, self.cpu = random.Random(seed), 0.0, 0.0
        self.busy = 0.0  # busy seconds of all workers
        self.rows = 0  # number of rows whose results were collected
        self._coming: list[tuple[float, int, _Reference]] = []
        self._here: set[_Reference] = set()  # finished, and not taken
        self._numbers, self._seen = itertools.count(), time.process_time()
        self.exceptions = SimpleNamespace(RayError=Cluster.Lost, RayTaskError=type("RayTaskError", (Exception,), {}))

    def lap(self) -> None:
        """Advances the clock by this process's CPU time since the last call."""
        seen = time.process_time()
        self.spend(seen - self._seen)

    def forget(self) -> None:
        """Ignores the CPU time since the last call, which belongs to the simulation."""
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
    """An actor, which makes its calls one after the other."""

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
    """A line of the table: `workers` workers for `seconds` of simulated time after the warm-up."""
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
    """Seconds of a verdict: 0.3 ms, sometimes ten times as long."""
    return 3e-4 * rng.lognormvariate(0, 0.7)


def programs(rng: random.Random) -> float:
    """Seconds of a program with its tests: about 50 ms, up to a few seconds, or until the deadline."""
    return _DEADLINE_S if rng.random() < 1e-3 else min(_DEADLINE_S, 0.05 * rng.lognormvariate(0, 1))


def main() -> None:
    """Measures, simulates, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", nargs="+", choices=("maths", "programs"), default=["maths", "programs"])
    parser.add_argument("--workers", type=int, nargs="+", default=[16, 64, 256, 1000])
    parser.add_argument("--seconds", type=float, default=60.0, help="simulated seconds, after 15 of warm-up")
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
