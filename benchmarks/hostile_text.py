"""CPU milliseconds of the verifiers that only read text, on a megabyte of text patterns known to be slow.

    python benchmarks/hostile_text.py                         the format verifier
    python benchmarks/hostile_text.py format repetition language --size 100000
    python benchmarks/hostile_text.py math --fuzz 50000 --seed 1

Every filling is tried alone, inside `<think>`, and inside the complete format; the fastest of three calls counts. With
--fuzz, golds and completions are random expressions instead: short, but nested, repeated and mixed; see
verifiers/audit/math_fuzz.py. Reading a gold and judging a completion are timed separately. One gold in ten is also
checked for irrelevant numbers (`check_gold`), which takes longer than everything else. The limits are 300 ms for a gold
and 50 ms for a completion; times above half of the limit are measured three times.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verifiers import Completion, GoldError, Problem, check_gold, resolve
from verifiers.audit.cases import FILLS
from verifiers.audit.math_fuzz import Pair, pairs
from verifiers.core import Verifier
from verifiers.mathexpr.golds import read_gold

MORE = {
    "half a tag": "<think",
    "a tag's end": "think>",
    "slashes": "</",
    "control characters": "\x01",
    "soft hyphens": "\xad",
    "private use": "\ue000",
    "invisible, astral": "\U000e0001",
    "Chinese and a bracket": "\u4e00<",
    "white space of all kinds": "\ufeff \t\u3000",
}
CHECKED = 10  # one gold in this many is checked
WANTED = (300.0, 50.0)  # CPU milliseconds at most for a gold, and for a completion
PROGRESS = 1000  # pairs between two lines of --fuzz on standard error
PLACES = {"bare": "{}", "in think": "<think>{}", "whole": "<think>{}</think><answer>4</answer>"}


def cost(verify: Verifier, problem: Problem, text: str) -> float:
    """CPU milliseconds of one call."""
    found = []
    for _ in range(3):
        began = time.process_time()
        verify(problem, Completion(text))
        found.append(time.process_time() - began)
    return 1e3 * min(found)


def pair_costs(verify: Verifier, pair: Pair, *, check: bool) -> tuple[float, float]:
    """CPU milliseconds of reading (and checking) the gold for the first time, and of judging the completion."""
    problem = Problem(answer=pair.gold)
    read_gold.cache_clear()
    began = time.process_time()
    with contextlib.suppress(GoldError):
        check_gold(problem) if check else read_gold(pair.gold)
    read = time.process_time()
    with contextlib.suppress(GoldError):
        verify(problem, Completion(pair.text))
    return 1e3 * (read - began), 1e3 * (time.process_time() - read)


def fuzz(verify: Verifier, count: int, seed: int) -> None:
    """Prints the slowest of `count` random pairs, for the gold and for the answer."""
    calculus = Pair(r"\int_0^1 x^2\,dx", r"\boxed{\frac13}", "loads SymPy")
    pair_costs(verify, calculus, check=True)
    worst: list[list[tuple[float, int, Pair]]] = [[], []]
    for index, pair in enumerate(pairs(count, seed)):
        check = index % CHECKED == 0
        costs: tuple[float, ...] = pair_costs(verify, pair, check=check)
        if any(spent > wanted / 2 for spent, wanted in zip(costs, WANTED, strict=True)):
            again = (pair_costs(verify, pair, check=check) for _ in range(2))
            costs = tuple(map(min, costs, *again))
        for side, spent in zip(worst, costs, strict=True):
            side.append((spent, index, pair))
            if len(side) > 1000:
                side.sort(reverse=True)
                del side[10:]
        if (index + 1) % PROGRESS == 0:
            most = [f"{side_max[0]:.2f} ms (#{side_max[1]})" for side_max in map(max, worst)]
            print(f"{index + 1:,} pairs: gold {most[0]}, answer {most[1]} at most", file=sys.stderr, flush=True)
    print(f"{count:,} pairs of seed {seed}")
    for name, side in zip(("gold, read (one in ten checked)", "answer, judged"), worst, strict=True):
        print(f"  {name}")
        for spent, index, pair in sorted(side, reverse=True)[:5]:
            text = pair.gold if side is worst[0] else pair.text
            print(f"  {spent:8.2f} ms  #{index} {pair.how}: {text[:90]!r} of {len(text)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verifiers", nargs="*", default=["format"], help="names (default: format)")
    parser.add_argument("--size", type=int, default=1_000_000, help="characters (default: 1,000,000)")
    parser.add_argument("--fuzz", type=int, default=0, metavar="PAIRS", help="random golds and completions, for math")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random pairs (default: 0)")
    options = parser.parse_args()
    if options.fuzz:
        for name in options.verifiers:
            fuzz(resolve(name), options.fuzz, options.seed)
        return
    problem = Problem(prompt="What is 2 + 2?", answer="4", language="en")
    for name in options.verifiers:
        verify = resolve(name)
        costs = {
            (fill, place): cost(verify, problem, form.format(piece * (options.size // len(piece))))
            for fill, piece in {**FILLS, **MORE}.items()
            for place, form in PLACES.items()
        }
        print(f"{name}: {len(costs)} texts of {options.size:,} characters")
        for (fill, place), spent in sorted(costs.items(), key=lambda item: -item[1])[:5]:
            print(f"  {spent:8.2f} ms  {fill}, {place}")


if __name__ == "__main__":
    main()
