"""kill -9 at random moments, saves included: the run always continues, and ends bit for bit as if nothing had been."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAVE_EVERY = 2
CLOCKS = {"generate_s", "score_s", "train_s", "step_s"}
FLAGS = [
    *("--template", "short", "--max-completion-tokens", "6", "--lr", "3e-3", "--prompts-per-step", "2"),
    *("--eval-problems", "2", "--eval-sample-problems", "1", "--eval-samples", "2", "--updates-per-rollout", "2"),
    *("--minibatches", "2", "--kl-coef", "0.01", "--reward", "reward_for_tests:digits", "--score-workers", "0"),
    *("--threads", "1", "--save-every", str(SAVE_EVERY), "--warmup-steps", "2", "--lr-schedule", "cosine", "--quiet"),
]
CASES = {
    "grpo": (20, 44, ["--group-size", "3", "--eval-every", "7"]),
    "ppo": (4, 12, ["--critic-warmup-steps", "2", "--kl-target", "0.1", "--gae-lambda", "0.9"]),
}


def play(job, place):
    path = place / f"{Path(job['out']).name}.json"
    path.write_text(json.dumps(job))
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "tests" / "kills_for_tests.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def outcome(out, steps):
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    evaluations = out / "evaluations.jsonl"
    return (
        {path.name: path.read_bytes() for path in sorted((out / "rollouts").iterdir())},
        [{key: value for key, value in line.items() if key not in CLOCKS} for line in metrics],
        evaluations.read_text() if evaluations.exists() else "",
        (out / "checkpoints" / f"step-{steps:06d}" / "model.safetensors").read_bytes(),
        json.loads((out / "eval_after.json").read_text()),
    )


@pytest.mark.parametrize("stage", CASES)
def test_killed_at_random_moments(stage, tiny_path, sums_path, tmp_path):
    kills, steps, more = CASES[stage]
    out = {name: tmp_path / name for name in ("whole", "killed")}
    fixed = [stage, "--model", str(tiny_path), "--source", str(sums_path), *FLAGS, "--steps", str(steps), *more]
    jobs = {
        name: {
            "seed": 5,
            "kills": kills if name == "killed" else 0,
            "argv": [*fixed, "--out", str(place)],
            "resume": [stage, "--resume", "--trust", "--out", str(place), "--quiet"],
            "out": str(place),
        }
        for name, place in out.items()
    }
    assert play(jobs["whole"], tmp_path) == []
    told = play(jobs["killed"], tmp_path)
    assert len(told) == kills
    best = 0
    for kill in told:
        # A checkpoint that was there is never lost, and no more than the steps since it is.
        assert kill["checkpoint"] >= best
        assert kill["recorded"] - kill["checkpoint"] <= SAVE_EVERY
        assert kill["damaged"] == []
        best = kill["checkpoint"]
    assert {kill["when"] for kill in told} == {"start", "step", "save"}
    assert outcome(out["killed"], steps) == outcome(out["whole"], steps)
    assert not list((out["killed"] / "checkpoints").glob(".*"))
