"""The vLLM engine in this process: the contract, and each way in which its weights can silently be others.

One engine for the whole file: starting one costs seconds.
"""

import json
import warnings

import pytest
import torch
from engine_contract import CONTRACT, Case, closing_ends_a_stream_under_way, load_nano

from r1lite.cli import main
from r1lite.config import GRPOConfig
from r1lite.model.policy import Policy
from r1lite.nano import nano_path
from r1lite.rollout import EngineError, Sampling
from r1lite.rollout.build import Request, start
from r1lite.rollout.canary import Canary
from r1lite.rollout.proof import WeightProof
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_calls import Calls
from r1lite.rollout.vllm_support import installed

pytestmark = [
    pytest.mark.skipif(installed() is None, reason="vLLM is not installed"),
    pytest.mark.filterwarnings("default"),  # vLLM's own
]
LONG = "Tom has 3 apples and buys 4 more. " * 24  # more than a block of the prefix cache, 128 tokens on a CPU


@pytest.fixture(scope="module")
def case():
    model, tokenizer = load_nano()
    config = GRPOConfig(engine="vllm", device="cpu", threads=1, rollout_rows=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = start(Request(config, str(nano_path()), model, tokenizer, torch.float32, 1024))
    assert started.line.endswith("in this process")
    assert started.reproducible == "yes"
    yield Case(started.engine, model, tokenizer)
    started.engine.close()


@pytest.fixture
def trusted(case):
    """The engine behind its canary, its weights pushed; afterwards everything is mended."""

    def made(temperature=1.0, **settings):
        policy = Policy(case.model, pad_id=0, temperature=temperature)
        canary = Canary(policy, tokens=12, seed=0, stop_text=None, tolerance=None, **settings)
        engine = TrustedEngine(case.engine, canary, lambda: case.model.state_dict().items(), pad_id=0)
        generate(case, engine, temperature)
        return engine

    yield made
    case.push()


def generate(case, engine, temperature=1.0):
    prompts = [case.tokenizer(text)["input_ids"] for text in (LONG, LONG + "Why?")]
    return engine.generate(prompts, [[1], [2]], Sampling(temperature, 8))


def change(case, seed=0):
    """The trainer's weights after a step, in every layer."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in case.model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))


@pytest.mark.parametrize(
    "check", [c for c in CONTRACT if c is not closing_ends_a_stream_under_way], ids=lambda check: check.__name__
)
def test_contract(check, case):
    check(case)


def test_a_sync_is_checked_once_and_measured(case, trusted):
    engine = trusted()
    change(case)
    engine.offer(lambda: case.model.state_dict().items(), version=1)
    generate(case, engine)
    metrics = engine.take_metrics()
    assert metrics["canary_logprob_max"] < 1e-4
    assert metrics["sync_s"] > 0
    generate(case, engine)
    assert engine.take_metrics() == {}


def stale(pattern):
    """Weights without those that match, as a transfer would lose them."""
    return lambda weights: [(name, weight) for name, weight in weights.items() if pattern not in name]


@pytest.mark.parametrize(
    ("lost", "named"),
    [
        ("lm_head", "the weights lm_head.weight"),  # tied: the stream of named_parameters() lacks it
        (".layers.2.", "the weights model.layers.2"),
        ("model.norm", "the weights model.norm.weight"),
    ],
)
def test_lost_weights_stop_the_run_and_are_named(case, trusted, lost, named):
    engine = trusted()
    change(case)
    engine.offer(lambda: stale(lost)(dict(case.model.state_dict())), version=1)
    if lost == "lm_head" and not installed().knows_weight_versions:  # the older vLLM keeps a tied head as one weight
        generate(case, engine)
        assert engine.take_metrics()["canary_logprob_max"] < 1e-4
        return
    with pytest.raises(EngineError, match="does not sample from the trainer's weights of version 1") as caught:
        generate(case, engine)
    assert f"What differs: {named}:" in str(caught.value)


@pytest.mark.skipif(installed() is None or not installed().stamps_completions, reason="this vLLM tells no digests")
def test_a_layer_that_is_lost_by_a_hair_is_named_by_its_bytes(case):
    model = case.model
    engine = TrustedEngine(
        case.engine, None, lambda: model.state_dict().items(), pad_id=0, proof=WeightProof(torch.float32)
    )
    engine.push()
    proven = engine.take_metrics()["proven_weights"]
    assert proven >= 10  # the CPU backend packs linear layers: norms, biases and the embedding are left
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + 1e-6)
    engine.offer(lambda: model.state_dict().items(), version=1)
    engine.push()
    assert engine.take_metrics()["proven_weights"] == proven
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + 1e-6)
    engine.offer(lambda: stale(".layers.2.")(dict(model.state_dict())), version=2)
    engine.proof, whole = Whole(engine.proof, model), engine.proof
    with pytest.raises(EngineError, match=r"version 2: model\.layers\.2\..* have different bytes"):
        engine.push()
    engine.proof = whole
    case.push()


class Whole:
    """A proof against all weights of the model, though only a part of them was sent."""

    def __init__(self, proof, model):
        self.proof, self.model = proof, model

    def check(self, held, weights, **more):
        return self.proof.check(held, self.model.state_dict().items(), **more)


def test_a_kept_prefix_cache_stops_the_run_and_is_named(case, trusted, monkeypatch):
    engine = trusted()
    change(case)

    def without_reset(self, llm, weights, version):
        llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(weights)})
        if hasattr(llm, "update_weight_version"):
            llm.update_weight_version(version)

    monkeypatch.setattr(type(case.engine._calls), "load", without_reset)
    engine.offer(lambda: case.model.state_dict().items(), version=1)
    with pytest.raises(EngineError, match="What differs: the prefix cache"):
        generate(case, engine)


def test_a_wrong_temperature_stops_the_run_and_is_named(case, trusted, monkeypatch):
    engine = trusted(temperature=0.7)
    add = type(case.engine)._add
    hot = Sampling(1.0, 12)
    monkeypatch.setattr(type(case.engine), "_add", lambda *arguments: add(*arguments[:-1], hot))
    engine.offer(lambda: case.model.state_dict().items(), version=1)
    with pytest.raises(EngineError, match=r"the temperature: the engine's values are those of 1, not of 0\.7"):
        generate(case, engine, 0.7)


def test_an_engine_that_slept_samples_nothing_before_it_has_weights(case, trusted, monkeypatch):
    import dataclasses

    engine = trusted()
    wakes = []
    llm = case.engine._llm
    monkeypatch.setattr(case.engine, "start", dataclasses.replace(case.engine.start, sleeps=True))
    monkeypatch.setattr(llm, "sleep", lambda level: wakes.append(f"sleep {level}"))
    monkeypatch.setattr(llm, "wake_up", lambda tags: wakes.append(*tags))
    monkeypatch.setattr(llm.llm_engine, "is_sleeping", lambda: wakes[-1].startswith("sleep"))
    engine.sleep()
    with pytest.raises(EngineError, match="asleep and holds no weights"):
        generate(case, engine)
    engine.offer(lambda: case.model.state_dict().items(), version=1)
    generate(case, engine)
    assert wakes == ["sleep 2", "weights", "kv_cache"]


def test_a_sleep_that_lost_the_weights_stops_the_run(case, trusted, monkeypatch):
    """What level 2 does: the memory comes back, its contents don't, and here nobody sends them."""
    engine, load = trusted(), Calls.load
    monkeypatch.setattr(type(case.engine._calls), "load", lambda self, llm, weights, version: None)
    for name in ("_label", "policy_version"):
        monkeypatch.setattr(case.engine, name, getattr(case.engine, name))
    zeros = {name: torch.zeros_like(weight) for name, weight in case.model.state_dict().items()}
    load(case.engine._calls, case.engine._llm, zeros.items(), "")
    monkeypatch.setattr(type(case.engine._calls), "check_version", lambda self, llm, outputs, version: None)
    engine.offer(lambda: case.model.state_dict().items(), version=1)
    with pytest.raises(EngineError, match="What differs: all weights or the model itself"):
        generate(case, engine)


def test_a_version_that_vllm_does_not_hold_is_noticed(case):
    if not installed().knows_weight_versions:
        pytest.skip("this vLLM does not name its weights")
    case.push()
    case.engine._label = "r1lite-other"
    with pytest.raises(EngineError, match=r"sampled from weights \['r1lite-"):
        case.generate(Sampling(1.0, 4))
    case.push()


def test_a_failure_within_vllm_is_one_line(case, monkeypatch):
    def broken():
        raise RuntimeError("the engine core died\nmore")

    with monkeypatch.context() as patch:
        patch.setattr(case.engine._llm.llm_engine, "step", broken)
        with pytest.raises(EngineError, match=r"vLLM failed while sampling: RuntimeError: the engine core died\. Cont"):
            case.generate(Sampling(1.0, 4))
    case.generate(Sampling(1.0, 4))


def test_closing(case):
    closing_ends_a_stream_under_way(case)


FLAGS = [
    *("grpo", "--engine", "vllm", "--model", "nano", "--threads", "1", "--prompts-per-step", "4", "--group-size", "4"),
    *(
        "--eval-problems",
        "4",
        "--eval-sample-problems",
        "2",
        "--eval-samples",
        "2",
        "--rollout-rows",
        "16",
        "--no-report",
        "--quiet",
    ),
]


def test_a_run_says_what_it_did_and_resumes(few_problems, tmp_path):
    out = tmp_path / "run"
    assert main([*FLAGS, "--source", str(few_problems), "--steps", "2", "--out", str(out)]) == 0
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for record in records:
        assert record["canary_logprob_max"] < 1e-4 or record["step"] == 1
        assert record["mismatch_logprob_max"] < 1e-3
        assert record["mismatch_kl"] < 1e-6
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["engine"], summary["engine_version"]) == ("vllm", installed().version)
    assert "importance: token" in (out / "config.yaml").read_text()
    assert main(["grpo", "--resume", "--out", str(out), "--steps", "3", "--quiet"]) == 0
    assert json.loads((out / "summary.json").read_text())["steps"] == 3
