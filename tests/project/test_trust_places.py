"""Folders from elsewhere: links, pipes, devices and names in them reach nothing outside and hold nothing up."""

import fcntl
import json
import os
import shutil
import signal
from pathlib import Path

import pytest
import yaml
from trust_for_tests import run_dir

from r1lite.cli import main
from r1lite.errors import UserError
from r1lite.hub.loading import load_shape
from r1lite.nano import model_place
from r1lite.run import checkpoint
from r1lite.run.environment import FILE, SCHEMA
from r1lite.run.files import LOCK, lock_folder
from r1lite.run.records import read_records
from r1lite.run.run_dir import RunDir
from r1lite.training.machine import located
from verifiers.yaml_text import read_yaml

MOST_S = 20


@pytest.fixture
def in_time():
    """Ends a test that waits for a pipe."""

    def end(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(MOST_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    (folder / "step-000999").mkdir(parents=True)
    (folder / ".album.part").mkdir()
    (folder / ".album.part" / "picture").write_text("mine")
    return folder


def emptied(place, aside):
    """The place in a run directory, after what is there has been moved or removed."""
    place.parent.mkdir(exist_ok=True)
    if place.is_dir():
        place.rename(aside)
    place.unlink(missing_ok=True)
    return place


@pytest.mark.parametrize(
    "name", ["checkpoints", "rollouts", "evaluations", "extra", "metrics.jsonl", LOCK, "sub/extra"]
)
def test_a_run_with_a_link_is_not_continued(name, outside, tmp_path):
    path = run_dir(tmp_path / "run")
    place = emptied(path / name, tmp_path / "aside")
    place.symlink_to(outside if place.suffix == "" and name != LOCK else tmp_path / "created")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=r"is a link|symbolic links"):
        RunDir(path, resume=True).close()
    assert [file for file in sorted(tmp_path.rglob("*")) if file.name != LOCK] == [
        file for file in before if file.name != LOCK
    ]
    assert not (tmp_path / "created").exists()


@pytest.mark.parametrize(
    "name",
    ["config.yaml", "metrics.jsonl", "environment.json", "rollouts/step-000001.jsonl.gz", "evaluations", "extra"],
)
@pytest.mark.parametrize("command", [["report"], ["log", "--to", "tensorboard"]])
def test_a_run_with_a_link_that_leads_out_is_not_shown_or_sent(command, name, outside, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("r1lite.trackers.command.check", lambda *_: None)
    path = run_dir(tmp_path / "run")
    place = emptied(path / name, tmp_path / "aside")
    (outside / "secret").write_text("token: mine")
    place.symlink_to(outside if place.suffix == "" else outside / "secret")
    assert main([command[0], str(path), *command[1:]]) == 2
    assert f"{place} is a link to {outside}" in capsys.readouterr().err


def test_links_inside_of_a_run_and_to_its_checkpoints_are_followed(outside, tmp_path):
    path = run_dir(tmp_path / "run")
    (path / "latest").symlink_to("metrics.jsonl")
    shutil.rmtree(path / "checkpoints", ignore_errors=True)
    (path / "checkpoints").symlink_to(outside)
    (tmp_path / "link").symlink_to(path)
    assert main(["report", str(tmp_path / "link")]) == 0


def test_a_report_replaces_the_link_at_its_temporary_name(tmp_path):
    path = run_dir(tmp_path / "run")
    (tmp_path / "victim").write_text("mine")
    (path / ".report.html.part").symlink_to(tmp_path / "victim")
    assert main(["report", str(path)]) == 0
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (path / "report.html").is_symlink()


@pytest.mark.parametrize(
    "name",
    ["config.yaml", FILE, "metrics.jsonl", "evaluations.jsonl", "eval_before.json", "reward.json", "summary.json", LOCK,
     "rollouts/step-000001.jsonl.gz"],
)  # fmt: skip
@pytest.mark.parametrize("command", ["report", "doctor", "grpo --resume --out", "reject --rollouts"])
def test_a_pipe_in_a_run_holds_no_command_up(name, command, in_time, tmp_path, capsys):
    path = run_dir(tmp_path / "run")
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).unlink(missing_ok=True)
    os.mkfifo(path / name)
    assert main([*command.split(), str(path), *(["--out", str(tmp_path / "set")] if "reject" in command else [])]) < 3
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["/dev/zero", "../outside", "model.safetensors/../../x"])
def test_a_manifest_names_only_files_of_its_checkpoint(name, in_time, tmp_path):
    folder = tmp_path / "checkpoints" / "step-000001"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"step": 1, "files": {name: "0"}}))
    assert checkpoint.latest(tmp_path / "checkpoints") == (None, [folder])


@pytest.mark.parametrize("files", [["thesis.txt", "data"], 5, {"thesis.txt": 1}, [["thesis.txt"]]])
def test_a_new_run_removes_no_file_that_a_folder_calls_a_leftover(files, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / "data").mkdir()
    (tmp_path / FILE).write_text(json.dumps({"schema": SCHEMA, "stage": "grpo", "files": files}))
    with pytest.raises(UserError, match="not empty"):
        RunDir(tmp_path, restarts="grpo")
    assert (tmp_path / "thesis.txt").exists()
    assert (tmp_path / "data").exists()


def test_a_lock_that_its_owner_removed_locks_nothing(tmp_path, monkeypatch):
    """Between the opening and the locking of the file, the process that held it removes it, and another locks anew."""
    locked, others = fcntl.flock, []

    def once(file, how):
        monkeypatch.setattr(fcntl, "flock", locked)
        (tmp_path / LOCK).unlink()
        others.append(lock_folder(tmp_path))
        locked(file, how)

    monkeypatch.setattr(fcntl, "flock", once)
    with pytest.raises(BlockingIOError):
        lock_folder(tmp_path)
    others[0].close()
    lock_folder(tmp_path).close()


def test_a_model_folder_with_a_pipe_is_refused(in_time, tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="is a pipe"):
        located(str(tmp_path))
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").symlink_to("/dev/zero")
    with pytest.raises(UserError, match="a device"):
        located(str(tmp_path))


def test_a_model_names_no_kernel_of_the_hub(tmp_path):
    """With the package `kernels`, transformers would fetch and import it."""
    known = json.loads((Path(model_place("nano")) / "config.json").read_text())
    names = {"_attn_implementation": "some/kernel", "_experts_implementation": "some/kernel"}
    (tmp_path / "config.json").write_text(json.dumps(known | names | {"attn_implementation": "some/kernel"}))
    found = load_shape(str(tmp_path))
    assert found._attn_implementation is None
    assert found._experts_implementation is None


def test_merged_mappings_are_limited():
    chain = "x0: &x0 {k0: 1}\n" + "".join(f"x{i}: &x{i} {{<<: *x{i - 1}, k{i}: 1}}\n" for i in range(1, 1000))
    with pytest.raises(ValueError, match="merge keys stand for more than"):
        read_yaml(chain)
    assert read_yaml("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n")["b"] == {"x": 1, "y": 3}
    with pytest.raises(ValueError, match="not of type float"):
        read_yaml(f"lr: 1{':1' * 300}.5\n")
    assert yaml.safe_load("a: 1:30.5") == read_yaml("a: 1:30.5")


def test_records_are_read_from_files_only(in_time, tmp_path):
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(UserError, match="not a regular file"):
        read_records(tmp_path / "metrics.jsonl")
    assert read_records(tmp_path / "none.jsonl") == []


def test_the_links_of_a_tracker_are_no_harm(tmp_path):
    path = run_dir(tmp_path / "run")
    (path / "trackers" / "wandb").mkdir(parents=True)
    (path / "trackers" / "wandb" / "latest-run").symlink_to("run-1")
    RunDir(path, resume=True).close()
    (path / "trackers").rename(tmp_path / "elsewhere")
    (path / "trackers").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link"):
        RunDir(path, resume=True)
