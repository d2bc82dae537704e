"""Weights compared byte for byte: what an engine does not hold is named, however small the difference."""

import contextlib
import hashlib

import pytest
import torch
from conftest import make_tiny_tokenizer
from engine_contract import load_nano
from fleet_for_tests import FakeVLLM

from r1lite.rollout import EngineError
from r1lite.rollout.proof import WeightProof, digests
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_server import vllm_fleet

NOTHING = hashlib.sha256(b"").hexdigest()


@pytest.fixture
def weights():
    model, _ = load_nano()
    return {name: weight.clone() for name, weight in model.state_dict().items()}


def as_vllm(weights, dtype, *, prefix="dp0:pp0:pcp0:tp0:"):
    """The digests of an engine that holds these weights, put together here by hand."""
    held = dict(weights)
    for name in [name for name in held if "q_proj" in name]:
        parts = [held.pop(name.replace("q_proj", part)) for part in ("q_proj", "k_proj", "v_proj")]
        held[name.replace("q_proj", "qkv_proj")] = torch.cat(parts)
    for name in [name for name in held if "gate_proj" in name]:
        held[name.replace("gate_proj", "gate_up_proj")] = torch.cat(
            [held.pop(name), held.pop(name.replace("gate_proj", "up_proj"))]
        )
    held.pop("lm_head.weight", None)  # tied: vLLM lists it once
    return {
        prefix + name: hashlib.sha256(value.to(dtype).contiguous().view(-1).view(torch.uint8).numpy()).hexdigest()
        for name, value in held.items()
    }


def check(proof, held, weights, version=0):
    return proof.check(held, weights.items(), where="", version=version)


def changed(weights, factor):
    return {name: weight * factor for name, weight in weights.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_all_tensors_of_an_engine_with_the_same_weights_agree(weights, dtype):
    held = as_vllm(weights, dtype)
    assert check(WeightProof(dtype), held, weights) == len(held)
    backwards = dict(reversed(weights.items()))  # parts come in any order
    assert check(WeightProof(dtype), held, backwards) == len(held)


@pytest.mark.parametrize(("dtype", "factor"), [(torch.float32, 1 + 1e-6), (torch.bfloat16, 1.01)])
@pytest.mark.parametrize("lost", [".layers.2.", "embed_tokens", "layers.0.mlp.down_proj", "model.norm"])
def test_what_stays_behind_is_named(weights, dtype, factor, lost):
    proof = WeightProof(dtype)
    check(proof, as_vllm(weights, dtype), weights)
    newer = changed(weights, factor)
    partly = {name: weights[name] if lost in name else newer[name] for name in weights}
    with pytest.raises(EngineError, match="does not hold the trainer's weights of version 7") as caught:
        check(proof, as_vllm(partly, dtype), newer, version=7)
    assert lost.strip(".") in str(caught.value)
    assert check(proof, as_vllm(newer, dtype), newer) == len(as_vllm(newer, dtype))


def test_a_layer_lost_by_the_first_update_is_named_by_its_siblings(weights):
    newer = changed(weights, 1.5)
    partly = {name: weights[name] if ".layers.2." in name else newer[name] for name in weights}
    with pytest.raises(EngineError, match=r"model\.layers\.2\."):
        check(WeightProof(torch.float32), as_vllm(partly, torch.float32), newer)


def test_tensors_in_another_layout_are_left_out(weights):
    held = {
        name: NOTHING if "mlp" in name else digest for name, digest in as_vllm(weights, torch.float32).items()
    }  # packed away
    held["dp0:pp0:pcp0:tp0:model.rotary.cos_sin_cache"] = "of the engine alone"
    proof = WeightProof(torch.float32)
    assert check(proof, held, weights) == sum(digest != NOTHING for digest in held.values()) - 1
    assert check(WeightProof(torch.float32), {"dp0:x": "other"}, weights) == 0


def test_integers_keep_their_type():
    weights = {"steps": torch.arange(3), "a": torch.ones(2)}
    assert digests(weights.items(), torch.bfloat16) == {
        "steps": hashlib.sha256(torch.arange(3).numpy().tobytes()).hexdigest(),
        "a": hashlib.sha256(torch.ones(2).to(torch.bfloat16).view(torch.uint8).numpy()).hexdigest(),
    }


class Telling:
    """An engine that tells digests of what it was given."""

    shares_weights = runs_aside = False

    def __init__(self):
        self.asked = 0

    def load_weights(self, weights, *, version):
        self.weights = dict(weights)

    def weight_digests(self):
        self.asked += 1
        return [("", as_vllm(self.weights, torch.float32))]


def test_the_first_push_and_then_every_nth_is_proven(weights):
    engine = Telling()
    trusted = TrustedEngine(engine, None, weights.items, pad_id=0, proof=WeightProof(torch.float32), prove_every=3)
    asked = []
    for version in range(1, 8):
        trusted.push()
        metrics = trusted.take_metrics()
        asked.append(metrics["proven_weights"] is not None)
        assert metrics["proof_s"] >= 0
        trusted.offer(weights.items, version=version)
    assert asked == [True, False, False, True, False, False, True]
    assert engine.asked == 3


def test_weights_that_failed_the_comparison_are_offered_again(weights):
    engine = Telling()
    trusted = TrustedEngine(engine, None, weights.items, pad_id=0, proof=WeightProof(torch.float32))
    trusted.push()
    newer = changed(weights, 2.0)
    took = engine.load_weights
    engine.load_weights = lambda weights, *, version: None
    trusted.offer(newer.items, version=1)
    with pytest.raises(EngineError):
        trusted.push()
    engine.load_weights = took
    trusted.push()
    assert engine.weights["model.norm.weight"].equal(newer["model.norm.weight"])


@contextlib.contextmanager
def two_servers(folder, dtype):
    """(servers, the engine over them, what it says)"""
    servers, said = [FakeVLLM(), FakeVLLM()], []
    engine = vllm_fleet(
        [server.url for server in servers],
        make_tiny_tokenizer(),
        [1],
        dtype=dtype,
        context=100,
        vocabulary=48,
        timeout_s=5.0,
        start_wait_s=5.0,
        weights_dir=str(folder),
        say=said.append,
    )
    try:
        yield servers, engine, said
    finally:
        engine.close()
        for server in servers:
            server.stop()


def test_servers_tell_digests_of_what_they_hold(tmp_path):
    with two_servers(tmp_path, torch.bfloat16) as (servers, engine, _):
        weights = {"a.0.x": torch.arange(6.0), "b": torch.ones(2, 2)}
        engine.load_weights(weights.items(), version=1)
        engine.generate([[5, 6]], [[1]], sampling())
        told = engine.weight_digests()
        assert [place for place, _ in told] == [server.url for server in servers]
        proof = WeightProof(torch.bfloat16)
        assert [check(proof, held, weights) for _, held in told] == [2, 2]
        with pytest.raises(EngineError, match=r"at .*: b have different bytes"):
            proof.check(told[1][1], {**weights, "b": torch.zeros(2, 2)}.items(), where=" at B", version=1)
        servers[0].plan = lambda path: "say 404" if path == "weight_checker" else None
        assert [place for place, _ in engine.weight_digests()] == [servers[1].url]


@pytest.mark.parametrize("path", ["pause", "collective_rpc", "update_weight_version", "resume"])
@pytest.mark.parametrize("fault", ["503", "reset"])
def test_a_server_that_missed_an_update_gets_it_before_it_is_compared(tmp_path, path, fault):
    """Otherwise one failed call during an update would end the run as one with wrong weights."""
    faults = [fault]
    with two_servers(tmp_path, torch.float32) as (servers, engine, said):
        proof, weights = WeightProof(torch.float32), {"a": torch.arange(6.0), "b": torch.ones(2, 2)}
        engine.load_weights(weights.items(), version=1)
        assert [check(proof, held, weights) for _, held in engine.weight_digests()] == [2, 2]
        servers[1].plan = lambda asked: faults.pop() if faults and asked == path else None
        newer = {"a": torch.zeros(6), "b": torch.zeros(2, 2)}
        engine.load_weights(newer.items(), version=2)
        assert not faults
        assert all("gets the weights of version 2 later" in text for text in said)
        if fault == "503":  # it lives, so it is not left out
            assert len(engine.urls) == 2
        faults.append(fault)
        assert [check(proof, held, newer) for _, held in engine.weight_digests()] == [2] * len(engine.urls)


def sampling():
    from r1lite.rollout import Sampling

    return Sampling(1.0, 4)


def test_a_tensor_that_was_compared_once_may_not_go_missing(weights):
    proof = WeightProof(torch.float32)
    held = as_vllm(weights, torch.float32)
    check(proof, held, weights)
    unsent = {name: weight for name, weight in weights.items() if "layers.2.mlp.down_proj" not in name}
    with pytest.raises(
        EngineError, match=r"layers\.2\.mlp\.down_proj\.weight have different bytes or are missing \(1 of"
    ):
        check(proof, held, unsent)
    unheld = {name: digest for name, digest in held.items() if "layers.1.mlp.down_proj" not in name}
    with pytest.raises(EngineError, match=r"layers\.1\.mlp\.down_proj"):
        check(proof, unheld, weights)
