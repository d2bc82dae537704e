"""What goes wrong from outside: hangs, numbers that are none, kills, full disks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from r1lite.errors import RunError
from r1lite.model.optimizer import nonfinite_gradients
from r1lite.run.bad_batches import BadBatches

ROOT = Path(__file__).resolve().parents[2]

HANG = """
import sys, threading, time
from pathlib import Path
from r1lite.config import WatchdogConfig
from r1lite.run.watchdog import Watchdog

def deep_in_a_library():
    time.sleep(60)

def told(message):
    print("told:", message, flush=True)
    return False

with Watchdog(WatchdogConfig(stall_{limited}_s=0.3)) as dog:
    dog.folder, dog.resume = Path(sys.argv[1]), "r1lite grpo --resume --out RUN --trust"
    with dog.during("{outer}", "step 7"):
        with dog.during("{kind}", "12 problems: a-1, a-2"):
            {body}
    print("done", flush=True)
"""


def hang(tmp_path, *, kind="score", limited="score", outer="train", body="deep_in_a_library()"):
    script = HANG.format(kind=kind, limited=limited, outer=outer, body=body)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, env=environment, timeout=50
    )


def test_a_hang_ends_with_all_stacks(tmp_path):
    done = hang(tmp_path)
    assert done.returncode == 1
    for said in (done.stderr, (tmp_path / "stacks.txt").read_text()):
        assert "no progress for 0.3 s in scoring (12 problems: a-1, a-2)" in said
        assert "; the last checkpoint remains: r1lite grpo --resume --out RUN --trust. " in said
        assert "--stall-score-s" in said
        assert "deep_in_a_library" in said
        assert "in _watch" in said  # all threads


def test_a_hang_that_another_rank_has_told_is_not_told_again(tmp_path):
    soon = "setattr(sys.modules['r1lite.run.watchdog'], '_OTHER_S', 0.5)"  # when this process ends by itself
    done = hang(tmp_path, body=f"{soon} or setattr(dog, 'tell', told) or deep_in_a_library()")
    assert done.returncode == 1
    assert "no progress" not in done.stderr
    assert "told: no progress for 0.3 s in scoring" in done.stdout
    assert not (tmp_path / "stacks.txt").exists()  # the ranks' own files have them


@pytest.mark.parametrize(
    "quiet",
    [
        {"limited": "save", "body": "time.sleep(0.8)"},  # limits are those of the work that is being done
        {"body": "[(time.sleep(0.1), dog.beat()) for _ in range(8)]"},  # signs of life
        {"outer": "score", "kind": "load", "body": "time.sleep(0.8)"},  # the outer work's clock stands still meanwhile
    ],
)
def test_progress_is_left_alone(quiet, tmp_path):
    done = hang(tmp_path, **quiet)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_full_disk_does_not_silence_the_watchdog(tmp_path):
    done = hang(tmp_path / "gone")
    assert done.returncode == 1
    assert "deep_in_a_library" in done.stderr


class OnGPU(torch.Tensor):
    """A tensor on another device, which torch.load could only put back there."""

    def cpu(self):
        return torch.tensor([1.0, 2.0])

    def __reduce_ex__(self, protocol):
        raise AssertionError("a tensor is saved on its device")


def test_bad_batches_can_be_read_without_the_gpu(tmp_path):
    bad = BadBatches(tmp_path / "bad_batches")
    bad.skipped(1, [{"rewards": torch.zeros(2).as_subclass(OnGPU), "rows": [3]}], loss=0.0, parameters=["a"])
    (path,) = bad.folder.iterdir()
    (batch,) = torch.load(path, weights_only=True)["batches"]
    assert (batch["rewards"].tolist(), batch["rows"]) == ([1.0, 2.0], [3])


def test_bad_batches_are_kept_and_counted(tmp_path):
    bad = BadBatches(tmp_path / "bad_batches")
    batch = {"token_ids": torch.tensor([[1, 2]]), "rows": [0], "advantages": torch.tensor([float("nan")])}
    bad.skipped(4, [batch], loss=float("nan"), parameters=["head.weight"])
    bad.skipped(4, [batch], loss=1.0, parameters=[])
    bad.fine()
    bad.skipped(5, [batch], loss=1.0, parameters=[])
    bad.skipped(6, [batch], loss=1.0, parameters=[])
    with pytest.raises(RunError, match="step 7: the gradient was not finite 3 times in a row"):
        bad.skipped(7, [batch], loss=1.0, parameters=[])
    names = sorted(path.name for path in (tmp_path / "bad_batches").iterdir())
    assert names == [f"step-00000{n}.pt" for n in ("4-1", "4-2", "5-1", "6-1", "7-1")]
    kept = torch.load(tmp_path / "bad_batches" / "step-000004-1.pt", weights_only=True)
    assert kept["parameters"] == ["head.weight"]
    assert kept["batches"][0]["token_ids"].tolist() == [[1, 2]]


def test_nonfinite_gradients_are_named():
    layers = torch.nn.ModuleDict(
        {"good": torch.nn.Linear(2, 1), "bad": torch.nn.Linear(2, 1), "idle": torch.nn.Linear(2, 1)}
    )
    (layers["good"](torch.ones(2)) + layers["bad"](torch.tensor([1.0, float("inf")])) * 1.0).sum().backward()
    assert nonfinite_gradients(layers.named_parameters()) == ["bad.weight"]
