"""Rotary embeddings as they are computed on CPUs are transformers' own."""

import copy

import pytest
import torch
from conftest import make_tiny_model
from torch import nn
from transformers.models.bamba.modeling_bamba import apply_rotary_pos_emb as partial
from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb as interleaved
from transformers.models.qwen2.modeling_qwen2 import Qwen2Attention, apply_rotary_pos_emb

from r1lite.model import rotary

pytestmark = pytest.mark.quick


def given(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(2, 5, n, 8, generator=generator).to(dtype).transpose(1, 2) for n in (4, 2))
    cos, sin = (torch.randn(2, 5, 8, generator=generator).to(dtype) for _ in range(2))  # any: halves that differ
    return query, key, cos, sin


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_values_gradients_and_layout_are_the_library_s(dtype):
    query, key, cos, sin = given(dtype)
    found = []
    for function in (apply_rotary_pos_emb, lambda *args: rotary._apply(apply_rotary_pos_emb, *args)):
        leaves = [states.clone().requires_grad_() for states in (query, key)]
        made = function(*leaves, cos, sin)
        sum(states.square().sum() for states in made).backward()
        with torch.no_grad():
            assert all(torch.equal(*both) for both in zip(made, function(*leaves, cos, sin), strict=True))
        found.append([*made, *(leaf.grad for leaf in leaves)])
    for mine, theirs in zip(*found, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5)
        assert mine.stride() == theirs.stride()


def test_gradcheck():
    query, _, cos, sin = given(torch.float64)
    angles = cos.unsqueeze(1), sin.unsqueeze(1)
    assert torch.autograd.gradcheck(lambda states: rotary._Rotate.apply(states, *angles), query.requires_grad_())


def test_functions_of_other_formulas_are_left_alone():
    assert rotary._is_same(apply_rotary_pos_emb)
    assert not rotary._is_same(interleaved)
    assert not rotary._is_same(lambda states, cos, sin: states)
    assert not rotary._is_same(lambda q, k, cos, sin: apply_rotary_pos_emb(q, k, sin, cos))


class WithoutRotation(Qwen2Attention):
    def forward(self, *args, **kwargs):
        return super().forward(*args, **kwargs)


def test_part_of_a_head_is_rotated_by_the_library():
    query, key, cos, sin = given()
    expected = partial(query, key, cos[..., :4], sin[..., :4])
    assert rotary._is_same(partial)
    made = rotary._apply(partial, query, key, cos[..., :4], sin[..., :4])
    assert all(torch.equal(*both) for both in zip(made, expected, strict=True))


def test_classes_that_do_not_call_such_a_function_are_left_alone():
    model = make_tiny_model()
    other = WithoutRotation(model.config, 0)
    rotary.quicken_rotary(nn.ModuleList([model, other]))
    assert "forward" not in vars(other)
    assert all("forward" in vars(layer.self_attn) for layer in model.model.layers)


def test_a_model_gives_the_same_logits_and_a_copy_its_own(monkeypatch):
    model = make_tiny_model()
    ids = torch.arange(6).view(2, 3)
    expected = model(ids).logits
    rotary.quicken_rotary(model)
    calls = []
    rotated = rotary._rotated
    monkeypatch.setattr(rotary, "_rotated", lambda *args: calls.append(1) or rotated(*args))
    assert torch.allclose(model(ids).logits, expected, atol=1e-5)
    assert len(calls) == 2 * len(model.model.layers)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.model.layers[0].self_attn.v_proj.weight.zero_()
    assert not torch.allclose(other(ids).logits, expected, atol=1e-5)
    assert torch.allclose(model(ids).logits, expected, atol=1e-5)
