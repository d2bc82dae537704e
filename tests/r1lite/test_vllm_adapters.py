"""vLLM with an adapter: it alone goes over, and each way in which another could be sampled from is seen."""

import json
import shutil
import warnings

import pytest
import torch
from engine_contract import CONTRACT, Case, closing_ends_a_stream_under_way, load_nano
from servers_for_tests import Running, free_port

from r1lite.cli import main
from r1lite.config import GRPOConfig
from r1lite.model.lora import Adapter, adapter_of, adapter_state, add_adapter, merged_weights
from r1lite.model.policy import Policy
from r1lite.nano import nano_path
from r1lite.rollout import AdapterRefusedError, EngineError, Sampling, eos_ids
from r1lite.rollout.build import Request, start
from r1lite.rollout.canary import Canary
from r1lite.rollout.client import Unreachable
from r1lite.rollout.proof import WeightProof
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_server import vllm_fleet
from r1lite.rollout.vllm_support import installed, no_adapters

pytest.importorskip("peft")
pytestmark = [
    pytest.mark.skipif(installed() is None or bool(no_adapters(installed(), 4)), reason="no vLLM with adapters"),
    pytest.mark.filterwarnings("default"),  # vLLM's own
]
LONG = "Tom has 3 apples and buys 4 more. " * 24  # more than a block of the prefix cache, 128 tokens on a CPU


class Adapted(Case):
    """The contract with an adapter, and weights below it that a test may have changed."""

    def push(self):
        self.version += 1
        self.engine.load_adapter(adapter_of(self.model), version=self.version, base_too=True)


@pytest.fixture(scope="module")
def case():
    model, tokenizer = load_nano()
    config = GRPOConfig(engine="vllm", device="cpu", threads=1, rollout_rows=16, lora_rank=4)
    add_adapter(model, config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = start(Request(config, str(nano_path()), model, tokenizer, torch.float32, 1024))
    assert started.engine.no_adapters == ""
    change(model)
    case = Adapted(started.engine, model, tokenizer)
    case.push()
    yield case
    started.engine.close()


@pytest.fixture
def trusted(case):
    """The engine behind its canary and the proof of its bytes, with the adapter pushed."""
    said = []
    policy = Policy(case.model, pad_id=0)
    engine = TrustedEngine(
        case.engine,
        Canary(policy, tokens=12, seed=0, stop_text=None, tolerance=None),
        lambda: merged_weights(case.model),
        pad_id=0,
        proof=WeightProof(torch.float32),
        adapter=lambda: adapter_of(case.model),
        say=said.append,
    )
    generate(case, engine)
    engine.said = said
    yield engine
    case.push()


def generate(case, engine):
    prompts = [case.tokenizer(text)["input_ids"] for text in (LONG, LONG + "Why?")]
    return engine.generate(prompts, [[1], [2]], Sampling(1.0, 8))


def change(model, seed=0):
    """A step of the adapter's, in every layer."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in adapter_state(model).values():
            value.add_(0.05 * torch.randn(value.shape, generator=generator))


@pytest.mark.parametrize(
    "check", [c for c in CONTRACT if c is not closing_ends_a_stream_under_way], ids=lambda check: check.__name__
)
def test_contract(check, case):
    check(case)


def test_several_updates_agree_and_send_the_adapter_alone(case, trusted):
    first = trusted.take_metrics()
    complete = sum(weight.nbytes for _, weight in merged_weights(case.model)) / 1e6
    small = sum(value.nbytes for value in adapter_state(case.model).values()) / 1e6
    loads = case.engine.base_loads
    for version in range(1, 5):
        change(case.model, version)
        trusted.offer(lambda: merged_weights(case.model), version=version)
        groups = generate(case, trusted)
        metrics = trusted.take_metrics()
        assert groups[0][0].policy_version == version
        assert metrics["canary_logprob_max"] < 1e-4
        assert metrics["sync_mb"] == pytest.approx(small)
        assert small < complete / 4
        assert metrics["proven_weights"] >= len(adapter_state(case.model)) + 10  # with norms and the embedding
        assert metrics["proven_weights"] == first["proven_weights"]
    assert (case.engine.base_loads, trusted.said) == (loads, [])
    assert len(list(case.engine._files.folder.glob("[!.]*"))) == 1, "older adapters are removed"


def test_merged_weights_after_an_adapter_come_without_it(case, trusted):
    plain, _ = load_nano()
    case.engine.load_weights(plain.state_dict().items(), version=7)
    case.push()
    before = case.generate(Sampling(1.0, 8))
    case.engine.load_weights(merged_weights(case.model), version=8)
    after = case.generate(Sampling(1.0, 8))
    for one, other in zip(before, after, strict=True):
        assert [c.token_ids for c in one] == [c.token_ids for c in other]


@pytest.mark.parametrize("lost", ["lora_A", "layers.2.self_attn.q_proj.lora_B"])
def test_an_adapter_that_is_lost_by_a_hair_is_named_by_its_values(case, trusted, lost, monkeypatch):
    calls = type(case.engine._calls)
    held = calls.held_adapter

    def other(self, llm, request):
        found = held(self, llm, request)
        name = next(name for name in found if lost in name)
        return {**found, name: found[name] * (1 + 1e-6)}

    monkeypatch.setattr(calls, "held_adapter", other)
    change(case.model)
    trusted.offer(lambda: merged_weights(case.model), version=1)
    with pytest.raises(EngineError, match=rf"adapter of version 1: .*{lost}.* have different values"):
        trusted.push()


def test_what_stays_behind_stops_the_run_and_is_named(case, trusted, monkeypatch):
    trusted.proof = None
    files = type(case.engine._files)
    write, stale = files.write_adapter, []

    def old(self, adapter, name):
        folder = write(self, adapter, name)
        file = folder / "adapter_model.safetensors"
        stale.append(file.read_bytes())
        if len(stale) == 2:
            file.write_bytes(stale[0])
        return folder

    monkeypatch.setattr(files, "write_adapter", old)
    for version in (1, 2):
        change(case.model, version)
        trusted.offer(lambda: merged_weights(case.model), version=version)
        if version == 1:
            generate(case, trusted)
        else:
            with pytest.raises(EngineError, match="What differs: the adapter: sent again, both agree"):
                generate(case, trusted)


def test_other_weights_below_stop_the_run_and_are_named(case, trusted):
    trusted.proof = None
    case.engine._calls.load(case.engine._llm, [(n, w * 1.05) for n, w in adapter_of(case.model).base()], "")
    case.engine._llm.update_weight_version(case.engine._label)
    trusted.offer(lambda: merged_weights(case.model), version=1)
    with pytest.raises(EngineError, match="What differs: the base weights: sent again, both agree"):
        generate(case, trusted)


def test_a_request_without_the_adapter_is_noticed(case, trusted, monkeypatch):
    add = type(case.engine)._add

    def bare(self, *arguments):
        adapter, self._adapter = self._adapter, None
        add(self, *arguments)
        self._adapter = adapter

    monkeypatch.setattr(type(case.engine), "_add", bare)
    with pytest.raises(EngineError, match="sampled with the adapter None, not with LoRARequest"):
        generate(case, trusted)


def test_an_adapter_of_a_greater_rank_is_merged_with_a_word_and_later_ones_are_refused(case, trusted):
    model, _ = load_nano()
    add_adapter(model, GRPOConfig(lora_rank=16))
    said = []
    engine = TrustedEngine(
        *(case.engine, Canary(Policy(model, pad_id=0), tokens=4, seed=0, stop_text=None, tolerance=None)),
        *(lambda: merged_weights(model),),
        pad_id=0,
        adapter=lambda: adapter_of(model),
        say=said.append,
    )
    generate(case, engine)
    assert len(said) == 1
    assert "merged into them: vLLM: LoRA rank 16 is greater than max_lora_rank 8" in said[0]
    engine.offer(lambda: merged_weights(model), version=1)
    generate(case, engine)
    assert len(said) == 1
    engine._merges = False  # the ones before were taken
    engine.offer(lambda: merged_weights(model), version=2)
    with pytest.raises(EngineError, match="LoRA rank 16"):
        generate(case, engine)


def test_asleep_the_weights_below_are_kept(case, trusted, monkeypatch):
    import dataclasses

    calls = []
    monkeypatch.setattr(case.engine, "start", dataclasses.replace(case.engine.start, sleeps=True))
    llm = case.engine._llm
    monkeypatch.setattr(llm, "sleep", lambda level: calls.append(f"sleep {level}"))
    monkeypatch.setattr(llm, "wake_up", lambda tags: calls.append(*tags))
    monkeypatch.setattr(llm.llm_engine, "is_sleeping", lambda: calls[-1].startswith("sleep"))
    loads = case.engine.base_loads
    trusted.sleep()
    with pytest.raises(EngineError, match="asleep"):
        generate(case, trusted)
    trusted.offer(lambda: merged_weights(case.model), version=1)
    generate(case, trusted)
    assert calls == ["sleep 1", "weights", "kv_cache"]
    assert case.engine.base_loads == loads


def test_closing(case):
    folder = case.engine._files.folder
    closing_ends_a_stream_under_way(case)
    assert not folder.exists()


def test_a_server_takes_adapters_and_samples_from_nothing_else(tmp_path, forks):
    model, tokenizer = load_nano()
    add_adapter(model, GRPOConfig(lora_rank=4))
    server = Running(forks, tmp_path, free_port(), "--lora-rank", "4")
    try:
        fleet = vllm_fleet(
            [server.url],
            tokenizer,
            eos_ids(model, tokenizer),
            dtype=torch.float32,
            context=1024,
            vocabulary=model.config.vocab_size,
            timeout_s=240.0,
            start_wait_s=500.0,
            lora_rank=4,
        )
        engine = TrustedEngine(
            *(fleet, Canary(Policy(model, pad_id=0), tokens=12, seed=0, stop_text=None, tolerance=None)),
            *(lambda: merged_weights(model),),
            pad_id=0,
            proof=WeightProof(torch.float32),
            adapter=lambda: adapter_of(model),
            say=pytest.fail,
        )
        small = sum(value.nbytes for value in adapter_state(model).values()) / 1e6
        prompts = [tokenizer(text)["input_ids"] for text in (LONG, LONG + "Why?")]
        for version in range(4):
            change(model, version)
            engine.offer(lambda: merged_weights(model), version=version)
            engine.generate(prompts, [[1], [2]], Sampling(1.0, 8))
            metrics = engine.take_metrics()
            assert metrics["canary_logprob_max"] < 1e-4
            if version:
                assert metrics["sync_mb"] == pytest.approx(small)
        assert fleet.base_loads == 1
        (own,) = fleet.servers
        assert len(own._adapters()) == 1
        own.client.post("v1/unload_lora_adapter", {"lora_name": own._adapter}, timeout_s=60)
        with pytest.raises(Unreachable, match="does not exist"):  # not a completion of the weights below it
            own.complete(prompts[0], [1], Sampling(1.0, 4))
        engine.generate(prompts, [[1], [2]], Sampling(1.0, 8))  # it is given the adapter again
        other = Adapter(4, 32.0, NoSuchLayer(model))
        with pytest.raises(AdapterRefusedError, match="no_such_layer"):
            fleet.load_adapter(other, version=9)
        fleet.load_adapter(adapter_of(model), version=10)
        fleet.generate(prompts, [[1], [2]], Sampling(1.0, 8))
        fleet.close()
    finally:
        server.kill()


class NoSuchLayer(torch.nn.Module):
    """A model with an adapter on a layer that vLLM does not know."""

    def __init__(self, model):
        super().__init__()
        self.no_such_layer = next(module for _, module in model.named_modules() if hasattr(module, "lora_A"))


def test_a_run_goes_on_exactly(few_problems, tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    flags = [
        *("grpo", "--engine", "vllm", "--model", "nano", "--source", str(few_problems), "--threads", "1"),
        *("--lr", "1e-3", "--lora-rank", "4", "--prompts-per-step", "4", "--group-size", "4", "--eval-problems", "4"),
        *("--eval-sample-problems", "2", "--eval-samples", "2", "--score-workers", "0", "--rollout-rows", "16"),
        *("--steps", "3", "--save-every", "1", "--no-report", "--quiet", "--out", str(whole)),
    ]
    assert main(flags) == 0
    records = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert all(record["mismatch_logprob_max"] < 1e-3 for record in records)
    assert 0 < records[-1]["sync_mb"] < 0.3
    shutil.copytree(whole, part)
    shutil.rmtree(part / "checkpoints" / "step-000003")
    last = ("rollouts/step-000003.jsonl.gz", "checkpoints/step-000003/model.safetensors")
    (part / last[0]).unlink()
    assert main(["grpo", "--resume", "--out", str(part), "--quiet"]) == 0
    for name in last:
        assert (part / name).read_bytes() == (whole / name).read_bytes()
