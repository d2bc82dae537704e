"""Advantages from a critic: hand numbers, plain loops written from the papers, invariances, gradients."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from r1lite.rl.gae import (
    adapted_kl_coef,
    explained_variance,
    gae,
    length_adaptive_lambda,
    token_rewards,
    value_loss,
    whiten,
)
from r1lite.rl.kl import kl_k1

pytestmark = pytest.mark.quick

NAN = math.nan


def matrix(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def everywhere(values):
    return torch.ones_like(values, dtype=torch.bool)


def test_gae_hand_numbers():
    rewards, values = matrix([0.0, 0.0, 1.0]), matrix([0.5, 0.4, 0.8])
    advantages, returns = gae(rewards, values, everywhere(values))
    assert advantages.tolist()[0] == pytest.approx([0.5, 0.6, 0.2])  # lambda 1: the return less the value
    assert returns.tolist()[0] == pytest.approx([1.0, 1.0, 1.0])
    advantages, returns = gae(rewards, values, everywhere(values), gamma=1.0, gae_lambda=0.0)
    assert advantages.tolist()[0] == pytest.approx([-0.1, 0.4, 0.2])  # one step ahead
    advantages, _ = gae(rewards, values, everywhere(values), gamma=0.9, gae_lambda=0.5)
    # deltas .9*.4-.5 = -.14, .9*.8-.4 = .32, 1-.8 = .2; then backwards with .45
    assert advantages.tolist()[0] == pytest.approx([-0.14 + 0.45 * 0.41, 0.32 + 0.45 * 0.2, 0.2])


def test_gae_of_a_step_from_value_point_3_to_point_25():
    """V = .3, V' = .25, r = .5: delta = .5 + .25 - .3 = .45; the last step's is r - V'."""
    advantages, returns = gae(matrix([0.5, 0.0]), matrix([0.3, 0.25]), everywhere(matrix([0, 0])), gae_lambda=0.0)
    assert advantages.tolist()[0] == pytest.approx([0.45, -0.25])
    assert returns.tolist()[0] == pytest.approx([0.75, 0.0])
    advantages, _ = gae(matrix([0.5, 0.0]), matrix([0.3, 0.25]), everywhere(matrix([0, 0])), gamma=0.9, gae_lambda=0.95)
    assert advantages.tolist()[0] == pytest.approx([0.5 + 0.9 * 0.25 - 0.3 - 0.9 * 0.95 * 0.25, -0.25])


def test_a_long_completion_looks_further_ahead():
    """VAPO: 1 - 1 / (.05 l): 100 tokens .8, 40 tokens .5; up to 20 tokens 0."""
    mask = torch.arange(100)[None] < torch.tensor([100, 40, 20, 3])[:, None]
    adaptive = length_adaptive_lambda(mask)
    assert adaptive.tolist() == pytest.approx([0.8, 0.5, 0.0, 0.0], abs=1e-12)
    torch.manual_seed(0)
    rewards, values = torch.randn(4, 100, dtype=torch.float64), torch.randn(4, 100, dtype=torch.float64)
    advantages, _ = gae(rewards, values, mask, gae_lambda=adaptive)
    for n, gae_lambda in enumerate((0.8, 0.5, 0.0, 0.0)):
        alone, _ = gae(rewards[n : n + 1], values[n : n + 1], mask[n : n + 1], gae_lambda=gae_lambda)
        torch.testing.assert_close(advantages[n : n + 1], alone, rtol=1e-10, atol=1e-10)


def test_huber_bounds_the_gradient_of_an_outlier():
    values, returns = matrix([0.0, 0.0, 0.0]), matrix([0.5, 2.0, -3.0])
    found = value_loss(values, values, returns, clip=None, huber=1.0)
    assert found.tolist()[0] == pytest.approx([0.125, 1.5, 2.5])
    expected = torch.nn.functional.huber_loss(values, returns, delta=1.0, reduction="none")
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    given_values = values.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(
        value_loss(given_values, values, returns, clip=None, huber=1.0).sum(), given_values
    )
    assert gradient.tolist()[0] == pytest.approx([-0.5, -1.0, 1.0])
    # Clipped: the larger of both errors, and none of the gradient where the value has moved far enough.
    moved = matrix([0.4, 0.4, 0.4]).requires_grad_()
    clipped = value_loss(moved, values, returns, clip=0.2, huber=1.0)
    assert clipped.tolist()[0] == pytest.approx([0.5 * 0.3**2, 1.8 - 0.5, 3.4 - 0.5])
    assert torch.autograd.grad(clipped.sum(), moved)[0].tolist()[0] == pytest.approx([0.0, 0.0, 1.0])


def plain_gae(rewards, values, mask, gamma, gae_lambda):
    """Equation 11 of arXiv:1506.02438 as the discounted sum it is, over the chosen tokens of each row."""
    found = [[0.0] * len(row) for row in rewards]
    for b, chosen in enumerate(mask):
        steps = [t for t, inside in enumerate(chosen) if inside]
        deltas = []
        for n, t in enumerate(steps):
            after = values[b][steps[n + 1]] if n + 1 < len(steps) else 0.0
            deltas.append(rewards[b][t] + gamma * after - values[b][t])
        for n, t in enumerate(steps):
            found[b][t] = sum((gamma * gae_lambda) ** k * delta for k, delta in enumerate(deltas[n:]))
    return found


numbers = st.floats(-2, 2, allow_nan=False)
tables = st.integers(1, 6).flatmap(
    lambda width: st.lists(
        st.tuples(
            st.lists(numbers, min_size=width, max_size=width),
            st.lists(numbers, min_size=width, max_size=width),
            st.lists(st.booleans(), min_size=width, max_size=width),
        ),
        min_size=1,
        max_size=4,
    )
)


@settings(deadline=None, max_examples=60)
@given(tables, st.floats(0, 1), st.floats(0, 1))
def test_gae_is_the_papers_sum(table, gamma, gae_lambda):
    rewards, values, mask = (list(column) for column in zip(*table, strict=True))
    expected = matrix(*plain_gae(rewards, values, mask, gamma, gae_lambda))
    mask = torch.tensor(mask)
    # What stands outside the mask never enters.
    rewards, values = (torch.where(mask, matrix(*rows), NAN) for rows in (rewards, values))
    advantages, returns = gae(rewards, values, mask, gamma=gamma, gae_lambda=gae_lambda)
    assert torch.allclose(advantages, expected, atol=1e-10, rtol=0)
    assert torch.allclose(returns[mask], (expected + values)[mask], atol=1e-10, rtol=0)
    assert not returns[~mask].any()


def test_padding_and_order_of_rows_change_nothing():
    torch.manual_seed(0)
    rewards, values = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True, True, False, False], [True, False, True, True]])
    base = torch.stack(gae(rewards, values, mask, gamma=0.9, gae_lambda=0.8))
    order = torch.tensor([2, 0, 1])
    assert torch.equal(
        torch.stack(gae(rewards[order], values[order], mask[order], gamma=0.9, gae_lambda=0.8)), base[:, order]
    )
    wider = [
        torch.nn.functional.pad(x, (0, 3), value=fill) for x, fill in ((rewards, NAN), (values, NAN), (mask, False))
    ]
    assert torch.equal(torch.stack(gae(*wider, gamma=0.9, gae_lambda=0.8))[..., :4], base)


def test_token_rewards_hand_numbers():
    mask = torch.tensor([[True, True, True], [True, True, False], [False, False, False]])
    old = matrix([-1.0, -1.0, -1.0], [-2.0, -1.0, NAN], [NAN] * 3)
    ref = matrix([-1.5, -1.0, -0.5], [-2.0, -3.0, NAN], [NAN] * 3)
    found = token_rewards(matrix([0.8, 1.0, 5.0])[0], mask, 0.1 * kl_k1(old, ref))
    assert torch.allclose(found, matrix([-0.05, 0.0, 0.85], [0.0, 0.8, 0.0], [0.0, 0.0, 0.0]))
    # One token, reward of the model .8, KL .05, beta 6: .8 - 6 * .05 = .5
    one = torch.ones(1, 1, dtype=torch.bool)
    assert float(token_rewards(matrix([0.8])[0], one, 6.0 * kl_k1(matrix([-1.0]), matrix([-1.05])))) == pytest.approx(
        0.5
    )
    plain = token_rewards(matrix([0.8, 1.0, 5.0])[0], mask, torch.zeros_like(old))
    assert plain.tolist() == [[0.0, 0.0, 0.8], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


def test_whiten():
    values = matrix([1.0, 2.0, NAN], [3.0, 6.0, NAN])
    mask = ~values.isnan()
    found = whiten(values, mask, eps=0.0)
    # mean 3, unbiased variance (4 + 1 + 0 + 9) / 3
    assert found[mask].tolist() == pytest.approx([x / math.sqrt(14 / 3) for x in (-2, -1, 0, 3)])
    assert not found[~mask].any()
    for equal in (matrix([0.1, 0.1, 0.1]), matrix([0.7])):
        assert not whiten(equal, everywhere(equal)).any()
    assert not whiten(values, torch.zeros_like(mask)).any()


@given(st.lists(st.integers(-8, 8), min_size=2, max_size=9), st.integers(-4, 4), st.integers(1, 5))
def test_whitening_forgets_shift_and_scale(row, shift, scale):
    values = matrix(row)
    found = whiten(values, everywhere(values), eps=0.0)
    assert torch.allclose(whiten(values * scale + shift, everywhere(values), eps=0.0), found, atol=1e-10)
    if len(set(row)) > 1:
        assert float(found.mean()) == pytest.approx(0, abs=1e-10)
        assert float(found.var()) == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize(
    ("value", "old", "target", "clip", "expected"),
    [
        (0.3, 0.0, 1.0, 0.5, 0.245),  # within the clip: .5 * .7^2
        (0.9, 0.0, 1.0, 0.5, 0.125),  # moved too far towards the target: held at .5
        (0.9, 0.0, 1.0, None, 0.005),
        (-0.9, 0.0, 1.0, 0.5, 1.805),  # moved away: never held
        (2.0, 2.0, 2.0, 0.5, 0.0),
    ],
)
def test_value_loss_hand_numbers(value, old, target, clip, expected):
    found = value_loss(matrix([value]), matrix([old]), matrix([target]), clip=clip)
    assert float(found) == pytest.approx(expected)


def test_value_loss_gradients():
    torch.manual_seed(0)
    values = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    old, returns = torch.randn(2, 3, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)
    for clip in (0.5, None):
        assert torch.autograd.gradcheck(
            lambda given, clip=clip: value_loss(given, old, returns, clip=clip).sum(), (values,)
        )


def test_explained_variance():
    returns, mask = matrix([1.0, 2.0, 3.0, NAN]), torch.tensor([[True, True, True, False]])
    assert explained_variance(returns, returns, mask) == pytest.approx(1.0)
    assert explained_variance(torch.full_like(returns, 9.0), returns, mask) == pytest.approx(0.0)
    assert explained_variance(-returns, returns, mask) == pytest.approx(-3.0)
    assert explained_variance(returns, torch.ones_like(returns), mask) is None
    assert explained_variance(torch.full_like(returns, math.inf), returns, mask) is None
    assert explained_variance(torch.full_like(returns, NAN), returns + NAN, mask) is None


def test_equal_rewards_leave_no_variance_to_explain():
    """Their returns are not quite equal in float32, and the critic seemed worse than its mean by a factor of 1e13."""
    torch.manual_seed(0)
    mask, values = torch.ones(8, 512, dtype=torch.bool), 1 + 0.3 * torch.randn(8, 512)
    for reward in (0.1, 1.0, 1.1):
        _, returns = gae(token_rewards(torch.full((8,), reward), mask, torch.zeros(8, 512)), values, mask)
        assert returns.max() != returns.min()
        assert explained_variance(values, returns, mask) is None
    one_is_worse = torch.tensor([0.999] + [1.0] * 7)
    _, returns = gae(token_rewards(one_is_worse, mask, torch.zeros(8, 512)), values, mask)
    expected = 1 - 0.3**2 / (0.001**2 * 7 / 64)  # little, but it varies
    assert explained_variance(values, returns, mask) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(("kl", "expected"), [(6.0, 0.2), (6.6, 0.202), (60.0, 0.204), (0.0, 0.196), (5.4, 0.198)])
def test_the_coefficient_adapts(kl, expected):
    assert adapted_kl_coef(0.2, kl, target=6.0, num_samples=1000) == pytest.approx(expected)
