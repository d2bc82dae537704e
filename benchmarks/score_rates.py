"""What scoring costs: every verifier on a short completion and on 2,000 and 1,000,000 characters, and the pool's share.

    python benchmarks/score_rates.py [--workers 2] [--items 30000]

CPU seconds of this process, and for the pool of its workers too: wall time on a shared machine says little.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

from verifiers import Completion, Problem, Reward, resolve, score_many
from verifiers.pool import Pool

_SENTENCE = "First we add the three numbers that the problem gives, then we halve the sum and write it down. "
_OPTIONS = {"overlong": {"unit": "chars"}, "length": {"unit": "chars"}}
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
    parser.add_argument("--items", type=int, default=30_000)
    options = parser.parse_args()
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
    for _ in range(3):
        began = time.process_time()
        score_many(reward, pairs)
        single = (time.process_time() - began) / len(pairs)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began, wall = time.process_time(), time.perf_counter()
        with Pool(reward, workers=options.workers) as pool:
            for _ in pool.map(pairs):
                pass
        wall = time.perf_counter() - wall
        parent = (time.process_time() - began) / len(pairs)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / len(pairs)
        print(
            f"one process {single * 1e6:.1f} us of CPU an item; pool of {options.workers}: caller {parent * 1e6:.1f}, "
            f"workers {child * 1e6:.1f} (start included), {len(pairs) / wall:,.0f} items per s of wall time"
        )


if __name__ == "__main__":
    main()
