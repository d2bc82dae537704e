"""Servers with an adapter: requests name it, so one without it answers an error and never samples from another."""

import contextlib
import itertools

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from fleet_for_tests import DEADLY, LIGHT, FakeVLLM, checksum, sampled

from r1lite.config import GRPOConfig
from r1lite.model.lora import adapter_of, adapter_state, add_adapter, merged_weights
from r1lite.rollout import AdapterRefusedError, EngineError, Sampling
from r1lite.rollout.client import Unreachable
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_server import vllm_fleet
from r1lite.rollout.weight_files import WeightFiles

pytest.importorskip("peft")
PROMPTS = [[5, 6 + p] for p in range(4)]
SEEDS = [[10 * p, 10 * p + 1, 10 * p + 7] for p in range(4)]  # two requests a group
SAMPLING = Sampling(1.0, 6)
RANK = 4


@pytest.fixture(scope="module")
def begun():
    """A model with an adapter, and its weights."""
    model = make_tiny_model()
    add_adapter(model, GRPOConfig(lora_rank=RANK))
    return model, {name: value.clone() for name, value in model.state_dict().items()}


@pytest.fixture(scope="module")
def below(begun, tmp_path_factory):
    """Checksum of the weights below the adapter, which are the same throughout."""
    files = WeightFiles(tmp_path_factory.mktemp("below"), torch.float32)
    return checksum(files.write(adapter_of(begun[0]).base(), "below"))


@pytest.fixture
def model(begun):
    model, weights = begun
    model.load_state_dict(weights)
    torch.manual_seed(0)
    change(model)
    return model


def change(model):
    with torch.no_grad():
        for value in adapter_state(model).values():
            value.add_(0.1 * torch.randn(value.shape))


@pytest.fixture
def fakes():
    made = []

    def fake(**settings):
        made.append(FakeVLLM(**{"lora_rank": RANK, **settings}))
        return made[-1]

    yield fake
    for server in made:
        server.stop()


@pytest.fixture
def engine_of(tmp_path, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.servers._LOOK_EVERY_S", 0.05)
    monkeypatch.setattr("r1lite.rollout.servers._POLL_S", 0.02)
    made = []

    def engine(*servers, **settings):
        settings = {
            "timeout_s": 5.0,
            "start_wait_s": 5.0,
            "context": 100,
            "vocabulary": 48,
            "lora_rank": RANK,
        } | settings
        urls = [server.url for server in servers]
        made.append(
            vllm_fleet(urls, make_tiny_tokenizer(), [1], dtype=torch.float32, weights_dir=str(tmp_path), **settings)
        )
        return made[-1]

    yield engine
    for found in made:
        found.close()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("r1lite-weights")]


@pytest.fixture
def check(below, tmp_path):
    """Samples, and compares with what a server with exactly this adapter gives."""
    folder = tmp_path / "expected"
    folder.mkdir()

    def check(engine, model, version):
        files = WeightFiles(folder, torch.float32)
        held = below + checksum(files.write_adapter(adapter_of(model), "adapter"), "adapter_model.safetensors")
        files.close()
        found = engine.generate(PROMPTS, SEEDS, SAMPLING)
        for prompt, row, group in zip(PROMPTS, SEEDS, found, strict=True):
            expected = [sampled(held, prompt, seed, tokens=6, ends=[1]) for seed in row]
            assert [(list(c.token_ids), list(c.logprobs), c.finish_reason) for c in group] == expected
            assert {c.policy_version for c in group} == {version}

    return check


def test_the_adapter_alone_goes_over_after_the_first_time(fakes, engine_of, model, check):
    servers = [fakes(), fakes()]
    engine, given = engine_of(*servers), [0]
    for version in range(4):
        engine.load_adapter(adapter_of(model), version=version)
        given.append(engine.bytes_given)
        check(engine, model, version)
        for server in servers:
            assert len(server.adapters) == 1, "the ones before are unloaded"
        assert len([path for path in engine._files.folder.glob("[!.]*") if "below" not in path.name]) == 1
        change(model)
    small = sum(value.nbytes for value in adapter_state(model).values())
    assert [after - before for before, after in itertools.pairwise(given[1:])] == [small] * 3
    assert given[1] > small + sum(value.nbytes for _, value in adapter_of(model).base()) - 1
    assert engine.base_loads == 1
    assert all(server.calls.count("collective_rpc") == 1 for server in servers)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*LIGHT, *DEADLY])
@pytest.mark.parametrize("path", ["v1/completions", "v1/load_lora_adapter", "v1/unload_lora_adapter", "v1/models"])
def test_faults_change_no_completion(fault, path, fakes, engine_of, model, check):
    waiting = [None] * (1 if "lora" in path else 3) + [fault]
    plan = lambda asked: waiting.pop(0) if asked == path and waiting else None  # noqa: E731
    engine = engine_of(fakes(plan=plan), fakes())
    for version in range(4):
        engine.load_adapter(adapter_of(model), version=version)
        check(engine, model, version)
        change(model)
    assert not waiting


def test_a_server_that_lost_the_adapter_samples_from_nothing_else(fakes, engine_of, model, check):
    server = fakes()
    engine = engine_of(server)
    engine.load_adapter(adapter_of(model), version=1)
    (name,) = server.adapters
    server.adapters.clear()
    own = engine.servers[0]
    with pytest.raises(Unreachable, match="no such model"):
        own._complete([5], 1, 1, {"max_tokens": 2, "stop_token_ids": []}, {"stop", "length"})
    assert not own.has_adapter(name)
    check(engine, model, 1)  # it gets the adapter again
    assert list(server.adapters) == [name]


def test_an_answer_from_another_model_stops_the_run(fakes, engine_of, model, monkeypatch):
    server = fakes()
    engine = engine_of(server)
    engine.load_adapter(adapter_of(model), version=1)
    choices = server.choices
    server.choices = lambda body, *, cut: (200, choices(body, cut=cut)[1] | {"model": "policy"})
    with pytest.raises(EngineError, match="sampled from 'policy' instead of 'r1lite-"):
        engine.generate(PROMPTS, SEEDS, SAMPLING)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"lora_rank": 0}, r"status 404: .*`r1lite serve-engine` takes adapters with its --lora-rank"),
        ({"lora_rank": 2}, r"LoRA rank 4 is greater than max_lora_rank 2"),
    ],
)
def test_a_server_that_takes_no_such_adapter_gets_merged_weights_with_a_word(
    settings, why, fakes, engine_of, model, tmp_path
):
    servers, said = [fakes(), fakes(**settings)], []
    engine = engine_of(*servers)
    with pytest.raises(AdapterRefusedError, match=why):
        engine.load_adapter(adapter_of(model), version=0)
    trusted = TrustedEngine(
        *(engine, None, lambda: merged_weights(model)), pad_id=0, adapter=lambda: adapter_of(model), say=said.append
    )
    (tmp_path / "expected").mkdir()
    files = WeightFiles(tmp_path / "expected", torch.float32)
    for version in range(2):
        trusted.offer(lambda: merged_weights(model), version=version)
        group = trusted.generate(PROMPTS, SEEDS, SAMPLING)[0]
        held = checksum(files.write(merged_weights(model), "merged"))
        assert list(group[0].token_ids) == sampled(held, PROMPTS[0], SEEDS[0][0], tokens=6, ends=[1])[0]
        change(model)
    assert len(said) == 1
    assert "merged into them" in said[0]


def test_untested_versions_and_ranks_get_merged_weights(fakes, engine_of):
    assert "not tested with adapters" in engine_of(fakes(version="0.26.0")).no_adapters
    assert "at most rank 512" in engine_of(fakes(), lora_rank=600).no_adapters
    assert engine_of(fakes()).no_adapters == ""


def test_a_refusal_later_stops_the_run(fakes, engine_of, model):
    server = fakes()
    engine = engine_of(server)
    trusted = TrustedEngine(
        *(engine, None, lambda: merged_weights(model)), pad_id=0, adapter=lambda: adapter_of(model), say=pytest.fail
    )
    trusted.push()
    server.lora_rank = 2
    trusted.offer(lambda: merged_weights(model), version=1)
    with pytest.raises(EngineError, match="rank 4 is greater"):
        trusted.push()
    with contextlib.suppress(EngineError):
        trusted.close()
