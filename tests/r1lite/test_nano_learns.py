"""The main job, in short: nano learns to reason, and the doctor finds nothing wrong."""

import json

import pytest

from r1lite.cli import main


@pytest.mark.slow
def test_a_minute_of_grpo_makes_nano_reason(tmp_path, capsys):
    argv = ["grpo", "--task", "gsm8k", "--steps", "10", "--eval-problems", "100", "--eval-sample-problems", "4"]
    assert main([*argv, "--out", str(tmp_path / "run"), "--device", "cpu"]) == 0
    printed = capsys.readouterr().out
    for words in ("the bundled model", "bundled GSM8K-style problems", "recipes/gsm8k-nano.yaml", "Problem "):
        assert words in printed
    assert json.loads((tmp_path / "run" / "findings.json").read_text()) == []
    assert "doctor" not in printed
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    before, after = summary["eval_before"], summary["eval_after"]
    assert after["pass_at_1"] > before["pass_at_1"] + 0.25
    assert after["pass_at_1_interval"][0] > before["pass_at_1_interval"][1]  # not by chance
    assert after["mean_tokens"] > before["mean_tokens"]
    rewards = [json.loads(line)["reward"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert sum(rewards[-3:]) > 1.5 * sum(rewards[:3])
