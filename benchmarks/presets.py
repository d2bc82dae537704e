"""Trains nano with every preset for a few steps, to check that each preset learns.

    python benchmarks/presets.py                     # all presets, 60 steps, one seed
    python benchmarks/presets.py dapo gspo --steps 150 --seeds 3

Sizes and learning rate are nano's own (recipes/gsm8k-nano.yaml), the same for all; only the method differs. One seed of
such a short run shows whether a preset learns, but doesn't rank presets.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from r1lite.config.presets import PRESETS  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", default=list(PRESETS))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--problems", type=int, default=300, help="test problems that accuracy is measured on")
    arguments = parser.parse_args()
    print(f"nano, {arguments.steps} steps, {arguments.seeds} seed(s), {arguments.problems} test problems, greedy")
    print(
        f"{'preset':<22}{'before':>8}{'after':>8}{'format':>8}{'tokens sampled':>16}{'updates':>9}{'CPU s':>8}",
        flush=True,
    )
    for name in arguments.presets:
        runs = [_run(name, seed, arguments) for seed in range(arguments.seeds)]
        mean = {key: statistics.fmean(run[key] for run in runs) for key in runs[0]}
        print(
            f"{name:<22}{mean['before']:>8.1%}{mean['after']:>8.1%}{mean['format']:>8.1%}{mean['tokens']:>16,.0f}"
            f"{mean['updates']:>9.0f}{mean['cpu_s']:>8.0f}",
            flush=True,
        )


def _run(name: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [
            sys.executable,
            "-m",
            "r1lite",
            PRESETS[name].stage,
            "--preset",
            name,
            "--model",
            "nano",
            "--out",
            str(out),
        ]
        command += [
            "--steps",
            str(arguments.steps),
            "--seed",
            str(seed),
            "--device",
            "cpu",
            "--threads",
            "1",
            "--quiet",
        ]
        command += ["--eval-problems", str(arguments.problems), "--eval-sample-problems", "1", "--eval-samples", "1"]
        if (warmup := PRESETS[name].values.get("critic_warmup_steps", 0)) >= arguments.steps:
            command += ["--critic-warmup-steps", str(warmup * arguments.steps // 150)]  # 150: steps of nano's recipe
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
        if done.returncode:
            sys.exit(f"{name} failed:\n{done.stderr}{done.stdout}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        summary = json.loads((out / "summary.json").read_text())
        metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        return {
            "before": summary["eval_before"]["pass_at_1"],
            "after": summary["eval_after"]["pass_at_1"],
            "format": summary["eval_after"]["format_rate"],
            "tokens": summary["tokens_generated"],
            "updates": sum(line["updates"] for line in metrics),
            "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        }


if __name__ == "__main__":
    main()
