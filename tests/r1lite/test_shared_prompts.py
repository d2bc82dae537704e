"""Decoding on prompts whose keys and values lie in memory once for all their completions."""

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from shapes_for_tests import make_model
from transformers import DynamicCache

from r1lite.model import attention
from r1lite.model.attention import register
from r1lite.model.prefix import Prefix, prefill, reads_shared_prompts
from r1lite.model.shared_prompts import SharedPrompts
from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFEngine

pytestmark = pytest.mark.quick

PROMPTS = [[5, 6, 7, 8, 9], [3, 4, 5], [7] * 8]
ROWS = [0, 0, 0, 1, 2, 2]  # as many rows as samples, another number of each prompt


def decoded(model, spread, orders):
    """Logits [R, V] of each of several steps; before each, these rows are kept, in this order."""
    prefix = prefill(model, PROMPTS, 0, growing=True)
    spread(prefix)
    marks, made = torch.arange(len(ROWS)), []
    for step, order in enumerate(orders):
        prefix.select(torch.tensor(order))
        marks = marks[order]
        made.append(model(**prefix.next_inputs(10 + marks + step)).logits[:, -1])
    return made


@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mkl", [False, True])
@torch.inference_mode()
def test_logits_are_those_of_a_copy_of_the_prompt_for_each_row(key_heads, dtype, mkl, monkeypatch):
    monkeypatch.setattr(attention, "suits_mkl", lambda: mkl)
    model = make_tiny_model(num_key_value_heads=key_heads)
    model.set_attn_implementation(register())
    assert reads_shared_prompts(model)
    whole, mixed, few = [0, 1, 2, 3, 4, 5], [5, 0, 3, 2, 4, 1], [1, 0, 5]  # the last leaves one prompt without a row
    orders, rows = [whole, mixed, few, [0, 1, 2]], torch.tensor(ROWS)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype != torch.float32):
        copied = decoded(model, lambda prefix: prefix.select(rows), orders)
        shared = decoded(model, lambda prefix: prefix.share(rows), orders)
    for found, expected in zip(shared, copied, strict=True):
        assert torch.allclose(found, expected, atol=1e-4 if dtype == torch.float32 else 0.3)


def test_prompts_without_a_row_are_let_go():
    keys, values = [torch.randn(3, 2, 8, 4)], [torch.randn(3, 2, 4, 8)]
    prompts = SharedPrompts.of(keys, values, torch.ones(3, 4, dtype=torch.bool), torch.tensor(ROWS))
    assert (prompts.size, prompts.padding) == (3, None)
    fewer = prompts.select(torch.tensor([4, 1, 5]))
    assert len(fewer.keys[0]) == 2
    assert torch.equal(fewer.keys[0], keys[0][[0, 2]])
    assert torch.equal(fewer.values[0], values[0][[0, 2]])
    assert fewer.prompt_of_row.tolist() == [1, 0, 1]
    assert (fewer.size, fewer.slot_of_row.tolist()) == (2, [2, 0, 3])
    assert prompts.select(torch.tensor([0, 1, 4, 5])).slot_of_row is None  # all slots are taken, in order


def test_prompts_selected_for_their_rows_have_indexing_s_values_and_gradients():
    rows, pull = torch.tensor([0, 0, 2, 1, 0]), torch.randn(5, 2, 3, 4, generator=torch.Generator().manual_seed(1))
    first = torch.randn(3, 3, 2, 4, generator=torch.Generator().manual_seed(0)).transpose(1, 2)
    found = []
    for select in (lambda keys: keys[rows], lambda keys: selected(keys, rows)):
        keys = first.clone().requires_grad_()
        out = select(keys)
        out.backward(pull)
        found.append((out, keys.grad))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(*found, strict=True))


def selected(keys, rows):
    cache = DynamicCache()
    cache.update(keys, keys.detach(), 0)
    lengths = torch.full((3,), 3)
    prefix = Prefix(cache, torch.ones(3, 3, dtype=torch.long), lengths, lengths)
    prefix.select(rows)
    assert torch.equal(prefix.cache.layers[0].values, keys.detach()[rows])
    return prefix.cache.layers[0].keys


def test_the_engine_shares_and_samples_the_same():
    engine = HFEngine(make_tiny_model(), make_tiny_tokenizer())
    seeds = [[10 * p + g for g in range(4)] for p in range(len(PROMPTS))]
    before = engine.generate(PROMPTS, seeds, Sampling(1.0, 40))
    assert engine._reads_shared_prompts is False
    engine.model.set_attn_implementation(register())
    engine = HFEngine(engine.model, engine.tokenizer)
    after = engine.generate(PROMPTS, seeds, Sampling(1.0, 40))
    assert engine._reads_shared_prompts is True
    assert {c.finish_reason for group in after for c in group} == {"stop", "length"}  # rows have left the batch
    assert [c.token_ids for group in before for c in group] == [c.token_ids for group in after for c in group]


def test_models_that_cannot_read_them_do_not_get_them(monkeypatch):
    model = make_tiny_model()
    assert not reads_shared_prompts(model)  # transformers' attention knows nothing of them
    model.set_attn_implementation(register())
    assert reads_shared_prompts(model)
    assert not reads_shared_prompts(make_model("mistral-sliding", attn_implementation=register()))
    # A model that does not hand them on, and would attend to completions alone.
    forward = model.model.forward
    monkeypatch.setattr(model.model, "forward", lambda *given, shared_prompts=None, **named: forward(*given, **named))
    assert not reads_shared_prompts(model)


@pytest.mark.parametrize(("own", "more"), [(2, {}), (1, {"softcap": 30.0})], ids=["earlier tokens", "a variant"])
def test_training_reads_them_only_for_whole_completions_and_plain_attention(own, more):
    query, key = torch.zeros(2, 4, 1, 8), torch.zeros(2, 4, own, 8)
    with pytest.raises(ValueError, match="shared prompts work only"):
        attention.attention(None, query, key, key, None, shared_prompts=object(), **more)
