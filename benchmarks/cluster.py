"""Scoring on Ray beside one machine's worker processes: rows a second, and rows a CPU second of all processes.

    python benchmarks/cluster.py [--rows 30000] [--actors 1 2 4] [--rounds 3]

More actors than cores share them (`oversubscribed` in the table). Each round scores the same rows once in each way, one
after the other; the table has the medians. CPU seconds are those of this process, of all that descends from it, and so
of the cluster that is started here: Ray's own daemons are counted too.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": "local"}

import psutil

from verifiers import Completion, Problem, Reward
from verifiers.on_ray import Actors
from verifiers.pool import Pool
from verifiers.reward import Score

_FORMULA = "math + 0.1*format"
Pairs = Sequence[tuple[Problem, Completion]]


def made(count: int) -> Pairs:
    """Completions of a few hundred characters, a third of them wrong."""
    rng = random.Random(0)
    found = []
    for number in range(count):
        price, pieces = rng.randrange(2, 90), rng.randrange(2, 40)
        total = price * pieces
        said = total + (number % 3 == 0)
        work = " ".join(
            f"One costs {price}, so {n} cost {price} * {n} = {price * n}." for n in range(1, rng.randrange(3, 9))
        )
        text = f"<think>{work} All {pieces} cost {total}.</think><answer>{said}</answer>"
        found.append((Problem("What do they cost?", answer=str(total), id=str(number)), Completion(text)))
    return found


def cpu_s() -> float:
    """CPU seconds of this process and its descendants so far."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def timed(score: Callable[[Pairs], Iterable[Score]], pairs: Pairs) -> tuple[float, float]:
    """(seconds, CPU seconds) of one pass. Raises RuntimeError if a completion is unscored."""
    began, before = time.monotonic(), cpu_s()
    if any(found.reward is None for found in score(pairs)):
        raise RuntimeError("a completion is unscored")
    return time.monotonic() - began, cpu_s() - before


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    import ray

    cores = len(os.sched_getaffinity(0))
    pairs, reward = made(options.rows), Reward(_FORMULA)
    ray.init(num_cpus=max(cores, *options.actors), log_to_driver=False, include_dashboard=False, logging_level="error")
    figures: dict[str, list[tuple[float, float]]] = {}
    for _ in range(options.rounds):
        for count in options.actors:
            with Pool(reward, workers=count) as pool:
                list(pool.map(pairs[:200]))  # the workers have loaded
                figures.setdefault(f"processes | {count}", []).append(timed(pool.map, pairs))
            actors = Actors([reward], count=count)
            try:
                list(actors.map(0, pairs[:200]))
                figures.setdefault(f"actors | {count}", []).append(timed(actors.scorer().map, pairs))
            finally:
                actors.close()
    ray.shutdown()
    print(f"{options.rows:,} rows, {cores} cores, Ray {ray.__version__}\n")
    print("| | workers | rows/s | rows a CPU second | |\n| --- | --- | --- | --- | --- |")
    for name, rounds in figures.items():
        seconds, cpu = (statistics.median(column) for column in zip(*rounds, strict=True))
        note = "oversubscribed" if int(name.split()[-1]) > cores else ""
        print(f"| {name} | {options.rows / seconds:,.0f} | {options.rows / cpu:,.0f} | {note} |")


if __name__ == "__main__":
    main()
