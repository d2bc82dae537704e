"""The scripts for GPUs run in their tiny form, and refuse to make figures without one."""

import json
from pathlib import Path

import pytest
import torch

from r1lite.rollout.vllm_support import installed

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "common.py")


@pytest.fixture
def run(forks):
    """Runs a script: (exit code, standard output, standard error)."""
    return lambda name, *flags: forks.run(flags, script=FOLDER / name, env={"CUDA_VISIBLE_DEVICES": ""}, timeout=900)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_it_refuses_without_a_gpu_and_says_that_it_was_not_run(name, run):
    code, out, err = run(name)
    assert code == 1
    assert "needed, 0 found; --dry-run tests the script" in err
    assert out == ""
    text = " ".join((FOLDER / name).read_text(encoding="utf-8").split('"""')[1].split())
    assert "NOT RUN ON A GPU YET" in text
    assert "The purpose is to show" in text
    assert f"benchmarks/gpu/{name}" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def lines(run, tmp_path):
    """What a script makes in its tiny form."""

    def made(name):
        path = tmp_path / "lines.jsonl"
        code, out, err = run(name, "--dry-run", "--out", path)
        assert code == 0, err[-3000:]
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert [json.loads(line) for line in out.splitlines()] == found
        assert {line["machine"] for line in found} == {"cpu (dry run)"} or torch.cuda.is_available()
        return found

    return made


@pytest.mark.slow
def test_both_trainers_are_measured_alike(lines):
    pytest.importorskip("trl")
    ours, theirs = lines("gsm8k_beside_trl.py")
    assert (ours["by"], theirs["by"]) == ("r1lite", "trl")
    assert ours.keys() == theirs.keys()
    assert ours["accuracy_before"] == theirs["accuracy_before"]
    for line in (ours, theirs):
        assert line["wall_s"] > 0
        assert line["tokens_per_s"] > 0
        assert 0 <= line["accuracy"] <= 1


@pytest.mark.slow
def test_steps_of_both_trainers_are_measured_alike(lines):
    pytest.importorskip("trl")
    ours, theirs = lines("step_beside_trl.py")
    assert (ours["by"], theirs["by"]) == ("r1lite", "trl")
    assert ours.keys() == theirs.keys()
    for line in (ours, theirs):
        assert line["sample_s"] > 0
        assert line["train_s"] > 0
        assert line["step_s"] == pytest.approx(line["sample_s"] + line["train_s"], abs=0.002)
        assert line["tokens_per_s"] > 0


def test_steps_of_all_weights_and_of_adapters(lines):
    pytest.importorskip("peft")
    pytest.importorskip("bitsandbytes")
    found = lines("steps.py")
    assert [(line["shape"], line["way"], line["fits"]) for line in found] == [
        ("tiny", way, True) for way in ("all", "lora", "qlora")
    ]
    assert all(line["step_s"] > 0 and line["peak_mib"] > 0 and line["estimated_mib"] > 0 for line in found)


@pytest.mark.slow
def test_one_and_two_ranks(lines):
    found = lines("sharding.py")
    assert [(line["shard"], line["gpus"], line["fits"]) for line in found] == [
        *(("none", 1, True), ("none", 2, True), ("full", 2, True))
    ]
    assert found[0]["speedup"] == 1.0


@pytest.mark.skipif(installed() is None, reason="vLLM is not installed")
def test_rollouts_beside_bare_vllm(lines):
    (line,) = lines("rollouts.py")
    assert line["shape"] == "tiny"
    assert line["ratio"] > 0
