"""Cost of `r1lite reject` on stored rollouts: rows per second, CPU seconds, and the peak memory of all its processes.

    python benchmarks/reject.py [--rows 100000] [--workers 2] [--keep DIR] [options of reject, such as --on ray]

Generates a run directory with the rollouts of many steps from the bundled problems: right chains in many wordings,
slips, guesses, broken formats, loops, foreign words, exact and near duplicates, and questions of the test set. Rows
have token ids and log-probabilities, like those of a run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from watching import Watch

from r1lite.bundled import bundled

_OPENERS = (
    "First",
    "Let me think",
    "We start here",
    "Okay",
    "To begin",
    "Now",
    "So",
    "Look at the facts",
    "Step by step",
)
_LINKS = ("Then", "Next", "After that", "So now", "With this", "From there", "Hence", "That means")
_CLOSERS = ("That is the answer.", "This must be it.", "Let me check: it holds.", "Done.", "I am sure of it.", "")
_FILLERS = (
    "which we need",
    "as the story says",
    "and we keep it",
    "by simple arithmetic",
    "to be exact",
    "if I read well",
)
_PER_STEP = 128


def chain(work: str, draw: random.Random) -> str:
    """A right chain in one of many wordings."""
    lines = [line for line in work.split("\n") if line]
    said = [f"{draw.choice(_OPENERS)}, {lines[0]}"]
    for line in lines[1:]:
        said.append(f"{draw.choice(_LINKS)}, {draw.choice(_FILLERS)}: {line}" if draw.random() < 0.7 else line)
    return "\n".join([*said, draw.choice(_CLOSERS)]).strip()


def completion(work: str, answer: str, draw: random.Random) -> str:
    """Right with a probability of 55 %; otherwise a slip, a guess, a broken format, a loop or foreign words."""
    kind = draw.random()
    text = chain(work, draw)
    if kind < 0.55:
        return f"<think>{text}</think> <answer>{answer}</answer>"
    wrong = str(draw.randint(1, 500))
    if kind < 0.75:
        return f"<think>{text}</think> <answer>{wrong}</answer>"
    if kind < 0.85:
        return f"<think>{wrong}</think><answer>{wrong}</answer>"
    if kind < 0.9:
        return f"{text} The answer is {answer}."
    if kind < 0.95:
        return f"<think>{text} {'wait, let me see it again, ' * 12}</think> <answer>{answer}</answer>"
    return f"<think>Zuerst rechnen wir das aus, dann sehen wir weiter. {text}</think> <answer>{answer}</answer>"


def make_run(place: Path, count: int) -> None:
    """A run directory of `count` rollouts."""
    draw = random.Random(0)
    folder = bundled("datasets/gsm8k_style")
    train, test = (
        [json.loads(line) for line in (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]
        for split in ("train", "test")
    )
    problems = train + test[:150]  # 2 % contamination
    (place / "rollouts").mkdir(parents=True)
    config = {"task": "gsm8k", "source": "bundled", "model": "nano", "template": "short", "temperature": 1.0, "seed": 0}
    (place / "config.yaml").write_text(json.dumps({**config, "max_completion_tokens": 96}))
    versions = {"transformers": "5.0", "torch": "2.13"}
    (place / "environment.json").write_text(json.dumps({"stage": "grpo", "problems": None, "versions": versions}))
    (place / "reward.json").write_text(json.dumps({"formula": "math + 0.1*format", "options": {}, "versions": {}}))
    order = [i % len(problems) for i in range(count // 8 + 1)]
    draw.shuffle(order)
    rows = 0
    for step in range(1, count // _PER_STEP + 2):
        lines: list[str] = []
        while len(lines) < _PER_STEP and rows < count:
            problem = problems[order[rows // 8]]
            work, _, answer = problem["answer"].partition("####")
            answer = answer.strip()
            text = completion(work.strip(), answer, draw)
            if lines and rows % 8 and draw.random() < 0.15:
                text = json.loads(lines[-1])["completion"]  # word for word
            size = len(text) // 3
            row = {
                "step": step, "problem_id": problem["id"], "sample": rows % 8, "question": problem["question"],
                "gold": problem["answer"], "language": None, "tests": None, "meta": {},
                "prompt": problem["question"] + "\n", "completion": text, "reward": 0.0, "advantage": 0.0,
                "correct": None, "well_formed": None, "verdicts": [], "error": "", "finish_reason": "stop",
                "policy_version": step - 1, "prompt_ids": [draw.randrange(100) for _ in range(40)],
                "token_ids": [draw.randrange(100) for _ in range(size)],
                "logprobs": [-draw.random() for _ in range(size)],
            }  # fmt: skip
            lines.append(json.dumps(row, ensure_ascii=False))
            rows += 1
        if lines:
            path = place / "rollouts" / f"step-{step:06d}.jsonl.gz"
            path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), 5, mtime=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="generate the rollouts in this folder, or use its rollouts")
    options, more = parser.parse_known_args()
    place = options.keep or Path(tempfile.mkdtemp())
    if not (place / "run" / "rollouts").exists():
        make_run(place / "run", options.rows)
    shutil.rmtree(place / "set", ignore_errors=True)
    bytes_in = sum(path.stat().st_size for path in (place / "run" / "rollouts").iterdir())
    command = [
        *(sys.executable, "-m", "r1lite", "reject", "--rollouts", str(place / "run"), "--out", str(place / "set")),
        *("--workers", str(options.workers), "--pairs", "1", *more),
    ]
    began = time.perf_counter()
    with Watch() as watch:
        code = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False).returncode
    wall, cpu = time.perf_counter() - began, watch.spent_s
    daemons = f", {watch.daemons_mib:,.0f} MiB of Ray's daemons beside it" if watch.daemons_mib else ""
    print(
        f"\nexit code {code}: {options.rows:,} rows ({bytes_in / 2**20:,.0f} MiB) in {wall:.1f} s wall, {cpu:.1f} CPU "
        f"seconds: {options.rows / wall:,.0f} rows/s, {options.rows / cpu:,.0f} rows per CPU second; peak memory "
        f"{watch.peak_mib:,.0f} MiB{daemons}"
    )
    if options.keep is None:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
