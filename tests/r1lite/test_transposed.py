"""Decoding with weights that are transposed in memory."""

import contextlib

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from torch import nn

from r1lite.model import transposed
from r1lite.model.transposed import transposable, transposed_weights
from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFEngine

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def _on_intel(monkeypatch):
    monkeypatch.setattr(transposed, "suits_mkl", lambda: True)


def test_weights_are_copies_in_the_context_and_the_same_memory_after_it():
    model = make_tiny_model()
    weights = transposable(model)
    assert len(weights) == 7 * len(model.model.layers)  # all but the head, which is the embedding
    before = [(weight.data_ptr(), weight.clone()) for weight in weights]
    with contextlib.suppress(KeyboardInterrupt), transposed_weights(model):
        for weight, (place, value) in zip(weights, before, strict=True):
            assert weight.data_ptr() != place
            assert weight.stride() == (1, len(weight))
            assert torch.equal(weight, value)
        raise KeyboardInterrupt
    for weight, (place, value) in zip(weights, before, strict=True):
        assert (weight.data_ptr(), weight.is_contiguous()) == (place, True)
        assert torch.equal(weight, value)


def test_other_weights_stay(monkeypatch):
    linear, frozen, half = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(3, 4).bfloat16()
    frozen.weight.requires_grad_(False)

    class Scaled(nn.Linear):
        pass

    model = nn.Sequential(linear, frozen, half, Scaled(3, 4), linear)
    assert [weight is linear.weight for weight in transposable(model)] == [True]
    monkeypatch.setattr(transposed, "suits_mkl", lambda: False)
    assert transposable(model) == []


def test_the_engine_samples_with_the_weights_of_each_call():
    model = make_tiny_model()
    engine, seen = HFEngine(model, make_tiny_tokenizer()), []
    model.model.layers[0].mlp.register_forward_pre_hook(
        lambda module, _: seen.append(module.down_proj.weight.is_contiguous())
    )
    before = engine.generate([[3, 4, 5]], [[1, 2]], Sampling(1.0, 8))
    assert seen[-1] is False
    assert model.model.layers[0].mlp.down_proj.weight.is_contiguous()
    with torch.no_grad():
        for weight in transposable(model):
            weight.zero_()
    after = engine.generate([[3, 4, 5]], [[1, 2]], Sampling(1.0, 8))
    assert before[0][0].logprobs != after[0][0].logprobs
