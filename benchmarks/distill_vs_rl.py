"""Compares distillation of a small student with RL alone at equal FLOPs: a small version of the R1 paper's table 6.

    python benchmarks/distill_vs_rl.py --out runs/distill_vs_rl

The protocol, fixed before the first run, is in r1lite/stages/README.md ("Distillation against RL at equal FLOPs").
Finished stages are not repeated, and unfinished ones are resumed. `--until PART` stops early; `--table` only prints.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import math
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from r1lite.evaluation.intervals import bootstrap_interval, paired  # noqa: E402

TEACHER_STEPS, ASKED, SAMPLES = 10, 300, 4  # RL steps of the teacher; problems of the set, completions of each
PROMPTS, GROUP = 16, 8
SFT_STEPS, SFT_ROWS = 40, 32
EVERY = 15  # RL steps between two evaluations
DEV, SEEDS, SWEEP_SEED = 200, (0, 1, 2), 100
LRS = (1.5e-4, 5e-4, 1.5e-3)  # the sweep, the same for both arms
PARTS = ("teacher", "set", "base", "sweep", "all")
COMMON = [
    *("--task", "gsm8k", "--template", "short", "--max-completion-tokens", "64", "--threads", "1", "--device", "cpu"),
    *("--engine", "transformers"),
]
EVALUATED = ["--eval-problems", "1", "--eval-sample-problems", "200", "--eval-samples", "4", "--quiet", "--no-report"]
RL = ["--prompts-per-step", str(PROMPTS), "--group-size", str(GROUP), "--warmup-steps", "5", *COMMON, *EVALUATED]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--until", choices=PARTS, default="all", help="last part to run")
    parser.add_argument("--table", action="store_true", help="print the table of a finished run")
    options = parser.parse_args()
    study = Study(options.out)
    if not options.table:
        study.run(options.until)
    if options.table or options.until == "all":
        print(study.table())


class Study:
    """The stages in their folders below `out`, and their results."""

    def __init__(self, out: Path) -> None:
        self.out, self.base = out, out / "base"

    def run(self, until: str) -> None:
        """Runs the unfinished stages up to this part."""
        from r1lite.config import DistillConfig, GRPOConfig, RejectConfig
        from r1lite.nano.config import PretrainConfig
        from r1lite.stages import distill, grpo, pretrain, reject

        parts = PARTS[: PARTS.index(until) + 1]
        make_data(self.out)
        rl = ["--model", "nano", "--steps", str(TEACHER_STEPS), "--lr", "5e-4", "--lr-schedule", "cosine"]
        _stage(GRPOConfig, grpo.run, self.out / "teacher", [*rl, *RL, *self._source("dev")])
        if "set" in parts:
            asked = ["--max-problems", str(ASKED), "--samples", str(SAMPLES), "--per-problem", "2", "--workers", "1"]
            kept = ["--no-difficulty-window", "--filters", "correct", "finished", "format", "repetition"]
            model = ["--model", str(_newest(self.out / "teacher"))]
            _stage(RejectConfig, reject.run, self.out / "set", [*model, *asked, *kept, *COMMON, *self._source("dev")])

        if "base" in parts and not self.base.exists():
            _stage(PretrainConfig, pretrain.run, self.base, [str(ROOT / "recipes" / "distill_vs_rl_base.yaml")])

        def train_rl(name: str, lr: float, seed: int, split: str) -> None:
            lengths = ["--steps", str(self.rl_steps()), "--eval-every", str(EVERY), "--keep-rollouts", "0"]
            how = ["--lr", str(lr), "--lr-schedule", "constant", "--seed", str(seed), "--model", str(self.base)]
            _stage(GRPOConfig, grpo.run, self.out / name, [*how, *lengths, *RL, *self._source(split)])

        def train_sft(name: str, lr: float, seed: int, split: str) -> None:
            how = ["--lr", str(lr), "--lr-schedule", "cosine", "--seed", str(seed), "--model", str(self.base)]
            size = ["--steps", str(SFT_STEPS), "--rows-per-step", str(SFT_ROWS), "--warmup-steps", "5"]
            data = ["--data", str(self.out / "set"), *self._source(split)]
            _stage(DistillConfig, distill.run, self.out / name, [*how, *size, *data, *COMMON, *EVALUATED])

        if "sweep" in parts:
            for lr in LRS:
                train_sft(f"sweep-sft-{lr}", lr, SWEEP_SEED, "dev")
                train_rl(f"sweep-rl-{lr}", lr, SWEEP_SEED, "dev")
        if "all" in parts:
            chosen = self.chosen()
            for seed in SEEDS:
                train_sft(f"sft-{chosen['sft']}-{seed}", chosen["sft"], seed, "test")
                for lr in sorted({chosen["rl_excluded"], chosen["rl_included"]}):
                    train_rl(f"rl-{lr}-{seed}", lr, seed, "test")

    def _source(self, split: str) -> list[str]:
        return ["--source", str(self.out / "data" / split)]

    def budgets(self) -> tuple[float, float]:
        """FLOPs of the distilled arm: for the student alone, and including the teacher's RL and sampling."""
        student, teacher = _parameters(self.base), _parameters(_newest(self.out / "teacher"))
        rows = [json.loads(line) for line in (self.out / "set" / "train.jsonl").read_text().splitlines()]
        row = statistics.fmean(row["num_prompt_tokens"] + row["num_tokens"] for row in rows)
        excluded = 6.0 * student * row * SFT_STEPS * SFT_ROWS
        prompt = statistics.fmean(row["num_prompt_tokens"] for row in rows)
        sampled = 2.0 * teacher * ASKED * (prompt + SAMPLES * statistics.fmean(row["num_tokens"] for row in rows))
        return excluded, excluded + sampled + sum(rl_flops(self.out / "teacher", teacher, prompt))

    def rl_steps(self) -> int:
        """Number of RL steps for the larger budget, a multiple of EVERY, assuming 16 tokens per completion, 42 per
        prompt and a quarter of the groups without signal."""
        step = 7 * _parameters(self.base) * PROMPTS * (42 + GROUP * 16)
        return EVERY * math.ceil(self.budgets()[1] / step / EVERY)

    def at_budget(self, run: Path, budget: float) -> tuple[int, float]:
        """(step, FLOPs) of the first evaluation after RL has used the budget, or else of the last one."""
        rows = [json.loads(line) for line in (self.out / "set" / "train.jsonl").read_text().splitlines()]
        prompt = statistics.fmean(row["num_prompt_tokens"] for row in rows)
        spent = list(itertools.accumulate(rl_flops(run, _parameters(self.base), prompt)))
        steps = range(EVERY, len(spent) + 1, EVERY)
        step = next((step for step in steps if spent[step - 1] >= budget), steps[-1])
        return step, spent[step - 1]

    def chosen(self) -> dict[str, float]:
        """The learning rate of each arm with the best accuracy on the dev problems at its budget."""
        excluded, included = self.budgets()

        def best(accuracy: Callable[[float], float]) -> float:
            return max(LRS, key=accuracy)

        def rl(budget: float) -> Callable[[float], float]:
            def accuracy(lr: float) -> float:
                run = self.out / f"sweep-rl-{lr}"
                return statistics.fmean(answers(run, self.at_budget(run, budget)[0]))

            return accuracy

        return {
            "sft": best(lambda lr: statistics.fmean(answers(self.out / f"sweep-sft-{lr}", SFT_STEPS))),
            "rl_excluded": best(rl(excluded)),
            "rl_included": best(rl(included)),
        }

    def table(self) -> str:
        """Markdown: accuracy at T=1 of each arm with its interval over problems, seeds apart, and the differences."""
        budgets, chosen = dict(zip(("excluded", "included"), self.budgets(), strict=True)), self.chosen()
        sft = [answers(self.out / f"sft-{chosen['sft']}-{seed}", SFT_STEPS) for seed in SEEDS]
        before = answers(self.out / f"sft-{chosen['sft']}-0", 0)
        lines = ["| arm | learning rate | FLOPs | seeds | accuracy (T=1, 95 %) |", "| --- | --- | --- | --- | --- |"]
        lines.append(f"| base | | | | {_shown(before)} |")
        lines.append(_row("SFT on the teacher's set", chosen["sft"], budgets["excluded"], sft))
        lines.append(f"| ... with the teacher's RL and sampling | | {budgets['included']:.2e} | | |")
        differences = []
        for name, budget in budgets.items():
            lr = chosen[f"rl_{name}"]
            runs = [self.out / f"rl-{lr}-{seed}" for seed in SEEDS]
            places = [self.at_budget(run, budget) for run in runs]
            rl = [answers(run, step) for run, (step, _) in zip(runs, places, strict=True)]
            spent = statistics.fmean(flops for _, flops in places)
            lines.append(_row(f"RL, the teacher's FLOPs {name}", lr, spent, rl))
            found = paired(_mean(rl), _mean(sft))
            differences.append(
                f"SFT against RL, the teacher's FLOPs {name}: {100 * found.difference:+.1f} points "
                f"({100 * found.low:.1f} to {100 * found.high:.1f}); by seed "
                + ", ".join(f"{100 * paired(a, b).difference:+.1f}" for a, b in zip(rl, sft, strict=True))
            )
        return "\n".join([*lines, "", *differences])


def make_data(out: Path) -> None:
    """Two sources with the same training problems: `dev` tests on the last bundled ones, `test` on the bundled test."""
    bundled = ROOT / "datasets" / "gsm8k_style"
    lines = (bundled / "train.jsonl").read_text().splitlines(keepends=True)
    for name, tested in (("dev", lines[-DEV:]), ("test", None)):
        folder = out / "data" / name
        if (folder / "test.jsonl").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "train.jsonl").write_text("".join(lines[:-DEV]))
        if tested is None:
            shutil.copyfile(bundled / "test.jsonl", folder / "test.jsonl")
        else:
            (folder / "test.jsonl").write_text("".join(tested))


def rl_flops(run: Path, parameters: int, prompt_tokens: float) -> list[float]:
    """FLOPs of each step: 2 N per sampled token and 6 N per token learnt from (arXiv:2001.08361, sec. 2.1).

    A prompt counts once per group in both. Groups without signal have no backward pass, so they count 2 N, not 6 N.
    """
    made = []
    for line in (run / "metrics.jsonl").read_text().splitlines():
        metrics = json.loads(line)
        tokens = PROMPTS * prompt_tokens + metrics["tokens"]
        made.append(parameters * tokens * (2 + 6 - 4 * metrics["groups_without_signal"]))
    return made


def answers(run: Path, step: int) -> list[float]:
    """Share of right samples of each problem in the evaluation after this step."""
    with gzip.open(run / "evaluations" / f"step-{step:06d}.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [statistics.fmean(bool(sample["correct"]) for sample in row["samples"]) for row in rows if row["samples"]]


def _stage(kind: Any, run: Callable[[Any], Any], out: Path, flags: Sequence[str]) -> None:
    from r1lite.config import load

    if (out / "summary.json").exists() or (out / "manifest.json").exists():
        return
    print(f"{out.name} ...", file=sys.stderr, flush=True)
    given = ["--resume"] if (out / "config.yaml").exists() else list(flags)
    run(load(kind, [*given, "--out", str(out)]))


def _newest(run: Path) -> Path:
    return sorted((run / "checkpoints").glob("step-*"))[-1]


def _parameters(model: Path) -> int:
    from safetensors import safe_open

    with safe_open(model / "model.safetensors", framework="numpy") as weights:
        return sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118


def _mean(seeds: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.fmean(values) for values in zip(*seeds, strict=True)]


def _shown(values: Sequence[float]) -> str:
    low, high = bootstrap_interval(values)
    return f"{statistics.fmean(values):.1%} ({100 * low:.1f}-{100 * high:.1f})"


def _row(name: str, lr: float, flops: float, seeds: Sequence[Sequence[float]]) -> str:
    apart = ", ".join(f"{statistics.fmean(one):.1%}" for one in seeds)
    return f"| {name} | {lr:g} | {flops:.2e} | {apart} | {_shown(_mean(seeds))} |"


if __name__ == "__main__":
    main()
