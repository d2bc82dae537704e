"""Scoring on Ray compared with worker processes on one machine: rows per second, and per CPU second of all processes.

    python benchmarks/cluster.py [--rows 30000] [--actors 1 2 4] [--rounds 3]
    python benchmarks/cluster.py --programs 400 [--actors 1 2 4] [--rounds 3]
    python benchmarks/cluster.py --stream 1000000 [--shard-rows 100000] [--actors 1 2 4] [--only actors]

If there are more actors than cores, the table says `oversubscribed`. CPU seconds include all processes and Ray's
daemons.

Without `--stream` each round scores the same rows from this process's memory once in each way, one after the other; the
table has the medians. With `--programs` the rows are programs, each run on one test in the sandbox. With `--stream`,
`python -m verifiers score` reads a folder of shards once in each way (four different shards, linked as needed),
and the table also has the peak proportional memory of the command with all its workers or actors, and of Ray's daemons.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": "local"}
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # Ray listens on all addresses

from watching import Watch

from verifiers import Completion, Problem, Reward
from verifiers.on_ray import Actors
from verifiers.pool import Pool
from verifiers.reward import Score

_FORMULA = "math + 0.1*format"
_CORES = len(os.sched_getaffinity(0))
_DIFFERENT = 4  # shards
Pairs = Sequence[tuple[Problem, Completion]]


def made(count: int, seed: int = 0) -> Pairs:
    """Completions of a few hundred characters, a third of them wrong."""
    rng = random.Random(seed)
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


def made_programs(count: int) -> Pairs:
    """Programs that add two numbers, a third of them wrong."""
    found = []
    for number in range(count):
        tests = {"style": "stdin", "inputs": [f"{number} 7"], "outputs": [str(number + 7)]}
        code = f"print(sum(map(int, input().split())) + {int(number % 3 == 0)})"
        found.append((Problem("Print the sum", tests=tests, id=str(number)), Completion(f"```python\n{code}\n```")))
    return found


def timed(score: Callable[[Pairs], Iterable[Score]], pairs: Pairs) -> tuple[float, float]:
    """(seconds, CPU seconds) of one pass. Raises RuntimeError if a completion is unscored."""
    began = time.monotonic()
    with Watch() as watch:
        if any(found.reward is None for found in score(pairs)):
            raise RuntimeError("a completion is unscored")
        seconds = time.monotonic() - began
    return seconds, watch.spent_s


def in_memory(pairs: Pairs, reward: Reward, counts: Sequence[int], rounds: int) -> None:
    """Prints the table for rows from this process's memory."""
    rows, warm = len(pairs), pairs[: min(200, len(pairs) // 10)]
    figures: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for count in counts:
            with Pool(reward, workers=count) as pool:
                list(pool.map(warm))  # the workers have loaded
                figures.setdefault(f"processes | {count}", []).append(timed(pool.map, pairs))
            actors = Actors([reward], count=count)
            try:
                list(actors.map(0, warm))
                figures.setdefault(f"actors | {count}", []).append(timed(actors.scorer().map, pairs))
            finally:
                actors.close()
    print("| | workers | rows/s | rows a CPU second | CPU ms a row | |\n| --- | --- | --- | --- | --- | --- |")
    for name, found in figures.items():
        seconds, cpu = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"| {name} | {rows / seconds:,.0f} | {rows / cpu:,.0f} | {1e3 * cpu / rows:.3f} | {_note(name)} |")


def write_shards(folder: Path, rows: int, each: int) -> None:
    """Writes `rows` rows in shards of `each` rows."""
    for number in range(math.ceil(rows / each)):
        path, first = folder / f"part-{number:05d}.jsonl", folder / f"part-{number % _DIFFERENT:05d}.jsonl"
        size = min(each, rows - number * each)
        if path != first and size == each:
            os.link(first, path)
            continue
        with path.open("w", encoding="utf-8") as file:
            for problem, completion in made(size, seed=number):
                row = {"id": problem.id, "question": problem.prompt, "answer": problem.answer}
                file.write(json.dumps({**row, "completion": completion.text}) + "\n")


def stream(rows: int, each: int, counts: Sequence[int], address: str, only: str) -> None:
    """Prints the table for shards."""
    with tempfile.TemporaryDirectory() as place:
        shards, out = Path(place) / "in", Path(place) / "out"
        shards.mkdir()
        write_shards(shards, rows, each)
        print("| | workers | rows/s | rows a CPU second | peak MiB | Ray's daemons, MiB | |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for count in counts:
            for kind, on in (("processes", []), ("actors", ["--on", f"ray:{address}"])):
                if only not in (kind, "both"):
                    continue
                command = [sys.executable, "-m", "verifiers", "score", str(shards), "--reward", _FORMULA]
                command += ["--out", str(out), "--workers", str(count), *on]
                began = time.monotonic()
                with Watch() as watch:
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    seconds = time.monotonic() - began
                manifest = json.loads((out / "manifest.json").read_text())
                if sum(shard["rows"] for shard in manifest["shards"]) != rows:
                    raise RuntimeError("rows are missing")
                shutil.rmtree(out)
                name = f"{kind} | {count}"
                memory = f"{watch.peak_mib:,.0f} | {watch.daemons_mib if on else 0:,.0f}"
                rates = f"{rows / seconds:,.0f} | {rows / watch.spent_s:,.0f}"
                print(f"| {name} | {rates} | {memory} | {_note(name)} |", flush=True)


def _note(name: str) -> str:
    return "oversubscribed" if int(name.split()[-1]) > _CORES else ""


def main() -> None:
    """Prints one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--programs", type=int, default=0, metavar="ROWS")
    parser.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stream", type=int, default=0, metavar="ROWS")
    parser.add_argument("--shard-rows", type=int, default=100_000)
    parser.add_argument("--only", choices=("both", "processes", "actors"), default="both")
    options = parser.parse_args()
    import ray

    cpus = max(_CORES, *options.actors)
    store = 100 << 20  # enough for names, counts and a few thousand rows
    started = ray.init(
        num_cpus=cpus, object_store_memory=store, log_to_driver=False, include_dashboard=False, logging_level="error"
    )
    rows = options.stream or options.programs or options.rows
    print(f"{rows:,} rows, {_CORES} cores, Ray {ray.__version__}\n")
    if options.stream:
        stream(rows, options.shard_rows, options.actors, started.address_info["gcs_address"], options.only)
    elif options.programs:
        in_memory(made_programs(rows), Reward("code"), options.actors, options.rounds)
    else:
        in_memory(made(rows), Reward(_FORMULA), options.actors, options.rounds)
    ray.shutdown()


if __name__ == "__main__":
    main()
