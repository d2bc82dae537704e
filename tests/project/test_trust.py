"""SECURITY.md, line by line: each attack tries to make a marker file; twins show that the marker can be made."""

import json
import sys

import pytest
import yaml
from trust_for_tests import run_dir

from r1lite.cli import main
from verifiers.__main__ import main as verifiers_main
from verifiers.trust import beyond

FORMULAS = [
    ("evil_for_tests:verify", {}),
    ("math + 0.1*evil_for_tests:verify", {}),
    ("math", {"math": {"use": "evil_for_tests:verify"}}),
    ("v", {"v": {"use": "evil_for_tests:verify", "words": ["x"]}}),
    ("code", {"code": {"checkers": ["evil_for_tests:check"]}}),
    ("rm:somewhere", {}),
    ("sandboxed:evil_for_tests:verify", {}),
    ("code", {"code": {"isolation": "rlimit-only"}}),
    ("code", {"code": {"packages": ["evil_for_tests"], "preload": ["evil_for_tests"]}}),
    ("reasoning_gym", {"reasoning_gym": {"isolation": "rlimit-only"}}),
]


@pytest.mark.parametrize(("formula", "options"), FORMULAS, ids=lambda value: json.dumps(value)[:60])
def test_a_run_s_reward_names_what_ships(tmp_path, marker, capsys, formula, options):
    path = run_dir(tmp_path / "run", about={"formula": formula, "options": options, "versions": {}})
    assert beyond(formula, options)
    assert verifiers_main(["replay", str(path), "--workers", "0"]) == 2
    said = capsys.readouterr().err
    assert "--trust" in said
    assert "reward.json" in said
    assert not marker.exists()


def test_a_trusted_run_s_reward_is_imported(tmp_path, marker):
    path = run_dir(tmp_path / "run", about={"formula": "evil_for_tests:verify", "options": {}, "versions": {}})
    assert verifiers_main(["replay", str(path), "--workers", "0", "--trust"]) == 0
    assert marker.exists()


def test_the_same_formula_said_by_the_user_needs_no_trust(tmp_path, marker):
    path = run_dir(tmp_path / "run", about={"formula": "evil_for_tests:verify", "options": {}, "versions": {}})
    assert verifiers_main(["replay", str(path), "--workers", "0", "--reward", "evil_for_tests:verify"]) == 0
    assert marker.exists()


@pytest.mark.parametrize("options", [{"use": "evil_for_tests:verify"}, {"checkers": ["evil_for_tests:check"]}])
@pytest.mark.parametrize("name", ["code", "evil_for_tests:verify"])
def test_a_set_s_manifest_names_what_ships(tmp_path, marker, capsys, name, options):
    path = tmp_path / "set"
    path.mkdir()
    (path / "train.jsonl").write_text("")
    used = {name: {"options": options, "version": "1"}}
    (path / "manifest.json").write_text(json.dumps({"verifiers": used, "data": {"file": "train.jsonl"}}))
    assert verifiers_main(["replay", str(path), "--workers", "0"]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not marker.exists()


CONFIGS = [
    {"task": "evil_for_tests:TASK"},
    {"reward": "math + evil_for_tests:verify"},
    {"verifiers": {"math": {"use": "evil_for_tests:verify"}}, "reward": "math"},
    {"verifiers": {"code": {"checkers": ["evil_for_tests:check"]}}, "reward": "code"},
    {"attn_implementation": "somebody/kernel"},
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda value: next(iter(value)))
def test_a_run_that_goes_on_names_what_ships(tmp_path, marker, capsys, config):
    path = run_dir(tmp_path / "run", **config)
    for stage in ("grpo", "ppo"):
        assert main([stage, "--resume", "--out", str(path)]) == 2
        assert "--trust" in capsys.readouterr().err
        assert main([stage, str(path / "config.yaml"), "--out", str(tmp_path / "new")]) == 2
        assert "--trust" in capsys.readouterr().err
    (tmp_path / "mine.yaml").write_text(f"base: {path / 'config.yaml'}\n")
    assert main(["grpo", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not marker.exists()


@pytest.mark.parametrize(
    "recipe",
    [
        {"stages": {"a": {"stage": "reject", "settings": {"task": "evil_for_tests:TASK"}}}},
        {"common": {"reward": "evil_for_tests:verify"}, "stages": {}},
        {"evaluate": {"verifier": "evil_for_tests:verify"}, "stages": {}},
        {"compare": {"row": {"model": "nano", "settings": {"task": "gsm8k,evil_for_tests:TASK"}}}, "stages": {}},
    ],
    ids=lambda value: next(iter(value)),
)
def test_a_pipeline_in_a_run_s_folder_names_what_ships(tmp_path, marker, capsys, recipe):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(recipe))
    assert main(["r1", str(tmp_path / "config.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not marker.exists()


def test_what_the_user_repeats_needs_no_trust(tmp_path, marker, capsys):
    path = run_dir(tmp_path / "run", task="evil_for_tests:TASK")
    for said in (["--trust"], ["--task", "evil_for_tests:TASK"]):
        assert main(["grpo", "--resume", "--out", str(path), *said]) == 2
        assert "has no 'TASK'" in capsys.readouterr().err
        assert marker.exists()
        marker.unlink()
        sys.modules.pop("evil_for_tests")


SENT = [
    ("reject", {"push_to_hub": "somebody/set"}),
    ("grpo", {"engine": "vllm-server", "engine_url": ["https://example.com"]}),
    ("grpo", {"log_to": ["wandb"]}),
    ("sft", {"log_to": ["tensorboard", "of_another_package"]}),
    ("grpo", {"engine": "vllm-server", "engine_url": ["http://127.0.0.1:9", "http://127.0.0.1.example.com:9"]}),
    ("grpo", {"engine": "vllm-server", "engine_url": ["http://127.0.0.1:9/shutdown?x="]}),
    ("grpo", {"engine": "vllm-server", "engine_url": ["http://127.0.0.1:9"], "engine_weights_dir": "elsewhere"}),
    ("distill", {"teacher": "nano", "trajectories": {"push_to_hub": "somebody/set"}}),
    ("grpo", {"score_workers": 100_000}),
    ("grpo", {"score_timeout_s": 61}),
    ("reject", {"workers": 65}),
    ("reject", {"filters": ["code:time_s=1e9"]}),
    ("grpo", {"reward": "code", "verifiers": {"code": {"servers": 1000}}}),
    ("grpo", {"reward": "regex", "verifiers": {"regex": {"pattern": "x", "timeout_s": 10**40}}}),
]


@pytest.mark.parametrize(("stage", "config"), SENT, ids=str)
def test_a_run_s_files_send_nothing_out_and_take_no_more_than_is_usual(tmp_path, monkeypatch, capsys, stage, config):
    monkeypatch.chdir(tmp_path)
    made = run_dir(tmp_path / "made")
    path = run_dir(tmp_path / "run", **({"rollouts": str(made)} if stage == "reject" else {}), **config)
    assert main([stage, "--resume", "--out", str(path)]) == 2
    said = capsys.readouterr().err
    assert "paths outside" in said
    assert "--trust" in said
    assert main([stage, str(path / "config.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()


def test_what_a_run_s_files_say_of_places_is_the_user_s_to_replace(tmp_path):
    from r1lite.config import trust

    saved = {"engine_url": ["https://example.com"], "engine_weights_dir": "/a", "workers": 1000, "push_to_hub": "x/y"}
    said = {"engine_url": ["https://mine.example"], "engine_weights_dir": "/b", "workers": 70, "push_to_hub": "me/y"}
    trust.check(saved, "config.yaml", said=said, trust=False)
    trust.check({"engine_url": ["http://127.0.0.1:8100", "http://[::1]:8100/"]}, "config.yaml", said={}, trust=False)


@pytest.mark.parametrize("mark", ["config.yaml", "manifest.json", "summary.json", ".lock", "environment.json"])
def test_a_base_of_a_run_s_file_is_data_wherever_it_lies(tmp_path, marker, capsys, mark):
    inside = tmp_path / "run" / "more" / "x.yaml"
    inside.parent.mkdir(parents=True)
    inside.write_text("task: evil_for_tests:TASK\n")
    name = mark if mark == "config.yaml" else "recipe.yaml"
    (tmp_path / "run" / mark).write_text("")
    (tmp_path / "run" / name).write_text("base: more/x.yaml\n")
    (tmp_path / "mine.yaml").write_text(f"base: run/{name}\n")
    for recipe in (tmp_path / "run" / name, tmp_path / "mine.yaml"):
        assert main(["grpo", str(recipe), "--out", str(tmp_path / "new")]) == 2
        assert "--trust" in capsys.readouterr().err
    (tmp_path / "run" / name).write_text(f"out: {tmp_path / 'elsewhere'}\n")
    assert main(["grpo", str(tmp_path / "run" / name)]) == 2
    assert "out: " in capsys.readouterr().err
    assert not marker.exists()


def test_a_recipe_is_the_user_s_word_and_can_t_say_trust(tmp_path, marker, capsys):
    (tmp_path / "mine.yaml").write_text("task: evil_for_tests:TASK\n")
    assert main(["grpo", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert marker.exists()
    (tmp_path / "other.yaml").write_text("trust: true\n")
    assert main(["grpo", str(tmp_path / "other.yaml"), "--out", str(tmp_path / "new")]) == 2
    assert "use --trust on the command line" in capsys.readouterr().err


REJECTS = [
    ({"task": "evil_for_tests:TASK"}, {}),
    ({"task": "gsm8k"}, {"math": {"use": "evil_for_tests:verify"}}),
    ({"task": "gsm8k"}, {"format": {"use": "evil_for_tests:verify"}}),
    ({"task": "gsm8k"}, {"code": {"checkers": ["evil_for_tests:check"]}}),
]


@pytest.mark.parametrize(("config", "options"), REJECTS)
def test_a_run_that_is_curated_names_what_ships(tmp_path, marker, capsys, config, options):
    path = run_dir(tmp_path / "run", about={"formula": "math", "options": options}, **config)
    assert main(["reject", "--rollouts", str(path), "--out", str(tmp_path / "set"), "--quiet"]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not marker.exists()


@pytest.mark.parametrize(
    "config",
    [
        {"filters": ["evil_for_tests:keep"]},
        {"correct": "evil_for_tests:verify"},
        {"filters": ["code:isolation=rlimit-only"]},
    ],
)
def test_a_set_that_goes_on_names_what_ships(tmp_path, marker, capsys, config):
    made = run_dir(tmp_path / "run")
    path = tmp_path / "set"
    path.mkdir()
    (path / "config.yaml").write_text(yaml.safe_dump({"rollouts": str(made), **config}))
    assert main(["reject", "--resume", "--out", str(path)]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not marker.exists()
