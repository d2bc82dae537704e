"""Steps per hour and the engines' idle share by --max-staleness, with long-tailed completion and verification times.

The loop, its queue and its files are r1lite's own. Servers, verifiers and learning are simulated by sleeping, so that
two cores are enough. A server's decoding speed per completion doesn't depend on its load. Lengths are drawn from a
log-normal distribution that is cut at the longest completion. New weights stop every server for a moment, and
unfinished completions are computed once more as prompts. Settings are run in turns.

    python benchmarks/async.py                                # four settings, three turns, about ten minutes
    python benchmarks/async.py --steps 12 --turns 1 --sigma 0  # without a tail
    python benchmarks/async.py --staleness 2 --threads 1 4 --workers 16 --verdict-s 0.09 --slow-s 5  # scoring threads
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1lite.config import GRPOConfig, WatchdogConfig
from r1lite.grpo import sampler
from r1lite.grpo.loop import Loop
from r1lite.rollout import RolloutEngine, Sampling
from r1lite.rollout.trust import TrustedEngine
from r1lite.run.signals import StopSignal
from r1lite.run.watchdog import Watchdog
from r1lite.types import Group, Prompt, Rollout
from verifiers import Completion, Problem, Score

TOKEN_S = 0.001  # seconds per token of a completion, independent of the server's other completions
PREFILL = 0.02  # share of the time of decoding
UPDATE_S, LEARN_S = 0.05, 0.4
GROUPS, GROUP_SIZE, SLOTS = 16, 8, 64
MEDIAN, LONGEST = 250, 3000  # tokens
WARM_UP = 5  # first steps, which are not counted


@dataclass(order=True, slots=True)
class _Running:
    ends: float
    number: int
    place: int = field(compare=False)
    sample: int = field(compare=False)
    tokens: int = field(compare=False)
    versions: list[tuple[int, int]] = field(compare=False)  # (first token, version)
    done: _Stream = field(compare=False)


@dataclass(slots=True)
class _Stream:
    """Completions of one call."""

    missing: list[int]  # number of missing completions of each prompt
    completions: list[list[Completion | None]]
    finished: list[int] = field(default_factory=list)


class SimulatedServers(RolloutEngine):
    """Servers with SLOTS completions at the same time in total; further ones wait."""

    shares_weights, runs_aside = False, True

    def __init__(self, sigma: float) -> None:
        self.sigma, self.version, self.closed = sigma, 0, False
        self.busy_s = 0.0  # busy seconds of all slots
        self._running: list[_Running] = []
        self._waiting: list[tuple[int, int, int, _Stream]] = []  # seed, place, sample
        self._numbers, self._changed, self._paused = itertools.count(), threading.Condition(), False
        threading.Thread(target=self._serve, daemon=True).start()

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        """See the engine's method."""
        call = _Stream([len(row) for row in seeds], [[None] * len(row) for row in seeds])
        with self._changed:
            self._waiting += [(s, place, g, call) for place, row in enumerate(seeds) for g, s in enumerate(row)]
            self._changed.notify_all()
        for _ in prompts:
            with self._changed:
                while not call.finished:
                    self._changed.wait()
                place = call.finished.pop(0)
            yield place, [one for one in call.completions[place] if one is not None]

    def load_weights(self, weights: Iterable[tuple[str, Any]], *, version: int) -> None:
        """Stops all servers; each completion continues after its tokens have been computed once more."""
        with self._changed:
            self._paused, self.version, began = True, version, time.monotonic()
        time.sleep(UPDATE_S)
        with self._changed:
            pause = time.monotonic() - began
            for one in self._running:
                so_far = one.tokens - math.ceil(max(one.ends - began, 0) / TOKEN_S)
                one.ends += pause + PREFILL * so_far * TOKEN_S
                self.busy_s -= pause
                if 0 < so_far < one.tokens:
                    one.versions.append((so_far, version))
                elif so_far <= 0:
                    one.versions[:] = [(0, version)]
            heapq.heapify(self._running)
            self._paused = False
            self._changed.notify_all()

    def sleep(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Ends the simulation."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _serve(self) -> None:
        before = time.monotonic()
        with self._changed:
            while not self.closed:
                now = time.monotonic()
                self.busy_s += len(self._running) * (now - before)
                before = now
                while self._running and self._running[0].ends <= now and not self._paused:
                    self._finish(heapq.heappop(self._running))
                while self._waiting and len(self._running) < SLOTS and not self._paused:
                    seed, place, sample, call = self._waiting.pop(0)
                    tokens = length(seed, self.sigma)
                    ends, versions = now + tokens * TOKEN_S, [(0, self.version)]
                    running = _Running(ends, next(self._numbers), place, sample, tokens, versions, call)
                    heapq.heappush(self._running, running)
                self._changed.notify_all()
                soon = self._running[0].ends - time.monotonic() if self._running and not self._paused else 1.0
                self._changed.wait(max(soon, 0.001))

    def _finish(self, one: _Running) -> None:
        stretches = tuple(one.versions) if len(one.versions) > 1 else ()
        ids, version = (0,) * one.tokens, one.versions[0][1]
        reason = "length" if one.tokens == LONGEST else "stop"
        one.done.completions[one.place][one.sample] = Completion(
            "", ids, (-1.0,) * one.tokens, reason, version, stretches=stretches
        )
        one.done.missing[one.place] -= 1
        if not one.done.missing[one.place]:
            one.done.finished.append(one.place)


def length(seed: int, sigma: float) -> int:
    """Number of tokens of a completion."""
    return max(1, min(LONGEST, round(MEDIAN * math.exp(random.Random(seed).gauss(0, sigma)))))


class SimulatedScorer:
    """Simulated verdicts of some workers: most take `verdict_s`, one in 500 takes `slow_s`."""

    overlaps = True

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._lock = options, threading.Lock()
        self._free = [0.0] * options.workers  # when each worker has done all that was given to it

    def rollouts(
        self, pairs: Sequence[tuple[Problem, Completion]], scored: Callable[[], object] | None = None
    ) -> list[Rollout]:
        """See `Scorer.rollouts`."""
        now = ended = time.monotonic()
        with self._lock:
            for problem, completion in pairs:
                slow = random.Random(f"{problem.id} {len(completion.token_ids)}").random() < 0.002
                takes = self._options.slow_s if slow else self._options.verdict_s
                done = max(now, self._free[0]) + takes
                heapq.heapreplace(self._free, done)
                ended = max(ended, done)
        time.sleep(ended - now)
        return [Rollout(c, Score(0.0, {}), 0.0, True, True) for _, c in pairs]


class SimulatedLearner:
    """A learner that sleeps for the time of an update."""

    class policy:  # the methods that the loop calls
        """A policy without weights."""

        @staticmethod
        def named_weights() -> Iterator[tuple[str, Any]]:
            """No weights."""
            return iter(())

    def learn(self, groups: Sequence[Group], step: int) -> tuple[list[Group], dict[str, Any]]:
        """See `Learner.learn`."""
        time.sleep(LEARN_S)
        return list(groups), {}


def run(staleness: int, threads: int, options: argparse.Namespace, seed: int) -> dict[str, float]:
    """A run's figures over the steps after the warm-up."""
    sampler._THREADS = threads
    steps, sigma = options.steps, options.sigma
    config = GRPOConfig(
        seed=seed,
        steps=WARM_UP + steps + staleness,  # in the last steps fewer completions are requested
        prompts_per_step=GROUPS,
        group_size=GROUP_SIZE,
        max_completion_tokens=LONGEST,
        max_staleness=staleness,
    )
    servers, metrics = SimulatedServers(sigma), []
    engine = TrustedEngine(servers, None, SimulatedLearner.policy.named_weights, pad_id=0)
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(
            config=config,
            prompts=[Prompt(Problem(id=f"p{i}"), "", (1, 2)) for i in range(1000)],
            scorer=SimulatedScorer(options),  # type: ignore[arg-type]  # has the methods that the loop calls
            engine=engine,
            learner=SimulatedLearner(),  # type: ignore[arg-type]  # likewise
            stop=StopSignal(),
            watchdog=Watchdog(WatchdogConfig()),
            arrivals=Path(folder) / "arrivals.jsonl",
        )
        clock: list[tuple[float, float]] = []  # before each step: the time, and the busy seconds of the slots
        for step in range(config.steps):
            clock.append((time.monotonic(), servers.busy_s))
            metrics.append(loop.step(step)[1])
        clock.append((time.monotonic(), servers.busy_s))
    servers.close()
    first, last = clock[WARM_UP], clock[WARM_UP + steps]
    seconds, busy = last[0] - first[0], last[1] - first[1]
    counted = metrics[WARM_UP : WARM_UP + steps]
    groups = steps * GROUPS + sum(one.get("dropped_groups", 0) for one in counted)
    return {
        "steps an hour": 3600 * steps / seconds,
        "idle": 1 - busy / (SLOTS * seconds),
        "staleness": statistics.fmean(one["staleness"] for one in counted),
        "dropped": sum(one.get("dropped_groups", 0) for one in counted) / groups,
        "across": statistics.fmean(one.get("across_weights", 0.0) for one in counted),
        "tokens": statistics.fmean(one["completion_tokens"] for one in counted),
    }


def main() -> None:
    """Prints a table: medians over the turns, and the range of steps per hour."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--staleness", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--threads", type=int, nargs="+", default=[sampler._THREADS], help="threads that score")
    parser.add_argument("--verdict-s", type=float, default=0.02, help="seconds of a verdict")
    parser.add_argument("--slow-s", type=float, default=0.5, help="seconds of one in 500 verdicts")
    parser.add_argument("--workers", type=int, default=1000, help="verdicts at the same time")
    parser.add_argument("--steps", type=int, default=20, help="steps of each run after the warm-up")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--sigma", type=float, default=1.0, help="standard deviation of the logarithm of lengths")
    options = parser.parse_args()
    settings = [(staleness, threads) for staleness in options.staleness for threads in options.threads]
    found: dict[tuple[int, int], list[dict[str, float]]] = {setting: [] for setting in settings}
    for turn in range(options.turns):
        for setting in settings:
            found[setting].append(run(*setting, options, turn))
            print(turn, *setting, {name: round(value, 3) for name, value in found[setting][-1].items()}, flush=True)
    lengths = [length(seed, options.sigma) for seed in range(10_000)]
    print(f"\nSimulated servers; completions of {statistics.fmean(lengths):.0f} tokens on average\n")
    print(
        "| `--max-staleness` | threads | steps an hour | engines idle | staleness | dropped | across weights | tokens |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (staleness, threads), runs in found.items():
        rates = sorted(one["steps an hour"] for one in runs)
        median = {name: statistics.median(one[name] for one in runs) for name in runs[0]}
        rate = f"{median['steps an hour']:.0f} ({rates[0]:.0f}-{rates[-1]:.0f})"
        print(
            f"| {staleness} | {threads} | {rate} | {median['idle']:.0%} | {median['staleness']:.1f} | "
            f"{median['dropped']:.1%} | {median['across']:.0%} | {median['tokens']:.0f} |"
        )


if __name__ == "__main__":
    main()
