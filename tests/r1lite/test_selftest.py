"""`r1lite selftest`: what works is said to work, what doesn't is found, and no check can stop the others."""

import copy
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from r1lite.cli import main
from r1lite.config import GRPOConfig
from r1lite.errors import UserError
from r1lite.rollout import EngineError
from r1lite.rollout.canary import Canary
from r1lite.rollout.hf import HFEngine
from r1lite.rollout.layout import unchanged
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_engine import VLLMEngine
from r1lite.rollout.weight_files import WeightFiles
from r1lite.selftest import Options, command
from r1lite.selftest import engine as engines
from r1lite.selftest.groups import Group, groups
from r1lite.selftest.subject import TOKENS, subject
from r1lite.training.machine import choose

OPTIONS = Options(device="cpu", threads=1)


def run(name, monkeypatch, timeout_s=120.0):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parent.parent))
    group = Group(name, f"selftest_groups_for_tests:{name}")
    return [(r.name, r.state, r.text) for r in command._run(group, OPTIONS, timeout_s)]


def test_a_group_whose_process_dies_is_said_to_have_failed(monkeypatch):
    assert run("dies", monkeypatch) == [
        ("first", "ok", "said before the end"),
        ("dies", "failed", "its process ended with signal 9: something broke"),
    ]


def test_a_group_that_hangs_is_ended(monkeypatch):
    first, last = run("hangs", monkeypatch, timeout_s=8.0)
    assert first[:2] == ("first", "ok")
    assert last[:2] == ("hangs", "failed")
    assert last[2].startswith("not finished after 8 s")


def test_what_libraries_print_is_no_result(monkeypatch):
    assert run("chatters", monkeypatch) == [("first", "ok", "nano")]


def test_a_refusal_is_a_result(monkeypatch):
    assert run("refuses", monkeypatch)[-1] == ("refuses", "failed", "no such model")


def test_problems_fit_the_models_context(tiny_path, tmp_path):
    shutil.copytree(tiny_path, tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": 130}))
    asked = Options(model=str(tmp_path / "model"), template="short", device="cpu", threads=1)
    assert max(len(prompt.token_ids) for prompt in subject(asked, "--engine", "transformers").prompts) <= 130 - TOKENS


def test_the_verdicts_of_this_machine_as_lines_and_json(tmp_path, capsys):
    out = tmp_path / "selftest.json"
    assert main(["selftest", "--only", "verdicts", "--out", str(out)]) == 0
    kept = json.loads(out.read_text())
    assert [result["name"] for result in kept["results"]] == ["maths and format", "sandbox"]
    assert kept["results"][0]["figures"]["wrong"] == 0
    assert "maths and format" in capsys.readouterr().out


def test_unknown_groups_are_refused(capsys):
    assert main(["selftest", "--only", "verdict"]) == 2
    assert "known: machine, verdicts, model, transformers float32" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("--timeout-s", "nan"), ("--timeout-s", "inf"), ("--out", "no/x.json")])
def test_options_that_can_not_be_used_are_refused_at_once(option, value, capsys):
    assert main(["selftest", option, value]) == 2
    assert f"{option} " in capsys.readouterr().err


def test_a_model_that_is_nowhere_is_refused_at_once(capsys):
    assert main(["selftest", "--model", "nothere"]) == 2
    assert "--model nothere: no such folder here" in capsys.readouterr().err


def test_every_group_can_be_imported():
    for group in groups(["transformers", "vllm", "vllm-server"], ["float32", "bfloat16"]):
        module, _, function = group.target.partition(":")
        assert callable(getattr(__import__(module, fromlist=[function]), function)), group


def test_the_engine_of_the_trainer_passes():
    results = list(engines.check(OPTIONS, "transformers", "float32"))
    assert [(r.name.partition(": ")[2], r.state) for r in results] == [
        ("sampling", "ok"),
        ("log-probabilities", "ok"),
        ("new weights", "ok"),
    ]
    assert results[1].figures["largest_nats"] < 1e-3
    assert results[0].figures["same_again"]


class Apart(HFEngine):
    """An engine with weights of its own, that takes those whose name `takes` accepts."""

    shares_weights = False

    def __init__(self, model, tokenizer, takes):
        super().__init__(copy.deepcopy(model), tokenizer)
        self.takes = takes

    def load_weights(self, weights, *, version):
        self.model.load_state_dict({n: w for n, w in weights if self.takes(n)}, strict=False)
        self.policy_version = version


@pytest.fixture(scope="module")
def tested():
    return subject(OPTIONS, "--engine", "transformers", "--dtype", "float32")


def trusted(tested, takes, *, canary=True):
    own = copy.deepcopy(tested.model)
    fresh = type(tested)(tested.config, own, tested.tokenizer, tested.prompts)
    from r1lite.model.policy import Policy

    check = Canary(Policy(own, pad_id=0, temperature=1.0), tokens=12, seed=0, stop_text=None, tolerance=None)
    engine = Apart(own, tested.tokenizer, takes)
    return fresh, TrustedEngine(engine, check if canary else None, lambda: own.state_dict().items(), pad_id=0)


def test_a_lost_layer_is_noticed(tested):
    results = list(engines._weights("apart float32", *trusted(tested, lambda name: True)))
    assert [(r.name, r.state) for r in results] == [
        ("apart float32: new weights", "ok"),
        ("apart float32: a lost layer", "ok"),
    ]
    assert results[0].figures["bytes"] == 4 * sum(w.numel() for w in tested.model.state_dict().values())


def test_an_engine_that_takes_no_weights_fails(tested):
    (result,) = engines._weights("deaf float32", *trusted(tested, lambda name: False))
    assert result.state == "failed"
    assert "does not sample from the trainer's weights" in result.text


def test_an_engine_that_nothing_watches_fails(tested):
    results = list(engines._weights("blind float32", *trusted(tested, lambda name: True, canary=False)))
    assert results[-1].state == "failed"
    assert "no check noticed" in results[-1].text


@pytest.mark.slow
def test_training_passes():
    from r1lite.selftest.training import check

    states = {r.name.partition(": ")[2]: (r.state, r.text) for r in check(OPTIONS, "float32")}
    assert [states[name][0] for name in ("steps", "memory", "resume")] == ["ok", "ok", "ok"], states


# -- what it guards, without a GPU


def test_an_engine_in_this_process_takes_the_first_gpu_alone(monkeypatch):
    monkeypatch.setattr("r1lite.training.machine.choose_device", lambda asked: (asked, {}))
    with pytest.raises(UserError, match="CUDA_VISIBLE_DEVICES=1"):
        choose(GRPOConfig(engine="vllm", device="cuda:1", model="nano"))
    monkeypatch.setattr("r1lite.training.machine.installed", lambda: SimpleNamespace(tested=True, version="0.32.0"))
    chosen = choose(GRPOConfig(device="cuda:1", model="nano"))
    assert chosen.values["engine"] == "transformers"
    assert "first visible GPU" in chosen.notes["engine"]
    assert choose(GRPOConfig(engine="vllm", device="cuda:0", model="nano")).values["engine"] == "vllm"


def test_weights_need_room_for_two_versions(tmp_path, monkeypatch):
    free = 64 << 20  # what a container is given
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=free))
    WeightFiles(tmp_path, torch.bfloat16, parameters=16 << 20).close()
    with pytest.raises(UserError, match=r"need 0\.1 GiB, and 0\.1 GiB are free.*--engine-weights-dir.*--shm-size"):
        WeightFiles(tmp_path, torch.bfloat16, parameters=(16 << 20) + 1)
    assert not list(tmp_path.iterdir())


def half_awake(sleeping):
    """A vLLM engine whose `is_sleeping` says what it likes."""
    engine = VLLMEngine.__new__(VLLMEngine)
    core = SimpleNamespace(is_sleeping=lambda: sleeping)
    engine._llm = SimpleNamespace(
        llm_engine=core, sleep=lambda level: None, wake_up=lambda tags: None, collective_rpc=lambda *a, **k: None
    )
    engine._calls = SimpleNamespace(load=lambda llm, weights, label: list(weights))
    engine._layout = unchanged
    engine.start = SimpleNamespace(sleeps=True, dtype=torch.float32)
    engine._asleep, engine._adapter, engine._has_base, engine.bytes_given = False, None, False, 0
    return engine


def test_an_engine_that_does_not_sleep_stops_the_run():
    with pytest.raises(EngineError, match="did not go to sleep"):
        half_awake(False).sleep()


def test_an_engine_that_is_half_awake_stops_the_run():
    engine = half_awake(True)
    engine.sleep()
    with pytest.raises(EngineError, match="woke up only partly"):
        engine.load_weights([("a", torch.zeros(1))], version=1)
    assert engine._asleep


def test_torchs_spare_memory_is_freed_before_an_engine_wakes(monkeypatch):
    done = []
    monkeypatch.setattr("r1lite.rollout.vllm_engine.free_what_is_unused", lambda: done.append("free"))
    engine = half_awake(True)
    engine.sleep()
    engine._llm.wake_up = lambda tags: done.append(*tags)
    engine._llm.llm_engine.is_sleeping = lambda: False
    engine._calls.load = lambda *_: done.append("load")
    engine.load_weights([], version=1)
    engine.load_weights([], version=2)
    assert done == ["free", "weights", "load", "free", "kv_cache", "load"]


def test_memory_that_vllm_can_not_take_back_is_named():
    def wake_up(tags):
        raise RuntimeError("CUDA Error: out of memory at csrc/cumem_allocator.cpp:62")

    engine = half_awake(True)
    engine.sleep()
    engine._llm.wake_up = wake_up
    with pytest.raises(EngineError, match=r"vLLM ran out of memory while loading new weights.*--engine-memory"):
        engine.load_weights([], version=1)
