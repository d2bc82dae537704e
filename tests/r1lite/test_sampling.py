"""Sampling is exact, and a completion depends on nothing but its prompt, its seed and the weights."""

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer

from r1lite.model.attention import register
from r1lite.model.prefix import shares_batches
from r1lite.rl.sampling import completion_seed, sample_tokens, uniform_draws
from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFEngine

pytestmark = pytest.mark.quick

PROMPTS = [[5], [3, 4, 5, 6], [7] * 20, [9, 8, 7]]
SEEDS = [[100 * p + g for g in range(5)] for p in range(4)]


def test_frequencies_follow_the_probabilities():
    probabilities = torch.tensor([0.5, 0.3, 0.0, 0.2])
    tokens, logprobs = sample_tokens(
        probabilities.log().expand(20000, 4), uniform_draws([3], 20000)[0], temperature=1.0
    )
    assert (tokens.bincount(minlength=4) / 20000).tolist() == pytest.approx(probabilities.tolist(), abs=0.015)
    assert torch.allclose(logprobs, probabilities.log()[tokens])


def test_temperature_and_greedy():
    logits = torch.tensor([[0.0, 1.0, 3.0], [2.0, 2.0, 1.0]])
    tokens, _ = sample_tokens(logits, torch.tensor([0.1, 0.1]), temperature=0)
    assert tokens.tolist() == [2, 0]
    _, logprobs = sample_tokens(logits, torch.tensor([0.99, 0.99]), temperature=0.5)
    assert logprobs.exp().max() <= 1
    expected = (logits / 0.5).log_softmax(-1)
    assert float(logprobs[0]) == pytest.approx(float(expected[0, 2]))


@pytest.mark.parametrize("draw", [0.0, 1 - 2**-53])
def test_extreme_draws_hit_tokens_that_can_occur(draw):
    logits = torch.tensor([[-torch.inf, 0.0, 1.0, -torch.inf]])
    tokens, _ = sample_tokens(logits, torch.tensor([draw], dtype=torch.float64), temperature=1.0)
    assert tokens.item() in (1, 2)


def test_seeds_differ_in_every_argument():
    seeds = {completion_seed(r, p, s, i, g) for r in (0, 1) for p in "ab" for s in (0, 1) for i in "xy" for g in (0, 1)}
    assert len(seeds) == 32
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert completion_seed(0, "a", 0, "x", 5) == completion_seed(0, "a", 0, "x", 0) + 5  # a group is one vLLM request


def test_neighbouring_seeds_draw_independently():
    """A group's seeds follow one another; the generator must not make siblings alike."""
    first = [completion_seed(0, "a", step, "x", 0) for step in range(2000)]
    draws = uniform_draws([seed + g for seed in first for g in range(2)], 16).view(2000, 2, 16) - 0.5
    correlation = 12 * (draws[:, 0] * draws[:, 1]).mean(dim=0)  # [16]; standard error 0.022
    assert correlation.abs().max() < 0.1


@pytest.mark.parametrize("kind", ["full attention", "sliding window"])
def test_a_completion_is_the_same_alone_and_in_a_batch(kind):
    sliding = {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 0}
    model = make_tiny_model(**(sliding if kind == "sliding window" else {}))
    assert shares_batches(model) == (kind == "full attention")
    engine = HFEngine(model, make_tiny_tokenizer(), max_rows=7)
    sampling = Sampling(1.0, 30)
    together = engine.generate(PROMPTS, SEEDS, sampling)
    for prompt, seeds, group in zip(PROMPTS, SEEDS, together, strict=True):
        for seed, completion in zip(seeds, group, strict=True):
            assert engine.generate([prompt], [[seed]], sampling)[0][0].token_ids == completion.token_ids


@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("own_attention", [False, True])
def test_logprobs_are_those_of_a_plain_forward_pass(tiny_tokenizer, key_heads, own_attention):
    tiny_model = make_tiny_model(num_key_value_heads=key_heads)
    if own_attention:
        tiny_model.set_attn_implementation(register())
    engine = HFEngine(tiny_model, tiny_tokenizer)
    for temperature in (1.0, 0.7):
        groups = engine.generate(PROMPTS, SEEDS, Sampling(temperature, 20))
        for prompt, group in zip(PROMPTS, groups, strict=True):
            for completion in group:
                ids = torch.tensor([[*prompt, *completion.token_ids]])
                with torch.no_grad():
                    logits = tiny_model(ids).logits[0, len(prompt) - 1 : -1]
                expected = (logits / temperature).log_softmax(-1).gather(-1, ids[0, len(prompt) :, None]).squeeze(-1)
                assert torch.allclose(torch.tensor(completion.logprobs), expected, atol=1e-4)


def test_ends(tiny_model, tiny_tokenizer):
    engine = HFEngine(tiny_model, tiny_tokenizer)
    groups = engine.generate(PROMPTS, SEEDS, Sampling(1.0, 60))
    ended = [c for group in groups for c in group if c.finish_reason == "stop"]
    cut = [c for group in groups for c in group if c.finish_reason == "length"]
    assert ended
    assert all(c.token_ids[-1] == 1 and 1 not in c.token_ids[:-1] for c in ended)
    assert all(len(c.token_ids) == 60 and 1 not in c.token_ids for c in cut)
    assert all("<eos>" not in c.text for c in ended)
    assert all(len(c.logprobs) == len(c.token_ids) for c in ended + cut)


def test_stop_text(tiny_model, tiny_tokenizer):
    engine = HFEngine(tiny_model, tiny_tokenizer)
    texts = [c.text for group in engine.generate(PROMPTS, SEEDS, Sampling(1.0, 60)) for c in group]
    stop = next(text[5:7] for text in texts if len(text) > 20)
    for group in engine.generate(PROMPTS, SEEDS, Sampling(1.0, 60, stop)):
        for completion in group:
            assert stop not in completion.text[:-1]
            if stop in completion.text:
                assert completion.finish_reason == "stop"


def test_refuses_prompts_it_cannot_answer(tiny_model, tiny_tokenizer):
    engine = HFEngine(tiny_model, tiny_tokenizer)
    with pytest.raises(ValueError, match="empty prompt"):
        engine.generate([[]], [[1]], Sampling(1.0, 4))
    with pytest.raises(ValueError, match="context of 160"):
        engine.generate([[2] * 100], [[1]], Sampling(1.0, 61))
    assert engine.generate([], [], Sampling(1.0, 4)) == []


def test_versions_travel_and_closing_twice_is_harmless(tiny_model, tiny_tokenizer):
    engine = HFEngine(tiny_model, tiny_tokenizer)
    engine.load_weights(iter([]), version=7)
    assert engine.generate([[5, 6]], [[1]], Sampling(1.0, 4))[0][0].policy_version == 7
    engine.close()
    engine.close()


def test_new_weights_change_the_outputs(tiny_model, tiny_tokenizer):
    engine = HFEngine(tiny_model, tiny_tokenizer)
    before = engine.generate(PROMPTS, SEEDS, Sampling(1.0, 20))
    with torch.no_grad():
        for parameter in tiny_model.parameters():
            parameter.mul_(1.3)
    assert engine.generate(PROMPTS, SEEDS, Sampling(1.0, 20)) != before
