"""Decoding by CUDA graphs: on CPUs the same steps on the same fixed buffers, without a graph."""

import contextlib
import weakref

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from shapes_for_tests import make_model

from r1lite.config import GRPOConfig
from r1lite.errors import UserError
from r1lite.model import cuda_graphs
from r1lite.model.attention import register
from r1lite.model.cuda_graphs import FixedSteps
from r1lite.model.prefix import prefill
from r1lite.rollout import Sampling
from r1lite.rollout.build import Request, start
from r1lite.rollout.hf import HFEngine
from r1lite.training.loading import load_model

PROMPTS = [[5, 6, 7, 8, 9], [3, 4, 5], [7] * 8]
SEEDS = [[10 * p + g for g in range(4)] for p in range(len(PROMPTS))]


def sampled(model, *, cuda_graphs, prompts=PROMPTS, max_tokens=40):
    engine = HFEngine(model, make_tiny_tokenizer(), cuda_graphs=cuda_graphs)
    groups = engine.generate(prompts, SEEDS[: len(prompts)], Sampling(1.0, max_tokens))
    return [completion for group in groups for completion in group]


def assert_same(found, expected):
    assert [completion.token_ids for completion in found] == [completion.token_ids for completion in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.quick
@pytest.mark.parametrize("room", [1, 7, 256])
@pytest.mark.parametrize("prompts", [PROMPTS, [[5], [6]], [[5], [6, 7, 8]]], ids=["long", "one token", "mixed"])
def test_it_samples_what_plain_decoding_samples(room, prompts, monkeypatch):
    monkeypatch.setattr(cuda_graphs, "_ROOM", room)
    model = make_tiny_model()
    expected = sampled(model, cuda_graphs=False, prompts=prompts)
    assert {completion.finish_reason for completion in expected} == {"stop", "length"}  # rows leave the batch
    assert_same(sampled(model, cuda_graphs=True, prompts=prompts), expected)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["qwen3", "phi3", "gpt2"])
def test_other_models_and_our_attention_do_too(name):
    model = make_model(name)
    assert_same(sampled(model, cuda_graphs=True), sampled(model, cuda_graphs=False))
    model.set_attn_implementation(register())
    assert_same(sampled(model, cuda_graphs=True), sampled(model, cuda_graphs=False))


class Recorded:
    """In place of a captured graph: replaying makes the step, and leaves its logits where a graph would."""

    def __init__(self, steps):
        self.steps, self.replays = steps, 0

    def replay(self):
        self.replays += 1
        self.steps._logits = self.steps._step()


@torch.inference_mode()
def test_steps_are_replayed_on_the_buffers():
    model = make_tiny_model()
    prefix = prefill(model, PROMPTS, 0)
    steps = FixedSteps(model, prefix, 3)
    addresses = {layer.keys.data_ptr() for layer in steps._cache.layers}
    steps._graph = Recorded(steps)
    plain = prefill(model, PROMPTS, 0)
    for token in (4, 9, 2):
        assert not steps.full
        tokens = torch.tensor([token, token + 1, token + 2])
        expected = model(**plain.next_inputs(tokens)).logits[:, -1]
        assert torch.allclose(steps.next_logits(tokens), expected, atol=1e-5)
    assert steps.full
    assert steps._graph.replays == 3
    assert {layer.keys.data_ptr() for layer in steps._cache.layers} == addresses


@torch.inference_mode()
def test_keys_and_values_are_held_once(monkeypatch):
    """In the buffers; while they are made, or left for other rows, one layer is held twice."""
    model = make_tiny_model()
    prefix = prefill(model, PROMPTS, 0)
    kept = [weakref.ref(layer.keys) for layer in prefix.cache.layers]
    most = []
    with_room = cuda_graphs._with_room

    def counted(states, length):
        most.append(sum(keys() is not None for keys in kept))
        return with_room(states, length)

    monkeypatch.setattr(cuda_graphs, "_with_room", counted)
    steps = FixedSteps(model, prefix, 3)
    assert most == [n for n in range(len(kept), 0, -1) for _ in range(2)]
    assert not any(keys() is not None for keys in kept)
    buffers = [weakref.ref(layer.keys) for layer in steps._cache.layers]
    assert len(steps.prefix(torch.tensor([0, 2])).cache.layers) == len(buffers)
    assert not any(keys() is not None for keys in buffers)


@pytest.mark.parametrize(("device", "expected"), [("cuda:1", ["cuda:1"]), ("cuda", []), ("cpu", [])])
def test_graphs_are_captured_on_the_runs_gpu(device, expected, monkeypatch):
    """A stream is one of the current GPU, and a graph that is captured there holds nothing of another GPU's steps."""
    chosen = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    with contextlib.suppress(UserError):  # there is no such GPU
        load_model(GRPOConfig(model="nano", device=device))
    assert chosen == expected


def test_without_a_gpu_it_is_refused():
    config = GRPOConfig(engine="transformers", device="cpu", cuda_graphs=True, threads=1)
    request = Request(config, "", make_tiny_model(), make_tiny_tokenizer(), torch.float32, 64)
    with pytest.raises(UserError, match="--cuda-graphs needs a CUDA device"):
        start(request)


def test_other_engines_and_models_are_refused():
    with pytest.raises(ValueError, match="for --engine transformers, not for vllm"):
        GRPOConfig(engine="vllm", cuda_graphs=True)
    config = GRPOConfig(engine="transformers", device="cuda", cuda_graphs=True, threads=1)
    request = Request(config, "", make_model("mistral-sliding"), make_tiny_tokenizer(), torch.float32, 64)
    with pytest.raises(UserError, match="sliding windows or recurrent states"):
        start(request)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("room", [7, 256])
def test_graphs_sample_what_plain_decoding_samples(room, monkeypatch):
    monkeypatch.setattr(cuda_graphs, "_ROOM", room)
    model = make_tiny_model().cuda()
    assert_same(sampled(model, cuda_graphs=True), sampled(model, cuda_graphs=False))
