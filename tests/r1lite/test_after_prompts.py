"""Attention of completions over prompts that are not copied for each row, with its gradients."""

import pytest
import torch
from conftest import make_tiny_model
from shapes_for_tests import make_model
from torch.nn.functional import scaled_dot_product_attention

from r1lite.model import after_prompts, prefix
from r1lite.model.after_prompts import attention_after_prompts
from r1lite.model.attention import register
from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy
from r1lite.model.shared_prompts import SharedPrompts

pytestmark = pytest.mark.quick

NUM_TOKENS, WIDTH = 5, 8


def states(seed, rows, heads, tokens):
    made = torch.randn(rows, tokens, heads, WIDTH, generator=torch.Generator().manual_seed(seed))
    return made.transpose(1, 2).requires_grad_()  # in memory as a model makes them


@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("rows", [[0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 1, 0]], ids=["whole", "unequal", "mixed"])
@pytest.mark.parametrize("lengths", [[3, 3], [3, 1], [0, 3]], ids=["full", "padded", "empty"])
def test_values_and_gradients_are_those_of_copied_prompts(key_heads, rows, lengths):
    mask = torch.arange(3) < torch.tensor(lengths)[:, None]
    of_row, pull = torch.tensor(rows), torch.randn(4, NUM_TOKENS, 4, WIDTH, generator=torch.Generator().manual_seed(9))
    causal = torch.ones(NUM_TOKENS, NUM_TOKENS, dtype=torch.bool).tril().expand(4, 1, -1, -1)
    attended = torch.cat([mask[of_row][:, None, None].expand(-1, -1, NUM_TOKENS, -1), causal], dim=-1)
    found = []
    for in_place in (True, False):
        query = states(0, 4, 4, NUM_TOKENS)
        key, value = (states(seed, 4, key_heads, NUM_TOKENS) for seed in (1, 2))
        prompt_key, prompt_value = (states(seed, 2, key_heads, 3) for seed in (3, 4))
        if in_place:
            prompts = SharedPrompts.of([prompt_key.transpose(-1, -2)], [prompt_value], mask, of_row)
            out = attention_after_prompts(query, key, value, prompts, 0, 0.5)
        else:
            keys, values = torch.cat([prompt_key[of_row], key], 2), torch.cat([prompt_value[of_row], value], 2)
            out = scaled_dot_product_attention(query, keys, values, attended, scale=0.5, enable_gqa=True)
            out = out.transpose(1, 2)
        leaves = query, key, value, prompt_key, prompt_value
        found.append([out, *torch.autograd.grad((out * pull).sum(), leaves)])
    for mine, theirs in zip(*found, strict=True):
        assert torch.allclose(mine, theirs, atol=2e-6)


@pytest.mark.parametrize("entropy", [False, True])
def test_a_policy_s_gradient_is_that_of_copied_prompts(entropy):
    model, found = make_tiny_model(num_key_value_heads=2), []
    model.set_attn_implementation(register())
    policy = Policy(model, pad_id=0)
    assert policy.reads_in_place
    model.double()  # float32's rounding of this model's gradients, up to 25, depends on the CPU: 8e-5 on some
    rows = [Row((3, 4, 5), (6, 7, 8, 9)), Row((3, 4, 5), (10, 11)), Row((12, 13), (14, 15, 16)), Row((9,), (1, 2))]
    (batch,) = micro_batches(rows, 100, 0, "cpu")
    for in_place in (True, False):
        policy.reads_in_place = in_place
        logprobs, entropies = policy(batch, entropy=entropy)
        values = logprobs[batch.loss_mask] if entropies is None else (logprobs + entropies)[batch.loss_mask]
        values.square().mean().backward()
        found.append((values, torch.cat([p.grad.flatten() for p in model.parameters()])))
        model.zero_grad()
    for mine, theirs in zip(*found, strict=True):
        assert mine.dtype == torch.float64
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)


def test_completions_of_one_token_and_prompts_of_one_token():
    model = make_tiny_model()
    model.set_attn_implementation(register())
    policy = Policy(model, pad_id=0)
    for rows in ([Row((3, 4, 5), (6,)), Row((7, 8), (9,))], [Row((3,), (6, 7)), Row((4,), (9,))]):
        (batch,) = micro_batches(rows, 100, 0, "cpu")
        found = []
        for policy.reads_in_place, grad in ((True, True), (True, False), (False, True)):
            with torch.set_grad_enabled(grad):
                found.append(policy.logprobs(batch)[batch.loss_mask])
        assert all(torch.allclose(one, found[-1], atol=1e-5) for one in found)


def test_other_models_copy_their_prompts(monkeypatch):
    assert not Policy(make_tiny_model(), pad_id=0).reads_in_place  # transformers' own attention
    shapes = ("mistral-sliding", "gemma2")
    assert not any(Policy(make_model(s, attn_implementation="eager"), pad_id=0).reads_in_place for s in shapes)
    model = make_tiny_model()
    model.set_attn_implementation(register())
    assert prefix.trains_in_place(model)
    assert not Policy(model, pad_id=0, dtype=torch.bfloat16).reads_in_place
    assert not prefix.trains_in_place(make_tiny_model().bfloat16())
    attend = after_prompts._attend  # a model that attends otherwise would give other results
    monkeypatch.setattr(
        after_prompts,
        "_attend",
        lambda *given, **named: (0.5 * attend(*given, **named)[0], *attend(*given, **named)[1:]),
    )
    assert not prefix.trains_in_place(model)
