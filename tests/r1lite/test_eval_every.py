"""Evaluations on the way: they change nothing, and a signal may come in the middle of one."""

import json
import os
import signal
from pathlib import Path

import pytest

import r1lite.training.on_problems
from r1lite.cli import main

ROOT = Path(__file__).resolve().parents[2]
STEPS = 5
CLOCKS = {"generate_s", "score_s", "train_s", "step_s"}


@pytest.fixture(autouse=True)
def reward_is_found(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")


def run(out, tiny_path, sums_path, *more):
    return main(
        [
            *("grpo", "--model", str(tiny_path), "--source", str(sums_path), "--out", str(out), "--quiet"),
            *("--template", "short", "--max-completion-tokens", "8", "--steps", str(STEPS), "--lr", "3e-3"),
            *("--prompts-per-step", "2", "--group-size", "3", "--eval-problems", "3", "--eval-sample-problems", "2"),
            *("--eval-samples", "2", "--reward", "reward_for_tests:digits", "--score-workers", "0", "--threads", "1"),
            *more,
        ]
    )


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def outcome(out):
    rollouts = {path.name: path.read_bytes() for path in sorted((out / "rollouts").iterdir())}
    metrics = [{k: v for k, v in line.items() if k not in CLOCKS} for line in lines(out / "metrics.jsonl")]
    return rollouts, metrics, (out / "checkpoints" / f"step-{STEPS:06d}" / "model.safetensors").read_bytes()


def test_evaluating_on_the_way_changes_nothing_and_can_be_interrupted(tiny_path, sums_path, tmp_path, monkeypatch):
    assert run(tmp_path / "plain", tiny_path, sums_path) == 0
    assert not (tmp_path / "plain" / "evaluations.jsonl").exists()
    assert run(tmp_path / "measured", tiny_path, sums_path, "--eval-every", "2") == 0
    assert outcome(tmp_path / "measured") == outcome(tmp_path / "plain")
    found = lines(tmp_path / "measured" / "evaluations.jsonl")
    assert [line["step"] for line in found] == [2, 4]
    assert {"pass_at_1", "pass_at_1_interval", "pass_at_k", "pass_at_k_interval"} <= set(found[0])

    whole = r1lite.training.on_problems.measure
    calls = []

    def with_a_signal_in_the_middle(engine, prompts, scorer, config, progress, **ranks):
        def report(share):
            progress(share)
            if len(calls) == 2 and share < 1:  # before; at step 2, in the middle
                os.kill(os.getpid(), signal.SIGTERM)

        calls.append(1)
        return whole(engine, prompts, scorer, config, report, **ranks)

    monkeypatch.setattr(r1lite.training.on_problems, "measure", with_a_signal_in_the_middle)
    out = tmp_path / "stopped"
    assert run(out, tiny_path, sums_path, "--eval-every", "2") == 143
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["step-000002"]
    assert not (out / "evaluations.jsonl").exists()
    monkeypatch.setattr(r1lite.training.on_problems, "measure", whole)
    assert main(["grpo", "--resume", "--trust", "--out", str(out), "--quiet"]) == 0
    assert outcome(out) == outcome(tmp_path / "plain")
    assert lines(out / "evaluations.jsonl") == found


def test_without_evaluations_a_run_learns_the_same(tiny_path, sums_path, tmp_path, monkeypatch, capsys):
    """And resumes, with or without them from then on."""
    assert run(tmp_path / "plain", tiny_path, sums_path) == 0
    capsys.readouterr()
    out = tmp_path / "unmeasured"
    whole = r1lite.training.on_problems.measure
    monkeypatch.setattr(r1lite.training.on_problems, "measure", None)
    assert run(out, tiny_path, sums_path, "--eval-problems", "0", "--eval-every", "2") == 0
    assert "accuracy" not in capsys.readouterr().out
    assert outcome(out) == outcome(tmp_path / "plain")
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["eval_before"], summary["eval_after"], summary["learnt"]) == (None, None, [])
    assert not {path.name for path in out.iterdir()} & {"eval_before.json", "eval_after.json", "evaluations"}
    assert (out / "report.html").exists()
    assert "## Figures" not in (out / "checkpoints" / f"step-{STEPS:06d}" / "README.md").read_text()
    again = ["grpo", "--resume", "--trust", "--out", str(out)]
    assert main(again) == 0
    assert "finished already" in capsys.readouterr().out
    assert main([*again, "--steps", str(STEPS + 1), "--quiet"]) == 0
    monkeypatch.setattr(r1lite.training.on_problems, "measure", whole)
    assert main([*again, "--steps", str(STEPS + 2), "--eval-problems", "3"]) == 0
    assert "evaluating the initial weights" in capsys.readouterr().out
    before, after = (json.loads((out / f"eval_{name}.json").read_text()) for name in ("before", "after"))
    assert before["problems"] == after["problems"] == 3
    assert before == json.loads((tmp_path / "plain" / "eval_before.json").read_text())
