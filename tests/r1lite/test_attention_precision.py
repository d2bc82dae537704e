"""Attention while learning in bfloat16: in float32 on CPUs whose kernels are quicker so."""

import pytest
import torch
from conftest import make_tiny_model

from r1lite.model import attention, varlen
from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy

pytestmark = pytest.mark.quick

ROWS = [Row((3, 4, 5), (6, 7, 8, 9)), Row((3, 4, 5), (10, 11)), Row((12, 13), (14, 15, 16))]


def gradient(policy):
    """Of the mean log-probability."""
    (batch,) = micro_batches(ROWS, 100, 0, "cpu")
    policy.model.zero_grad()
    policy.logprobs(batch)[batch.loss_mask].mean().backward()
    return torch.cat([p.grad.flatten() for p in policy.model.parameters()])


@pytest.mark.parametrize("float32", [True, False])
def test_a_bfloat16_gradient_is_near_the_exact_one(monkeypatch, float32):
    seen, library = [], attention.sdpa_attention_forward

    def watched(module, query, *given, **named):
        seen.append((query.dtype, torch.is_autocast_enabled("cpu")))
        return library(module, query, *given, **named)

    monkeypatch.setattr(attention, "sdpa_attention_forward", watched)
    monkeypatch.setattr(attention, "prefers_float32", lambda: float32)
    model = make_tiny_model()
    model.set_attn_implementation(attention.register())
    exact = gradient(Policy(model, pad_id=0))
    assert set(seen) == {(torch.float32, False)}
    policy = Policy(model, pad_id=0, dtype=torch.bfloat16)
    seen.clear()
    found = gradient(policy)
    assert {autocast for _, autocast in seen} == {not float32}
    assert torch.cosine_similarity(found, exact, dim=0) > 0.995


@pytest.mark.parametrize("settings", [{}, {"gradient_checkpointing": True}, {"padding_free": True}])
def test_the_same_weights_give_the_same_log_probabilities_with_and_without_gradients(monkeypatch, settings):
    monkeypatch.setattr(attention, "prefers_float32", lambda: True)
    model = make_tiny_model()
    model.set_attn_implementation((varlen if "padding_free" in settings else attention).register())
    policy = Policy(model, pad_id=0, dtype=torch.bfloat16, **settings)
    (batch,) = policy.micro_batches(ROWS, 100)
    new = policy.logprobs(batch).detach()
    with torch.no_grad():
        old = policy.logprobs(batch)
    assert torch.equal(new[batch.loss_mask], old[batch.loss_mask])
