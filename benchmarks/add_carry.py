"""Compares reward formulas on `add_carry`, from a base model that thinks in two languages: the tables of
r1lite/tasks/README.md.

    python benchmarks/add_carry.py           trains the base (2 CPU minutes), then 4 formulas x 3 seeds
    python benchmarks/add_carry.py --weak    the same from a base whose chains are seldom right

About 50 CPU seconds per run. Finished runs are not repeated, so the script can be stopped and restarted, also with
other --only and --seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from verifiers import Completion, Problem, resolve  # noqa: E402
from verifiers.rows import rows as read_rows  # noqa: E402

FORMULAS = {
    "equal": "math + format + language",
    "ungated": "math + 0.1*format + language",
    "no_language": "math + 0.1*format",
    "gated": "math * (0.5 + 0.5*language) + 0.1*format",
}
LAST_STEPS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/add_carry"))
    parser.add_argument("--base", type=Path, help="an existing base, instead of training one")
    parser.add_argument("--weak", action="store_true", help="start from recipes/add_carry_weak_base.yaml")
    parser.add_argument("--only", choices=FORMULAS, nargs="*", default=list(FORMULAS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    base = options.base or made_base(options.out, weak=options.weak)
    runs = options.out / ("from_weak" if options.weak else "from_base")
    for seed in range(options.seeds):
        for name in options.only:
            out = runs / f"{name}-{seed}"
            if not (out / "summary.json").exists():
                given = [
                    "--model",
                    str(base),
                    "--reward",
                    FORMULAS[name],
                    "--seed",
                    str(seed),
                    "--steps",
                    str(options.steps),
                ]
                fresh = [str(ROOT / "recipes/add_carry.yaml"), *given]
                r1lite("grpo", *(["--resume"] if (out / "config.yaml").exists() else fresh), "--out", str(out))
            print(f"{name:<12} seed {seed}: {line(out)}", flush=True)
    print(f"\n{table(runs)}\n\n{course(runs)}")


def made_base(out: Path, *, weak: bool) -> Path:
    """The base model, pre-trained unless it exists; the weak base continues from the other one."""
    base, weak_base = out / "base", out / "weak_base"
    if not base.exists():
        r1lite("pretrain", str(ROOT / "recipes/add_carry_base.yaml"), "--out", str(base))
    if weak and not weak_base.exists():
        recipe = str(ROOT / "recipes/add_carry_weak_base.yaml")
        r1lite("pretrain", recipe, "--start", str(base), "--out", str(weak_base))
    return weak_base if weak else base


def r1lite(*arguments: str) -> None:
    """Runs a command quietly with one thread."""
    quiet = ["--quiet"] if arguments[0] == "grpo" else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "r1lite", *arguments, *quiet]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


def measured(out: Path) -> dict[str, float]:
    """Accuracy on the test problems; format, language and length of the last steps' rollouts."""
    after = json.loads((out / "summary.json").read_text())["eval_after"]
    return {
        "accuracy": after["sampled_accuracy"],
        "greedy": after["pass_at_1"],
        **of_rollouts(sorted((out / "rollouts").glob("step-*.jsonl.gz"))[-LAST_STEPS:]),
    }


def of_rollouts(files: list[Path]) -> dict[str, float]:
    """Format, language and length of the completions of these steps."""
    language = resolve("language")
    rows = [row for file in files for _, row in read_rows(file)]
    problem = Problem(language="en")
    scores = [language(problem, Completion(row["completion"])).score for row in rows]
    return {
        "format": statistics.fmean(row["well_formed"] for row in rows),
        "language": statistics.fmean(score for score in scores if score is not None),
        "tokens": statistics.fmean(len(row["token_ids"]) for row in rows),
    }


def line(out: Path) -> str:
    """A run's numbers as a progress line."""
    return "  ".join(f"{name} {value:.3g}" for name, value in measured(out).items())


def finished(runs: Path) -> dict[str, list[Path]]:
    """The finished runs by formula."""
    found = {name: sorted(path.parent for path in runs.glob(f"{name}-*/summary.json")) for name in FORMULAS}
    return {name: paths for name, paths in found.items() if paths}


def table(runs: Path) -> str:
    """Markdown: the base, then each formula with a number per seed."""
    lines = ["| reward | accuracy T=1 | greedy | format | English | tokens |", "|---|---|---|---|---|---|"]
    done = finished(runs)
    every = [path for paths in done.values() for path in paths]
    before: dict[str, Any] = json.loads((every[0] / "eval_before.json").read_text())
    start = of_rollouts([path / "rollouts" / "step-000001.jsonl.gz" for path in every])
    rows = [("the base", [{"accuracy": before["sampled_accuracy"], "greedy": before["pass_at_1"], **start}])]
    rows += [(f"`{FORMULAS[name]}`", [measured(path) for path in paths]) for name, paths in done.items()]
    for name, values in rows:
        lengths = ", ".join(f"{run['tokens']:.0f}" for run in values)
        cells = [", ".join(f"{run[key]:.2f}" for run in values) for key in ("accuracy", "greedy", "format", "language")]
        lines.append(f"| {name} | {' | '.join(cells)} | {lengths} |")
    return "\n".join(lines)


def course(runs: Path) -> str:
    """Markdown: accuracy of the training samples, as means of ten steps up to step 60, with a number per seed."""
    starts = range(1, 61, 10)
    lines = [f"| reward | {' | '.join(f'{n}-{n + 9}' for n in starts)} |", f"|---|{'---|' * len(starts)}"]
    for name, paths in finished(runs).items():
        seeds = [[json.loads(text) for text in (path / "metrics.jsonl").read_text().splitlines()] for path in paths]
        cells = [
            ", ".join(f"{statistics.fmean(step['accuracy'] for step in seed[n - 1 : n + 9]):.2f}" for seed in seeds)
            for n in starts
        ]
        lines.append(f"| `{FORMULAS[name]}` | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
