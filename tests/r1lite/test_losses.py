"""Losses against hand numbers, gradients against finite differences."""

import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from r1lite.config import PPOConfig
from r1lite.rl.aggregate import masked_sum
from r1lite.rl.kl import kl_k3
from r1lite.rl.logprobs import token_logprobs
from r1lite.rl.losses import clipped_surrogate, policy_ratio
from r1lite.rl.passk import pass_at_k, wilson_interval
from r1lite.rl.schedule import learning_rate

pytestmark = pytest.mark.quick


def row(*values):
    return torch.tensor([values], dtype=torch.float64)


def test_ratio_hand_numbers():
    assert float(policy_ratio(row(math.log(0.3)), row(math.log(0.1)))) == pytest.approx(3.0)
    assert float(policy_ratio(row(-1.8), row(-2.1))) == pytest.approx(1.35, abs=2e-4)
    assert math.isfinite(float(policy_ratio(row(0.0), row(-1e6))))


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.35, 0.2, -0.24),  # clipped at 1.2
        (3.0, 1.0, -1.2),
        (3.0, -1.0, 3.0),  # a bad action made likelier is never clipped
        (0.5, 1.0, -0.5),
        (0.5, -1.0, 0.8),  # clipped at 0.8
        (1.0, 0.7, -0.7),
    ],
)
def test_clipped_surrogate_hand_numbers(ratio, advantage, expected):
    found = clipped_surrogate(row(ratio), torch.tensor([advantage], dtype=torch.float64))
    assert float(found) == pytest.approx(expected)


def test_clip_higher():
    assert float(clipped_surrogate(row(3.0), torch.tensor([1.0]), clip_high=0.28)) == pytest.approx(-1.28)


def test_k3():
    lp, ref = row(-1.0, -2.0, -0.5), row(-1.0, -1.0, -1.5)
    expected = [0.0, math.e - 2, math.exp(-1.0)]
    assert kl_k3(lp, ref).tolist()[0] == pytest.approx(expected)
    assert float(kl_k3(row(-500.0), row(0.0), cap=10.0)) == 10.0


def test_k3_pulls_back_a_token_that_the_reference_finds_much_likelier():
    """d = 4: e^4 - 5 and 1 - e^4; beyond d = 20 the gradient stays that of 20."""
    for now, value, slope in ((-5.0, 49.598, -53.598), (-501.0, 2.333e11, 1 - math.exp(20))):
        lp = row(now).requires_grad_()
        found = kl_k3(lp, row(-1.0))
        (gradient,) = torch.autograd.grad(found, lp)
        assert float(found.detach()) == pytest.approx(value, rel=1e-3)
        assert float(gradient) == pytest.approx(slope, rel=1e-3)
    lp = row(-5.0).requires_grad_()
    (gradient,) = torch.autograd.grad(kl_k3(lp, row(-1.0), cap=10.0), lp)
    assert float(gradient) == 0  # verl's bound: never pulled back


@given(st.lists(st.floats(-20, 0), min_size=2, max_size=8))
@example([-1.3487911772463696e-09, 0.0])
def test_k3_is_never_negative(values):
    half = len(values) // 2
    rounding = 4 * torch.finfo(torch.float64).eps  # of e^d, which is near 1 where the value is near 0
    assert (kl_k3(row(*values[:half]), row(*values[half : 2 * half])) >= -rounding).all()


def test_masked_sum_ignores_what_stands_at_padding():
    values = torch.tensor([[1.0, 2.0, math.nan], [4.0, math.inf, math.nan]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert float(masked_sum(values, mask)) == 7.0


def test_gradients_match_finite_differences():
    torch.manual_seed(0)
    logits = torch.randn(3, 4, 7, dtype=torch.float64, requires_grad=True)
    ids = torch.randint(0, 7, (3, 4))
    old = token_logprobs(logits.detach(), ids, temperature=0.7) + 0.3 * torch.randn(3, 4, dtype=torch.float64)
    ref = old + 0.1
    advantages = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True] * 2 + [False] * 2, [True] * 3 + [False]])

    def loss(given):
        lp = token_logprobs(given, ids, temperature=0.7)
        per_token = clipped_surrogate(policy_ratio(lp, old), advantages) + 0.05 * kl_k3(lp, ref)
        return masked_sum(per_token, mask) / mask.sum()

    assert torch.autograd.gradcheck(loss, (logits,))


def test_on_policy_gradient_is_reinforce():
    """At ratio 1 the surrogate's gradient is that of -A log p."""
    torch.manual_seed(1)
    logits = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    ids = torch.randint(0, 5, (2, 3))
    advantages = torch.tensor([1.5, -0.5], dtype=torch.float64)
    lp = token_logprobs(logits, ids)
    (surrogate,) = torch.autograd.grad(
        clipped_surrogate(policy_ratio(lp, lp.detach()), advantages).sum(), logits, retain_graph=True
    )
    (reinforce,) = torch.autograd.grad((-advantages[:, None] * lp).sum(), logits)
    assert torch.allclose(surrogate, reinforce)


def test_token_logprobs():
    logits = torch.randn(2, 3, 11)
    ids = torch.randint(0, 11, (2, 3))
    for temperature in (1.0, 0.6):
        expected = (logits / temperature).log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)
        assert torch.allclose(token_logprobs(logits, ids, temperature=temperature), expected, atol=1e-6)
    assert token_logprobs(logits.bfloat16(), ids).dtype == torch.float32


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"), [(8, 0, 8, 0.0), (8, 1, 8, 1.0), (4, 2, 1, 0.5), (4, 2, 2, 5 / 6), (5, 5, 3, 1.0)]
)
def test_pass_at_k(n, c, k, expected):
    assert pass_at_k(n, c, k) == pytest.approx(expected)


def test_pass_at_k_refuses_nonsense():
    for bad in ((4, 5, 1), (4, 1, 5), (4, 1, 0)):
        with pytest.raises(ValueError, match="need"):
            pass_at_k(*bad)


def test_wilson_interval():
    low, high = wilson_interval(50, 100)
    assert (low, high) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson_interval(0, 20)[0] == 0.0
    assert wilson_interval(20, 20)[1] == 1.0
    with pytest.raises(ValueError, match="no trials"):
        wilson_interval(0, 0)


def test_learning_rate():
    options = {"peak": 1.0, "total_steps": 11, "warmup_steps": 1, "min_ratio": 0.1}
    assert learning_rate(0, **options) == 1.0
    assert learning_rate(10, schedule="linear", **options) == pytest.approx(0.1)
    assert learning_rate(10, schedule="cosine", **options) == pytest.approx(0.1)
    assert learning_rate(99, schedule="constant", **options) == 1.0
    assert learning_rate(1, peak=1.0, total_steps=10, warmup_steps=4) == 0.5
    with pytest.raises(ValueError, match="unknown schedule"):
        learning_rate(5, schedule="cosin", **options)


def test_the_settings_of_a_run_say_its_learning_rate():
    config = PPOConfig(lr=2.0, warmup_steps=2, lr_schedule="linear", min_lr_ratio=0.25)
    assert [config.lr_at(step, 5) for step in range(5)] == pytest.approx([1.0, 2.0, 2.0, 1.25, 0.5])
    assert [config.lr_at(step, 5, peak=0.2) for step in range(5)] == pytest.approx([0.1, 0.2, 0.2, 0.125, 0.05])
