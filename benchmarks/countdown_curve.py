"""R1-Zero's curve on a CPU, where accuracy and length rise together, and its causes; for r1lite/nano/README.md.

    python benchmarks/countdown_curve.py --out runs/curve

Runs three seeds of `r1lite grpo --task countdown_small --model nano-countdown`, and one seed of each reward that
doesn't work. It takes about five CPU minutes per seed, and the same again for the measurements of the trained models.
Finished parts are not repeated. `r1lite report runs/curve/seed-* --svg --out curve.svg` then draws the curve, and
`r1lite forecast runs/curve/seed-*` extrapolates it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from r1lite.nano import model_place  # noqa: E402
from r1lite.rl.passk import pass_at_k  # noqa: E402
from r1lite.rl.sampling import completion_seed  # noqa: E402
from r1lite.rollout import Sampling  # noqa: E402
from r1lite.rollout.hf import HFEngine  # noqa: E402
from r1lite.tasks import Source, find  # noqa: E402
from r1lite.tasks.prompts import render  # noqa: E402
from verifiers import Completion, Problem, Verdict  # noqa: E402
from verifiers.countdown import Countdown  # noqa: E402

BASE, LONGEST = "nano-countdown", 144
# Rewards with which thinking doesn't grow: name -> reward
CONTROLS = {
    "one_attempt": "countdown_curve:any_expression + 0.1*format",
    "penalty": "countdown + format + 2*countdown_curve:brevity",
    "format": "format",
}
STOPS = (1, 4, 16, None)  # attempts
KS = (1, 2, 4, 8, 16, 32, 64)
_ATTEMPT = re.compile(r"\((\d+)([+*-])(\d+)\)([+*-])(\d+)=(\d+)( no; | yes)")
_TRUE, _EASY = Countdown(), Countdown(partial=0.5)


def any_expression(problem: Problem, completion: Completion) -> Verdict:
    """1 for any expression that uses each number once, regardless of its value, so that one attempt is enough."""
    verdict = _EASY(problem, completion)
    return Verdict(float(bool(verdict.score)), verdict.reason, verdict.detail)


def brevity(problem: Problem, completion: Completion) -> Verdict:
    """1 for an empty completion, falling linearly to 0 at 144 tokens."""
    return Verdict(max(0.0, 1 - len(completion.token_ids) / LONGEST), "scored")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--controls", choices=CONTROLS, nargs="*", default=list(CONTROLS))
    parser.add_argument("--control-steps", type=int, default=60)
    parser.add_argument("--problems", type=int, default=100, help="test problems with 64 samples each")
    options, flags = parser.parse_known_args()
    torch.set_num_threads(1)
    runs = [options.out / f"seed-{seed}" for seed in options.seeds]
    for seed, run in zip(options.seeds, runs, strict=True):
        train(run, ["--seed", str(seed), *flags])
    for name in options.controls:
        steps = str(options.control_steps)
        train(options.out / name, ["--reward", CONTROLS[name], "--steps", steps, "--eval-every", "0", *flags])
    print(results(runs), "\n")
    print(course(runs), "\n")
    print(without([options.out / name for name in options.controls], options.control_steps, runs[0]), "\n")
    problems = find("countdown_small").load(Source("generated")).test[: options.problems]
    samples = {"the base": asked(model_place(BASE), problems, options.out / "base-64.json")}
    samples |= {
        run.name: asked(str(sorted((run / "checkpoints").glob("step-*"))[-1]), problems, run / "asked-64.json")
        for run in runs
    }
    print(stopped(samples, problems), "\n")
    print(solved(samples, problems))


def train(out: Path, given: Sequence[str]) -> None:
    """Runs or resumes `r1lite grpo`, unless it is finished."""
    if (out / "summary.json").exists():
        return
    fresh = ["--task", "countdown_small", "--model", BASE, *given]
    what = ["--resume"] if (out / "config.yaml").exists() else fresh
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'benchmarks'}"}
    command = [sys.executable, "-m", "r1lite", "grpo", *what, "--out", str(out), "--quiet"]
    subprocess.run(command, check=True, env=environment, stdout=sys.stderr)


def results(runs: Sequence[Path]) -> str:
    """Markdown: a row per seed, before and after training, on held-out problems."""
    lines = [
        "| seed | T=1 before | T=1 after (95 %) | greedy before | greedy after (95 %) | tokens | format | steps |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for run in runs:
        summary = _json(run / "summary.json")
        before, after = summary["eval_before"], summary["eval_after"]
        steps = _lines(run / "metrics.jsonl")
        tokens = f"{_mean(steps[:3], 'completion_tokens'):.0f} -> {_mean(steps[-10:], 'completion_tokens'):.0f}"
        seed = run.name.removeprefix("seed-")
        lines.append(
            f"| {seed} | {before['sampled_accuracy']:.1%} | {_with(after, 'sampled_accuracy')} "
            f"| {before['pass_at_1']:.1%} | {_with(after, 'pass_at_1')} | {tokens} "
            f"| {before['sampled_format_rate']:.1%} -> {after['sampled_format_rate']:.1%} "
            f"| {len(steps)}, {summary['train_s']:.0f} s |"
        )
    return "\n".join(lines)


def course(runs: Sequence[Path]) -> str:
    """Markdown: accuracy and length of the training samples, with a number per seed."""
    series = [_lines(run / "metrics.jsonl") for run in runs]
    most = max(map(len, series))
    edges = [most * part // 8 for part in range(9)]
    lines = ["| steps | accuracy | tokens | format | entropy |", "| --- | --- | --- | --- | --- |"]
    for start, end in itertools.pairwise(edges):
        cells = [
            ", ".join(form.format(_mean(one[start:end], key)) for one in series)
            for key, form in (
                ("accuracy", "{:.2f}"),
                ("completion_tokens", "{:.0f}"),
                ("format_rate", "{:.2f}"),
                ("entropy", "{:.2f}"),
            )
        ]
        lines.append(f"| {start + 1}-{end} | {' | '.join(cells)} |")
    return "\n".join(lines)


def without(runs: Sequence[Path], steps: int, first: Path) -> str:
    """Markdown: other rewards, compared with the task's own after the same number of steps."""
    lines = ["| reward | accuracy | tokens | format | attempts |", "| --- | --- | --- | --- | --- |"]
    rows = [("the base", first, slice(0, 3)), ("`countdown + 0.1*format`", first, slice(steps - 10, steps))]
    rows += [(f"`{CONTROLS[run.name]}`", run, slice(-10, None)) for run in runs]
    for name, run, part in rows:
        chosen = _lines(run / "metrics.jsonl")[part]
        tokens = _mean(chosen, "completion_tokens")
        cells = [f"{_mean(chosen, 'accuracy'):.2f}", f"{tokens:.0f}", f"{_mean(chosen, 'format_rate'):.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} | {attempts_in(run, [one['step'] for one in chosen]):.1f} |")
    return "\n".join(lines)


def attempts_in(run: Path, steps: Iterable[int]) -> float:
    """Mean number of attempts in the completions of these steps."""
    from verifiers.rows import rows as read_rows

    texts = [row["completion"] for n in steps for _, row in read_rows(run / "rollouts" / f"step-{n:06d}.jsonl.gz")]
    return statistics.fmean(len(_ATTEMPT.findall(text)) for text in texts)


def asked(model_path: str, problems: Sequence[Problem], kept: Path) -> dict[str, Any]:
    """64 samples of each problem at T=1, and the model's answers when it is stopped after some attempts.

    To stop a sample, its thought is cut after the first k attempts, `</think>` is appended, and the model answers
    greedily. This is done with 8 of the samples.
    """
    if kept.exists():
        found: dict[str, Any] = _json(kept)
        return found
    model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(model_path)
    engine = HFEngine(model, tokenizer, max_rows=512)
    prompts = [tokenizer.encode(render("short", problem.prompt, tokenizer)) for problem in problems]
    seeds = [[completion_seed(1, "evaluation", 0, problem.id, n) for n in range(KS[-1])] for problem in problems]
    groups = engine.generate(prompts, seeds, Sampling(1.0, LONGEST))
    texts = [[completion.text for completion in group] for group in groups]
    answered: dict[str, list[list[bool]]] = {}
    for stop in STOPS:
        cut = [[_cut(text, stop) for text in group[:8]] for group in texts]
        flat = [(p, thought) for p, group in enumerate(cut) for thought in group]
        inputs = [prompts[p] + tokenizer.encode(thought + "</think>") for p, thought in flat]
        answers = engine.generate(inputs, [[0]] * len(inputs), Sampling(0.0, 12))
        right = iter(
            _right(problems[p], f"{thought}</think>{answer[0].text}")
            for (p, thought), answer in zip(flat, answers, strict=True)
        )
        answered[str(stop)] = [[next(right) for _ in group] for group in cut]
    made = {
        "right": [[_right(p, text) for text in group] for p, group in zip(problems, texts, strict=True)],
        "answers": [[_answer(text) for text in group] for group in texts],
        "attempts": [[len(_ATTEMPT.findall(text)) for text in group] for group in texts],
        "first": [[_first_right(p, text) for text in group] for p, group in zip(problems, texts, strict=True)],
        "stopped": answered,
        "wrong_values": _wrong_values(text for group in texts for text in group),
        "repeated": _repeated(text for group in texts for text in group),
    }
    kept.write_text(json.dumps(made))
    return made


def stopped(samples: dict[str, Any], problems: Sequence[Problem]) -> str:
    """Markdown: accuracy when the thinking is stopped, and statistics of the attempts."""
    heads = [f"after {stop}" if stop else "not stopped" for stop in STOPS]
    lines = [f"| model | {' | '.join(heads)} | first attempt right | attempts | wrong sums | repeated |"]
    lines.append("| --- |" + " --- |" * (len(STOPS) + 4))
    for name, found in samples.items():
        cells = [f"{_flat(found['stopped'][str(stop)]):.1%}" for stop in STOPS]
        cells += [f"{_flat(found['first']):.1%}", f"{_flat(found['attempts']):.1f}"]
        cells += [f"{found['wrong_values']:.1%}", f"{found['repeated']:.1%}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def solved(samples: dict[str, Any], problems: Sequence[Problem]) -> str:
    """Markdown: pass@k and maj@k."""
    lines = [f"| | {' | '.join(f'k={k}' for k in KS)} |", "| --- |" + " --- |" * len(KS)]
    for name, found in samples.items():
        passes = [statistics.fmean(pass_at_k(len(one), sum(one), k) for one in found["right"]) for k in KS]
        votes = [
            statistics.fmean(
                _majority(answers[:k], right[:k])
                for answers, right in zip(found["answers"], found["right"], strict=True)
            )
            for k in KS
        ]
        lines.append(f"| {name}, pass@k | {' | '.join(f'{value:.1%}' for value in passes)} |")
        lines.append(f"| {name}, maj@k | {' | '.join(f'{value:.1%}' for value in votes)} |")
    return "\n".join(lines)


def _cut(text: str, stop: int | None) -> str:
    """The thought up to its first `stop` attempts."""
    thought = text.split("</think>")[0]
    ends = [match.end() for match in _ATTEMPT.finditer(thought)]
    return thought if stop is None or len(ends) <= stop else thought[: ends[stop - 1]]


def _right(problem: Problem, text: str) -> bool:
    return _TRUE(problem, Completion(text)).score == 1.0


def _answer(text: str) -> str:
    return text.rpartition("<answer>")[2].partition("</answer>")[0]


def _first_right(problem: Problem, text: str) -> bool:
    match = _ATTEMPT.search(text)
    return match is not None and _right(problem, f"<answer>{match[0].split('=')[0]}</answer>")


def _wrong_values(texts: Iterable[str]) -> float:
    """Share of attempts with a wrong value of the expression."""
    signs = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
    found = [match.groups() for text in texts for match in _ATTEMPT.finditer(text)]
    return statistics.fmean(
        signs[then](signs[first](int(a), int(b)), int(c)) != int(value) for a, first, b, then, c, value, _ in found
    )


def _repeated(texts: Iterable[str]) -> float:
    """Share of attempts that repeat an earlier one in the same thought."""
    every = [[match[0].split("=")[0] for match in _ATTEMPT.finditer(text)] for text in texts]
    return 1 - sum(len(set(one)) for one in every) / max(1, sum(map(len, every)))


def _majority(answers: Sequence[str], right: Sequence[bool]) -> float:
    """Probability that an answer drawn from the most frequent ones is right."""
    counts = Counter(answers)
    most = max(counts.values())
    winners = [answer for answer, count in counts.items() if count == most]
    by = dict(zip(answers, right, strict=True))
    return statistics.fmean(by[answer] for answer in winners)


def _with(evaluation: dict[str, Any], name: str) -> str:
    low, high = evaluation[f"{name}_interval"]
    return f"**{evaluation[name]:.1%}** ({100 * low:.1f}-{100 * high:.1f})"


def _flat(groups: Sequence[Sequence[float]]) -> float:
    return statistics.fmean(value for group in groups for value in group)


def _mean(lines: Sequence[dict[str, Any]], key: str) -> float:
    return statistics.fmean(line[key] for line in lines)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


if __name__ == "__main__":
    main()
