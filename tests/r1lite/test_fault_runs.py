"""Whole runs that something happens to: a full disk, a hanging verifier, an update that is not finite."""

import dataclasses
import json
import math
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM

import r1lite.grpo.objective
from r1lite.cli import main
from r1lite.run import checkpoint

ROOT = Path(__file__).resolve().parents[2]
STEPS = 6
CLOCKS = {"generate_s", "score_s", "train_s", "step_s"}


def arguments(out, tiny_path, sums_path, *more):
    return [
        *("grpo", "--model", str(tiny_path), "--source", str(sums_path), "--out", str(out), "--quiet"),
        *("--template", "short", "--max-completion-tokens", "8", "--steps", str(STEPS), "--lr", "3e-3"),
        *("--prompts-per-step", "2", "--group-size", "3", "--eval-problems", "2", "--eval-sample-problems", "1"),
        *("--eval-samples", "2", "--reward", "reward_for_tests:digits", "--score-workers", "0", "--threads", "1"),
        *("--save-every", "2", *more),
    ]


@pytest.fixture(autouse=True)
def reward_is_found(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")
    torch.set_num_threads(1)


def outcome(out):
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return (
        {path.name: path.read_bytes() for path in sorted((out / "rollouts").iterdir())},
        [{key: value for key, value in line.items() if key not in CLOCKS} for line in metrics],
        (out / "checkpoints" / f"step-{STEPS:06d}" / "model.safetensors").read_bytes(),
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_path, sums_path):
    sys.path.insert(0, str(ROOT / "tests"))
    out = tmp_path_factory.mktemp("whole") / "run"
    assert main(arguments(out, tiny_path, sums_path)) == 0
    return out


@pytest.mark.slow
def test_files_that_may_grow_no_further(whole, tiny_path, sums_path, tmp_path, monkeypatch, capsys):
    """As a quota would: no file may pass 20 kB from step 3 on. Records fit, the checkpoint of step 4 doesn't."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    learn, calls = r1lite.grpo.learner.PolicyLearner.learn, []

    def limiting(self, *given):
        calls.append(1)
        if len(calls) == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        return learn(self, *given)

    monkeypatch.setattr(r1lite.grpo.learner.PolicyLearner, "learn", limiting)
    out = tmp_path / "run"
    try:
        assert main(arguments(out, tiny_path, sums_path)) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    shown = capsys.readouterr().err
    assert "the checkpoint of step 4 can't be written" in shown
    assert "Traceback" not in shown
    assert checkpoint.latest(out / "checkpoints")[0][0] == 2
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["step-000002"]  # nothing half done beside it
    assert main(["grpo", "--resume", "--trust", "--out", str(out), "--quiet"]) == 0
    assert outcome(out) == outcome(whole)


FULL = """
import ctypes, os, shutil, subprocess, sys
from r1lite.cli import main

disk, kept, *argv = sys.argv[1:]
user, group = os.getuid(), os.getgid()
if ctypes.CDLL(None, use_errno=True).unshare(0x10020000):  # a user and mounts of its own
    raise OSError(ctypes.get_errno(), "unshare")
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=560k", "tmpfs", disk], check=True)
print("code", main(argv))
print(os.listdir(f"{disk}/run/checkpoints"))
subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
print("code", main(["grpo", "--resume", "--trust", "--out", f"{disk}/run", "--quiet"]))
shutil.copytree(f"{disk}/run", kept)
"""


def test_a_full_disk(whole, tiny_path, sums_path, tmp_path, forks):
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody make a small disk")
    code, out, err = forks.run([disk, kept, *arguments(disk / "run", tiny_path, sums_path)], code=FULL, timeout=200)
    assert code == 0, out + err
    codes = [line for line in out.splitlines() if line.startswith("code")]
    assert codes == ["code 1", "code 0"], out + err
    assert "the checkpoint of step 4 can't be written" in err
    assert "MB are free there without it). Make room there, then continue with --resume" in err
    assert "Traceback" not in err
    assert "step-000002" in out
    assert outcome(kept) == outcome(whole)


def test_a_disk_that_is_too_small_for_a_checkpoint(tiny_path, sums_path, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=100_000))
    assert main(arguments(tmp_path / "run", tiny_path, sums_path)) == 2
    assert "MB, and 0.1 MB are free there. Make room, or choose another --out" in capsys.readouterr().err


def test_the_least_size_of_a_checkpoint(whole):
    saved = whole / "checkpoints" / f"step-{STEPS:06d}"
    size = sum((saved / name).stat().st_size for name in ("model.safetensors", "trainer.pt"))
    model = AutoModelForCausalLM.from_pretrained(saved)
    assert 0.7 * size < checkpoint.least_size(model) < size
    assert checkpoint.least_size(model, dtype=torch.bfloat16, rounded=True) > checkpoint.least_size(model)


def test_a_verifier_that_hangs(tiny_path, sums_path, tmp_path, forks):
    (tmp_path / "hanging.py").write_text(
        "import time\n\ndef stuck(problem, completion):\n    if completion.logprobs: time.sleep(600)\n    return 0.0\n"
    )
    out = tmp_path / "run"
    argv = arguments(out, tiny_path, sums_path, "--stall-score-s", "1")
    argv[argv.index("reward_for_tests:digits")] = "hanging:stuck"
    code, _, shown = forks.run(argv, paths=[tmp_path])
    assert code == 1
    for said in (shown, (out / "stacks.txt").read_text()):
        assert "no progress for 1 s in scoring (step 1, 2 problems: train-" in said
        assert "in stuck" in said


def test_an_update_that_is_not_finite_is_skipped(tiny_path, sums_path, tmp_path, monkeypatch):
    loss, calls = r1lite.grpo.objective.policy_loss, []

    def broken(*given):
        calls.append(1)
        made = loss(*given)
        return dataclasses.replace(made, values=made.values * math.nan) if len(calls) == 2 else made

    monkeypatch.setattr(r1lite.grpo.objective, "policy_loss", broken)
    out = tmp_path / "run"
    assert (
        main(arguments(out, tiny_path, sums_path, "--steps", "3", "--save-every", "1", "--keep-checkpoints", "9")) == 0
    )
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["skipped_updates"] for line in lines] == [0, 1, 0]
    assert lines[1]["loss"] is None
    weights = [(out / "checkpoints" / f"step-00000{n}" / "model.safetensors").read_bytes() for n in (1, 2, 3)]
    assert weights[0] == weights[1] != weights[2]
    (path,) = (out / "bad_batches").iterdir()
    kept = torch.load(path, weights_only=True)
    assert (path.name, kept["step"]) == ("step-000002-1.pt", 2)
    assert {"token_ids", "loss_mask", "advantages", "rewards", "prompts"} <= set(kept["batches"][0])
    assert "nonfinite" in {f["name"] for f in json.loads((out / "findings.json").read_text())}
