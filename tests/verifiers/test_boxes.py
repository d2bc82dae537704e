"""Folders of sandboxes whose owner was killed: the next owner removes them, and nothing else."""

import os
import subprocess
import sys
import tempfile

import pytest

from verifiers.sandbox import boxes

OWNER = "import os, signal; from verifiers.sandbox.boxes import Box; b = Box(); print(b.path, flush=True); {end}"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    boxes._remove_stale.cache_clear()
    yield
    boxes._remove_stale.cache_clear()


def aged(path):
    os.utime(path, (0, 0))


def test_what_a_killed_owner_left_is_removed(tmp_path):
    code = OWNER.format(end="os.kill(os.getpid(), signal.SIGKILL)")
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
    (tmp_path / left / "of a run").mkdir()
    aged(left)
    box = boxes.Box()
    assert [path.name for path in tmp_path.iterdir()] == [os.path.basename(box.path)]
    box.close()
    assert list(tmp_path.iterdir()) == []


def test_folders_in_use_and_young_and_other_ones_stay(tmp_path):
    code = OWNER.format(end="input()")
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as owner:
        used = owner.stdout.readline().strip()
        aged(used)
        (tmp_path / "verifiers-runs-young").mkdir()
        (tmp_path / "verifiers-runs-file").touch()
        aged(tmp_path / "verifiers-runs-file")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "verifiers-runs-link").symlink_to(tmp_path / "elsewhere")
        before = set(os.listdir(tmp_path))
        boxes.Box().close()
        assert set(os.listdir(tmp_path)) == before
        owner.kill()
