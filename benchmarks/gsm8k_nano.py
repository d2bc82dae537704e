"""Trains nano on GSM8K-style problems with the default settings for several seeds, and prints results and a curve.

    python benchmarks/gsm8k_nano.py --seeds 0 1 2 --out seeds

Runs `r1lite grpo --task gsm8k` for each seed without a summary.json in the folder, then prints Markdown: a row per
seed, and the curve of the first seed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CURVE = ("accuracy", "format_rate", "completion_tokens", "entropy", "groups_without_signal")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, required=True)
    arguments, flags = parser.parse_known_args()
    for seed in arguments.seeds:
        run = arguments.out / f"seed-{seed}"
        if not (run / "summary.json").exists():
            command = [
                sys.executable,
                "-m",
                "r1lite",
                "grpo",
                "--task",
                "gsm8k",
                "--seed",
                str(seed),
                "--out",
                str(run),
            ]
            subprocess.run([*command, *flags], cwd=ROOT, check=True, stdout=sys.stderr)
    print("| seed | greedy before | greedy after | pass@8 before | pass@8 after | format | tokens | training |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for seed in arguments.seeds:
        print(_row(seed, json.loads((arguments.out / f"seed-{seed}" / "summary.json").read_text())))
    print()
    _curve(arguments.out / f"seed-{arguments.seeds[0]}" / "metrics.jsonl")


def _row(seed: int, summary: dict[str, Any]) -> str:
    before, after = summary["eval_before"], summary["eval_after"]
    low, high = after["pass_at_1_interval"]
    formed = f"{before['format_rate']:.1%} -> {after['format_rate']:.1%}"
    tokens = f"{before['mean_tokens']:.1f} -> {after['mean_tokens']:.1f}"
    return (
        f"| {seed} | {before['pass_at_1']:.1%} | **{after['pass_at_1']:.1%}** ({100 * low:.1f}-{100 * high:.1f}) "
        f"| {before['pass_at_k']:.1%} | {after['pass_at_k']:.1%} | {formed} "
        f"| {tokens} | {summary['steps']} steps, {summary['train_s']:.0f} s |"
    )


def _curve(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    print("| steps | accuracy (T=1) | format | tokens | entropy | groups without signal |")
    print("| --- | --- | --- | --- | --- | --- |")
    edges = sorted({0, 5, 10, 20, 40, 80, len(lines)} & set(range(len(lines) + 1)))
    for start, end in itertools.pairwise(edges):
        accuracy, formed, tokens, entropy, without = (
            statistics.fmean(line[key] for line in lines[start:end]) for key in CURVE
        )
        cells = f"{accuracy:.1%} | {formed:.1%} | {tokens:.1f} | {entropy:.2f} | {without:.0%}"
        print(f"| {start + 1}-{end} | {cells} |")


if __name__ == "__main__":
    main()
