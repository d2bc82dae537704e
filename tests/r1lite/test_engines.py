"""The contract of rollout engines, as far as no vLLM is needed."""

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from engine_contract import CONTRACT, OF_A_MODEL, Case, load_nano
from scripted_engine import ScriptedEngine
from torch.profiler import ProfilerActivity, profile

from r1lite.rl.sampling import cut_distribution
from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFCopyEngine, HFEngine


@pytest.fixture(scope="module")
def transformers_case():
    model, tokenizer = load_nano()
    return Case(HFEngine(model, tokenizer), model, tokenizer)


@pytest.fixture(scope="module")
def scripted_case():
    model, tokenizer = load_nano()
    engine = ScriptedEngine(tokenizer, lambda prompt, seed, version: f"{sum(prompt) + seed} and {version}")
    return Case(engine, model, tokenizer, scripted=True)


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_transformers(check, transformers_case):
    check(transformers_case)


@pytest.mark.parametrize("check", [c for c in CONTRACT if c not in OF_A_MODEL], ids=lambda check: check.__name__)
def test_scripted(check, scripted_case):
    check(scripted_case)


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        ({"top_k": 2}, [0.5, 0.3]),
        ({"top_p": 0.6}, [0.5, 0.3]),
        ({"top_p": 0.49}, [0.5]),
        ({"min_p": 0.3}, [0.5, 0.3, 0.15]),
        ({"min_p": 0.3, "top_k": 2, "top_p": 0.6}, [0.5]),  # 0.5 of 0.8 is 0.625, which reaches 0.6
        ({}, [0.5, 0.3, 0.15, 0.05]),
    ],
)
def test_cut_distribution(cut, kept):
    probabilities = torch.tensor([[0.05, 0.5, 0.15, 0.3]])
    found = cut_distribution(probabilities.log(), **cut).exp().sort(descending=True).values[0]
    assert found[: len(kept)].tolist() == pytest.approx([p / sum(kept) for p in kept], abs=1e-6)
    assert found[len(kept) :].sum() == 0


@pytest.mark.parametrize("copies", [False, True])
def test_trained_weights_are_cast_once_for_a_batch(copies):
    """In inference mode autocast would cast them at every token, which took half of the time."""
    model = make_tiny_model()
    engine = HFEngine(model, make_tiny_tokenizer(), dtype=torch.bfloat16)
    if copies:  # their gradients are in parts, so there is no room for copies of all weights
        engine = HFCopyEngine(model, make_tiny_tokenizer(), device="cpu", dtype=torch.bfloat16)
        engine.load_weights(model.named_parameters(remove_duplicate=False), version=0)
    shape = list(model.model.layers[0].mlp.down_proj.weight.shape)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        (group,) = engine.generate([[5, 6, 7]], [[1, 2]], Sampling(1.0, 12))
    casts = sum(event.name == "aten::_to_copy" and event.input_shapes[0] == shape for event in profiled.events())
    tokens = max(len(completion.token_ids) for completion in group)
    assert tokens > 3
    assert casts >= tokens if copies else casts == len(model.model.layers)
