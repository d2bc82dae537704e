"""The shared prompt and the micro-batch split change nothing but the cost."""

import copy
import dataclasses
import weakref

import pytest
import torch
from conftest import make_tiny_model
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    FalconConfig,
    MixtralConfig,
    OPTConfig,
    Qwen2Config,
)

from r1lite.model import evaluating
from r1lite.model.batch import Row, deal, micro_batches
from r1lite.model.optimizer import Optimizer
from r1lite.model.packing import packed_batches
from r1lite.model.policy import Policy

pytestmark = pytest.mark.quick

PROMPTS = [(5,), (3, 4, 5, 6), (7,) * 20, (9, 8, 7)]
WEIGHTS = torch.randn(16, generator=torch.Generator().manual_seed(1))  # of the rows in the gradient


def make_rows():
    generator = torch.Generator().manual_seed(0)
    rows = []
    for prompt in PROMPTS:
        for _ in range(4):
            length = int(torch.randint(1, 25, (), generator=generator))
            ids = torch.randint(2, 48, (length,), generator=generator).tolist()
            rows.append(Row(prompt, tuple(ids)))
    return rows


def plain_logprobs(model, row, temperature):
    ids = torch.tensor([[*row.prompt_ids, *row.token_ids]])
    logits = model(ids).logits[0, len(row.prompt_ids) - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(-1, torch.tensor(row.token_ids)[:, None]).squeeze(-1)


def gradient(policy, rows, max_tokens):
    policy.model.zero_grad()
    for batch in micro_batches(rows, max_tokens, 0, "cpu"):
        logprobs = policy.logprobs(batch)
        torch.where(batch.loss_mask, logprobs * WEIGHTS[batch.rows][:, None], 0.0).sum().backward()
    return torch.cat([p.grad.flatten() for p in policy.model.parameters()])


@pytest.mark.parametrize("way", ["shared prompt", "checkpointing", "sliding window"])
def test_logprobs_and_gradients_are_those_of_single_rows(way):
    sliding = {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 0}
    model = make_tiny_model(**(sliding if way == "sliding window" else {}))
    rows = make_rows()
    reference = make_tiny_model(**(sliding if way == "sliding window" else {}))
    for row, weight in zip(rows, WEIGHTS, strict=True):
        (plain_logprobs(reference, row, 0.8) * weight).sum().backward()
    expected = torch.cat([p.grad.flatten() for p in reference.parameters()])
    policy = Policy(model, pad_id=0, temperature=0.8, gradient_checkpointing=way == "checkpointing")
    for max_tokens in (1, 60, 200, 100_000):
        found = gradient(policy, rows, max_tokens)
        assert torch.allclose(found, expected, atol=2e-4 * float(expected.abs().max()))
    (batch,) = micro_batches(rows, 100_000, 0, "cpu")
    logprobs = policy.logprobs(batch)
    for b, i in enumerate(batch.rows):
        assert torch.allclose(logprobs[b, : len(rows[i].token_ids)], plain_logprobs(reference, rows[i], 0.8), atol=1e-4)


def test_a_loss_mask_leaves_out_tokens_that_are_still_read():
    """A tool's output in the middle of a completion: no gradient from it, and all of it in view of what follows."""
    model, reference = make_tiny_model(), make_tiny_model()
    rows = make_rows()
    masks = [tuple(n % 3 != 1 for n in range(len(row.token_ids))) for row in rows]
    masked = [dataclasses.replace(row, loss_mask=mask) for row, mask in zip(rows, masks, strict=True)]
    for row, mask, weight in zip(rows, masks, WEIGHTS, strict=True):
        (plain_logprobs(reference, row, 1.0)[torch.tensor(mask)] * weight).sum().backward()
    expected = torch.cat([p.grad.flatten() for p in reference.parameters()])
    tolerance = 2e-4 * float(expected.abs().max())
    assert torch.allclose(gradient(Policy(model, pad_id=0), masked, 60), expected, atol=tolerance)
    (batch,) = packed_batches(masked, width=40, max_tokens=10_000, pad_id=0, device="cpu")
    packed = Policy(model, pad_id=0).packed_logprobs(batch)
    assert len(packed) == sum(row.num_learnt for row in masked) == sum(map(sum, masks))
    plain = torch.cat([plain_logprobs(model, row, 1.0)[torch.tensor(row.loss_mask)] for row in masked])
    assert torch.allclose(packed.sort().values, plain.sort().values, atol=1e-4)


def test_padding_never_matters(tiny_model):
    """Another pad id, the same numbers to the last bit."""
    rows = make_rows()
    found = []
    for pad in (0, 13):
        (batch,) = micro_batches(rows, 100_000, pad, "cpu")
        found.append(torch.where(batch.loss_mask, Policy(tiny_model, pad_id=pad).logprobs(batch), 0.0))
    assert torch.equal(*found)


def test_micro_batches_hold_every_row_once_within_the_budget():
    rows = make_rows()
    for budget in (30, 64, 150, 1000):
        batches = micro_batches(rows, budget, 0, "cpu")
        assert sorted(i for batch in batches for i in batch.rows) == list(range(len(rows)))
        for batch in batches:
            cost = len(batch.prompts) * max(map(len, batch.prompts)) + batch.token_ids.numel()
            assert cost <= budget or len(batch.rows) == 1
            for b, i in enumerate(batch.rows):
                assert tuple(batch.token_ids[b][batch.loss_mask[b]].tolist()) == rows[i].token_ids
                assert batch.prompts[int(batch.prompt_of_row[b])] == rows[i].prompt_ids
    assert micro_batches([], 10, 0, "cpu") == []


def test_deal():
    hands = deal(7, 3, key=lambda i: -i)
    assert hands == [[6, 3, 0], [5, 2], [4, 1]]


SIZES = {"vocab_size": 48, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
DROPPING = [  # in a module of its own, by a number of a module, by the configuration
    Qwen2Config(**SIZES, intermediate_size=64, num_key_value_heads=2, attention_dropout=0.5),
    OPTConfig(**SIZES, ffn_dim=64, word_embed_proj_dim=32, dropout=0.5, layerdrop=0.5),
    BloomConfig(vocab_size=48, hidden_size=32, n_layer=2, n_head=2, hidden_dropout=0.5, attention_dropout=0.5),
    FalconConfig(**SIZES, hidden_dropout=0.5, attention_dropout=0.5),
    MixtralConfig(**SIZES, intermediate_size=64, num_key_value_heads=2, num_local_experts=4, router_jitter_noise=0.5),
]


@pytest.mark.parametrize("shape", DROPPING, ids=lambda shape: shape.model_type)
def test_dropout_is_off(shape):
    model = AutoModelForCausalLM.from_config(shape)
    (batch,) = micro_batches(make_rows(), 100_000, 0, "cpu", "whole rows")
    plain = Policy(copy.deepcopy(model), pad_id=0)
    plain.shares_prompts = False
    policy = Policy(model, pad_id=0, gradient_checkpointing=True)
    assert torch.equal(policy.logprobs(batch), plain.logprobs(batch))
    assert policy.model.config.to_dict() == shape.to_dict()  # as saved in checkpoints


def test_checkpointing_stays_on_after_sampling():
    policy = Policy(make_tiny_model(), pad_id=0, gradient_checkpointing=True)
    modes = [module.training for module in policy.modules()]
    with evaluating(policy.model):
        assert not any(module.training for module in policy.model.modules())
    assert [module.training for module in policy.modules()] == modes
    assert any(module.training for module in policy.model.modules())


@pytest.mark.parametrize("learns", [True, False])
def test_weights_are_not_kept_in_half_precision(learns):
    """Under checkpointing and without a gradient, of which a sharded model's ranks would each keep all."""
    model = make_tiny_model()
    policy = Policy(model, pad_id=0, dtype=torch.bfloat16, gradient_checkpointing=True)
    (batch,) = policy.micro_batches([Row((5, 6), (7, 8, 9))], 100)
    made, most = [], [0]

    class Watched(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if function is torch.ops.aten._to_copy.default and any(args[0] is p for p in model.parameters()):
                made.append(weakref.ref(result))
                most[0] = max(most[0], sum(one() is not None for one in made))
            return result

    with Watched(), torch.set_grad_enabled(learns):
        policy(batch)
    assert len(made) > 10
    assert most[0] <= 2  # a layer's product, and its bias


def test_a_gradient_that_is_not_finite_changes_nothing(tiny_model):
    policy = Policy(tiny_model, pad_id=0)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.1, max_grad_norm=1.0)
    before = {name: weight.clone() for name, weight in policy.named_weights()}
    parameter = optimizer.parameters[0]
    parameter.grad = torch.full_like(parameter, torch.nan)
    assert optimizer.step(1e-2) is None
    assert all(torch.equal(weight, before[name]) for name, weight in policy.named_weights())
    assert parameter.grad is None
    parameter.grad = torch.full_like(parameter, 3.0)
    assert optimizer.step(1e-2) == pytest.approx(3.0 * parameter.numel() ** 0.5)
    name = "model.embed_tokens.weight"
    assert not torch.equal(dict(policy.named_weights())[name], before[name])


def test_weights_come_under_every_name(tiny_model):
    names = [name for name, _ in Policy(tiny_model, pad_id=0).named_weights()]
    assert {"lm_head.weight", "model.embed_tokens.weight"} <= set(names)
