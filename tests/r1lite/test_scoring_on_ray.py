"""A run whose completions are scored on Ray is the run that scores them itself."""

import json

import pytest
from on_ray_for_tests import set_token

from r1lite.cli import main
from r1lite.config import GRPOConfig, load
from r1lite.errors import UserError
from r1lite.training.several import refuse

set_token()
FLAGS = [
    *("--template", "short", "--max-completion-tokens", "6", "--prompts-per-step", "2", "--group-size", "3"),
    *("--eval-problems", "4", "--eval-sample-problems", "1", "--eval-samples", "2", "--steps", "2", "--threads", "1"),
    *("--reward", "math + 0.1*format + 0.01*reward_for_tests:digits", "--quiet", "--no-report"),
]
CLOCKS = {"generate_s", "score_s", "train_s", "step_s"}


@pytest.mark.slow
def test_the_same_rollouts_metrics_and_evaluations(cluster, tiny_path, sums_path, tmp_path, forks):
    inputs = ["grpo", "--model", str(tiny_path), "--source", str(sums_path), *FLAGS]
    here, there = tmp_path / "here", tmp_path / "there"
    code, _, err = forks.run([*inputs, "--out", here])
    assert code == 0, err
    on_ray = ["--scoring", f"ray:{cluster.address}", "--score-workers", "1"]
    code, _, err = forks.run([*inputs, *on_ray, "--out", there])
    assert code == 0, err
    assert "scoring on " in err
    assert ": 1 actor" in err
    for path in sorted((here / "rollouts").iterdir()):
        assert path.read_bytes() == (there / "rollouts" / path.name).read_bytes()
    one, two = (
        [
            {key: value for key, value in json.loads(line).items() if key not in CLOCKS}
            for line in (out / "metrics.jsonl").read_text().splitlines()
        ]
        for out in (here, there)
    )
    assert one == two
    for name in ("eval_before.json", "eval_after.json"):
        assert json.loads((here / name).read_text()) == json.loads((there / name).read_text())


def test_what_is_refused(capsys):
    for argv, said in (
        (["grpo", "--scoring", "far"], "--scoring far: expected ray, ray:HOST:PORT or ray://HOST:PORT, or local"),
        (
            ["reject", "--scoring", "ray"],
            "--scoring ray is not for reject, which scores where it does all its work: use --on ray",
        ),
    ):
        assert main(argv) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(UserError, match="--scoring ray with 2 ranks needs --score-workers"):
        refuse(load(GRPOConfig, ["--scoring", "ray", "--engine", "transformers"]), 2)
