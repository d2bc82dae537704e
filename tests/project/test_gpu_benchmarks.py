"""The scripts for GPUs run in their tiny form, and refuse to make figures without one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from r1lite.rollout.vllm_support import installed

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "common.py")


def run(name, *flags):
    return subprocess.run(
        [sys.executable, str(FOLDER / name), *flags],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_refuses_without_a_gpu_and_says_that_it_was_not_run(name):
    done = run(name)
    assert done.returncode == 1
    assert "needed, 0 found; --dry-run tries the script" in done.stderr
    assert done.stdout == ""
    text = " ".join((FOLDER / name).read_text(encoding="utf-8").split('"""')[1].split())
    assert "NOT RUN ON A GPU YET" in text
    assert "would prove" in text
    assert f"benchmarks/gpu/{name}" in (FOLDER / "README.md").read_text(encoding="utf-8")


def lines(name, tmp_path):
    out = tmp_path / "lines.jsonl"
    done = run(name, "--dry-run", "--out", str(out))
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [json.loads(line) for line in done.stdout.splitlines()] == found
    assert {line["machine"] for line in found} == {"cpu (dry run)"} or torch.cuda.is_available()
    return found


def test_both_trainers_are_measured_alike(tmp_path):
    pytest.importorskip("trl")
    ours, theirs = lines("gsm8k_beside_trl.py", tmp_path)
    assert (ours["by"], theirs["by"]) == ("r1lite", "trl")
    assert ours.keys() == theirs.keys()
    assert ours["accuracy_before"] == theirs["accuracy_before"]
    for line in (ours, theirs):
        assert line["wall_s"] > 0
        assert line["tokens_per_s"] > 0
        assert 0 <= line["accuracy"] <= 1


def test_steps_of_all_weights_and_of_adapters(tmp_path):
    pytest.importorskip("peft")
    pytest.importorskip("bitsandbytes")
    found = lines("steps.py", tmp_path)
    assert [(line["shape"], line["way"], line["fits"]) for line in found] == [
        ("tiny", way, True) for way in ("all", "lora", "qlora")
    ]
    assert all(line["step_s"] > 0 and line["peak_mib"] > 0 and line["estimated_mib"] > 0 for line in found)


def test_one_and_two_ranks(tmp_path):
    found = lines("sharding.py", tmp_path)
    assert [(line["shard"], line["gpus"], line["fits"]) for line in found] == [
        *(("none", 1, True), ("none", 2, True), ("full", 2, True))
    ]
    assert found[0]["speedup"] == 1.0


@pytest.mark.skipif(installed() is None, reason="vLLM is not installed")
def test_rollouts_beside_bare_vllm(tmp_path):
    (line,) = lines("rollouts.py", tmp_path)
    assert line["shape"] == "tiny"
    assert line["ratio"] > 0
