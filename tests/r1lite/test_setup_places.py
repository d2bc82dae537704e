"""What names a model: a folder, a run, the Hub."""

import shutil

import pytest
from tables_for_tests import each

from r1lite.config import EvalConfig
from r1lite.errors import UserError
from r1lite.hub.revisions import hub_id
from r1lite.preference.reward_model import load_classifier
from r1lite.training.loading import load_model
from r1lite.training.machine import default_threads, located
from r1lite.training.resolve import resolve_config


def test_a_run_stands_for_its_newest_checkpoint(tmp_path):
    for step in ("step-000009", "step-000010", "step-1000000", "step-1000000-best", "step-2000000.tmp"):
        (tmp_path / "one" / "checkpoints" / step).mkdir(parents=True)
    (tmp_path / "one" / "checkpoints" / "step-3000000").touch()
    assert located(str(tmp_path / "one")) == str(tmp_path / "one" / "checkpoints" / "step-1000000")
    (tmp_path / "two" / "checkpoints").mkdir(parents=True)
    with pytest.raises(UserError, match="a run without a checkpoint"):
        located(str(tmp_path / "two"))


@pytest.mark.parametrize("name", ["runs/nothing-of-this-name", "./no", "/no/such", "a/b/c"])
def test_a_path_where_nothing_is_is_not_asked_of_the_hub(name):
    with pytest.raises(UserError, match="no such folder here"):
        located(name)


@pytest.mark.parametrize("name", ["nano", "nano-countdown", "Qwen/Qwen2.5-0.5B", "gpt2"])
def test_other_names_stay(name):
    assert located(name) == name


@each(
    [
        ("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B"),
        ("Qwen/Qwen2.5-0.5B@main", "Qwen/Qwen2.5-0.5B"),
        ("gpt2", "gpt2"),
        *((name, None) for name in ("/a/b", "./a", "~/a", "runs/one", "a/b/c", "not an id", "/")),
    ]
)
def test_the_id_of_a_model_on_the_hub(name, expected):
    assert hub_id(name) == expected


def without_tokenizer(folder):
    for file in folder.glob("tokenizer*"):
        file.unlink()
    return f"no tokenizer files in {folder}"


def cut_short(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    return f"{path} is incomplete or damaged"


@pytest.mark.parametrize("damage", [without_tokenizer, cut_short])
@pytest.mark.parametrize(
    "load",
    [lambda path: load_model(EvalConfig(model=path, device="cpu")), lambda path: load_classifier(path, seed=0)],
)
def test_an_incomplete_folder_names_what_it_lacks(damage, load, tiny_path, tmp_path):
    folder = shutil.copytree(tiny_path, tmp_path / "model")
    said = damage(folder)
    with pytest.raises(UserError, match=said):
        load(str(folder))


@pytest.mark.parametrize(
    ("given", "threads"),
    [(None, 8), ("", 8), ("3", 3), ("12,4", 12), (" 2 ", 2), ("0", 8), ("-1", 8), ("many", 8), ("100000", 8), ("²", 8)],
)
def test_the_number_of_threads_is_that_of_the_environment(given, threads, monkeypatch):
    """As for other programs with torch; what OpenMP itself ignores is ignored."""
    monkeypatch.setattr("r1lite.training.machine.available", lambda: 40)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert default_threads() == threads
    settled, _ = resolve_config(EvalConfig(model="nano", device="cpu"))
    assert settled.threads == (1 if threads == 8 else threads)  # its recipe's, unless the environment names another
    assert resolve_config(EvalConfig(model="nano", device="cpu", threads=5))[0].threads == 5
    assert default_threads(10) == (4 if threads == 8 else threads)  # of `r1lite launch`, for each of ten processes


def test_torchrun_s_own_number_of_threads_is_not_the_user_s(monkeypatch):
    """It sets 1 for each of several ranks where nothing is set."""
    monkeypatch.setattr("r1lite.training.machine.available", lambda: 40)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert default_threads() == 1
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    assert default_threads() == 1
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert default_threads() == 8
