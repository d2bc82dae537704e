"""Coverage of the 95 % intervals of `r1lite forecast`: python benchmarks/forecast_coverage.py

Uses synthetic runs: evaluations at equal distances of compute, each a binomial draw of its problems from a known curve.
"""

from __future__ import annotations

import argparse
import math
import random

from r1lite.evaluation.sigmoid import Point, fit

CURVES = {  # R0, A, B (C_mid is 1), last amount of compute, evaluations, problems
    "usual": (0.1, 0.8, 2.5, 3.0, 16, 200),
    "barely past the midpoint": (0.1, 0.8, 2.5, 1.6, 16, 200),
    "steep, near 1": (0.1, 0.97, 4.0, 3.0, 16, 200),
    "slow": (0.3, 0.6, 1.2, 6.0, 16, 500),
    "few evaluations": (0.1, 0.8, 2.5, 3.0, 8, 200),
    "before the midpoint": (0.1, 0.8, 2.5, 0.7, 16, 200),
}


def points(curve: tuple[float, float, float, float, int, int], rng: random.Random) -> list[Point]:
    """The evaluations of a synthetic run."""
    start, end, exponent, last, count, problems = curve
    found = []
    for number in range(count):
        compute = last * number / (count - 1)
        rate = start + (end - start) * compute**exponent / (1 + compute**exponent)
        right = sum(rng.random() < rate for _ in range(problems))
        found.append(Point(compute, right / problems, problems))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=400)
    options = parser.parse_args()
    print("| curve | A is named | R0 | A | C_mid | B | width of A |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name, curve in CURVES.items():
        truth = {"start": curve[0], "end": curve[1], "midpoint": 1.0, "exponent": curve[2]}
        held = dict.fromkeys(truth, 0)
        named, width = 0, 0.0
        for seed in range(options.seeds):
            found = fit(points(curve, random.Random(f"{name}/{seed}")), resamples=options.resamples, seed=seed)
            for key, value in truth.items():
                estimate = getattr(found, key)
                held[key] += estimate is not None and estimate.low <= value <= estimate.high
            if found.end is not None:
                named += 1
                width += found.end.high - found.end.low
        of = {key: options.seeds if key == "start" else named for key in truth}
        shares = [f"{held[key] / of[key]:.1%}" if of[key] else "-" for key in truth]
        mean = f"{width / named:.3f}" if named else "-"
        print(f"| {name} | {named / options.seeds:.1%} | {' | '.join(shares)} | {mean} |", flush=True)
    print(f"{options.seeds} seeds; the standard error of a true 95 % is {math.sqrt(0.05 * 0.95 / options.seeds):.1%}")


if __name__ == "__main__":
    main()
