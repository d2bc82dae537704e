"""Cost of scoring: every verifier on a short completion and on 2,000 and 1,000,000 characters, and the pool's share.

    python benchmarks/score_rates.py [--workers 2] [--items 80000] [--rounds 3]
    python benchmarks/score_rates.py --code mbpp.jsonl [--items 300] [--rounds 3]

Times are CPU seconds of this process and of the pool's workers, since wall time means little on a shared machine.

With --code: MBPP's own solutions, and eight submissions that sleep, one at a time and through `score_many`, in
alternating rounds, with the CPU time of `score_many` per run, over all processes. Rows that take longer than two
seconds alone (there is one) are left out, since they would dominate.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from code_sandbox import cpu_seconds

from verifiers import Completion, Problem, Reward, resolve, score_many
from verifiers.pool import Pool
from verifiers.reward import Score, score_one
from verifiers.sandbox import from_mbpp

_SENTENCE = "First we add the three numbers that the problem gives, then we halve the sum and write it down. "
_OPTIONS = {"overlong": {"unit": "chars"}, "length": {"unit": "chars"}}
_LONG_S = 2.0
_NAMES = ("format", "language", "repetition", "thinking", "overlong", "length", "exact", "math")


def cpu_ms(call: Callable[[], object], repeats: int) -> float:
    """CPU milliseconds of one call, best of five."""
    call()
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(repeats):
            call()
        best = min(best, (time.process_time() - began) / repeats)
    return best * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--items", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--code", type=Path, metavar="FILE", help="rows of MBPP")
    options = parser.parse_args()
    if options.code is not None:
        code_rates(options.code, options.items or 300, options.rounds)
        return
    options.items = options.items or 80_000
    problem = Problem(prompt="How many sweets are left in the end?", answer="4", language="en")
    print(f"{'verifier':<12} {'short':>10} {'2,000 chars':>12} {'1,000,000':>12}   CPU ms")
    for name in _NAMES:
        verify = resolve(name, **_OPTIONS.get(name, {}))
        cells = []
        for size, repeats in ((100, 500), (2000, 100), (1_000_000, 1)):
            text = f"<think>{(_SENTENCE * (size // len(_SENTENCE) + 1))[:size]}</think><answer>4</answer>"
            completion = Completion(text)
            cells.append(cpu_ms(lambda v=verify, c=completion: v(problem, c), repeats))  # type: ignore[misc]
        print(f"{name:<12} {cells[0]:>10.4f} {cells[1]:>12.4f} {cells[2]:>12.2f}")
    pairs = [
        (
            Problem(prompt="How many?", answer=str(i), id=str(i)),
            Completion(f"<think>{_SENTENCE}</think><answer>{i}</answer>"),
        )
        for i in range(options.items)
    ]
    reward = Reward("math + 0.1*format")
    score_many(reward, pairs[:1000])
    few = pairs[: len(pairs) // 4]
    shares = []
    for _ in range(options.rounds):
        began = time.process_time()
        score_many(reward, pairs)
        single = (time.process_time() - began) / len(pairs)
        caller, workers, wall = pooled(reward, pairs, options.workers)
        caller_start, workers_start, wall_start = pooled(reward, few, options.workers)
        more = len(pairs) - len(few)  # the difference excludes the cost of starting
        caller, workers, wall = (caller - caller_start) / more, (workers - workers_start) / more, wall - wall_start
        shares.append(single / (caller + workers))
        print(
            f"one process {single * 1e6:.1f} us of CPU per item; pool of {options.workers}: caller {caller * 1e6:.1f}, "
            f"workers {workers * 1e6:.1f}; {shares[-1]:.2f} x cores x one process's rate by CPU time, "
            f"{single * more / wall / options.workers:.2f} by wall time; "
            f"{more / wall:,.0f} items per s of wall time"
        )
    print(f"median {statistics.median(shares):.2f}")


def wall_s(score: Callable[[], list[Score]]) -> float:
    """Wall seconds; the reward of every item must be 1."""
    began = time.perf_counter()
    scores = score()
    seconds = time.perf_counter() - began
    bad = [score for score in scores if score.reward != 1.0]
    if bad:
        raise SystemExit(f"{len(bad)} of {len(scores)} were not accepted: {bad[0]}")
    return seconds


def code_rates(path: Path, items: int, rounds: int) -> None:
    """Prints the cost of code one at a time and in batches."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()][:items]
    own = [(Problem(tests=from_mbpp(row)), Completion(f"```python\n{row['code']}\n```")) for row in rows]
    tests = {"style": "function", "entry_point": "f", "args": [[1]], "outs": [1]}
    sleeping = [(Problem(tests=tests), Completion("import time\ndef f(x):\n    time.sleep(0.3)\n    return x"))] * 8
    reward = Reward("code")
    for name, pairs in (("MBPP", own), ("sleeping", sleeping)):
        warm = [wall_s(lambda pair=pair: [score_one(reward, *pair)]) for pair in pairs]  # type: ignore[misc]
        pairs = [pair for pair, seconds in zip(pairs, warm, strict=True) if seconds < _LONG_S]
        ratios = []
        for _ in range(rounds):
            one_by_one = wall_s(lambda pairs=pairs: [score_one(reward, *pair) for pair in pairs])  # type: ignore[misc]
            before = cpu_seconds()
            batch = wall_s(lambda pairs=pairs: score_many(reward, pairs))  # type: ignore[misc]
            cpu_ms_a_run = 1e3 * (cpu_seconds() - before) / len(pairs)
            ratios.append(one_by_one / batch)
            print(
                f"{name:<9} one at a time {len(pairs) / one_by_one:>6.1f} runs/s ({one_by_one:.2f} s), "
                f"score_many {len(pairs) / batch:>6.1f} ({batch:.2f} s): {ratios[-1]:.2f} x, "
                f"{cpu_ms_a_run:.2f} CPU ms a run"
            )
        print(f"{name:<9} median {statistics.median(ratios):.2f} x")


def pooled(reward: Reward, pairs: list[tuple[Problem, Completion]], workers: int) -> tuple[float, float, float]:
    """CPU seconds of the caller and of the workers, and wall seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began, wall = time.process_time(), time.perf_counter()
    with Pool(reward, workers=workers) as pool:
        for _ in pool.map(pairs):
            pass
    caller, wall = time.process_time() - began, time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return caller, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


if __name__ == "__main__":
    main()
