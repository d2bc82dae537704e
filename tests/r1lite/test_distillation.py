"""The divergence family: its ends are the two KLs, its middle is symmetric, and its gradients are the student's."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Categorical, kl_divergence

from r1lite.rl.distillation import generalised_jsd

logits = st.integers(0, 10_000).map(
    lambda seed: torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 3
)
temperatures = st.floats(0.3, 3.0)


@given(logits, temperatures)
def test_the_ends_are_the_two_kls(pair, temperature):
    student, teacher = pair
    q, p = Categorical(logits=student / temperature), Categorical(logits=teacher / temperature)
    for beta, expected in ((0.0, kl_divergence(p, q)), (1.0, kl_divergence(q, p))):
        found = generalised_jsd(student, teacher, beta=beta, temperature=temperature)
        assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)


@given(logits)
def test_the_ends_are_limits_of_the_middle(pair):
    student, teacher = pair
    tiny = 1e-6
    forward = generalised_jsd(student, teacher, beta=tiny) / tiny
    reverse = generalised_jsd(student, teacher, beta=1 - tiny) / tiny
    # The next term of the series is of the order of beta times the chi-squared divergence.
    p, q = teacher.softmax(-1), student.softmax(-1)
    bound = tiny * (((p - q) ** 2 / q).sum(-1) + ((p - q) ** 2 / p).sum(-1)) + 1e-8
    assert ((forward - generalised_jsd(student, teacher, beta=0.0)).abs() <= bound).all()
    assert ((reverse - generalised_jsd(student, teacher, beta=1.0)).abs() <= bound).all()


@given(logits, st.integers(0, 64).map(lambda n: n / 64))
def test_it_is_a_divergence(pair, beta):
    student, teacher = pair
    assert (generalised_jsd(student, teacher, beta=beta) >= -1e-12).all()
    assert generalised_jsd(student, student, beta=beta).abs().max() < 1e-12
    mirrored = generalised_jsd(teacher, student, beta=1 - beta)
    if 0 < beta < 1:
        assert torch.allclose(generalised_jsd(student, teacher, beta=beta), mirrored, atol=1e-10)
        assert (mirrored <= math.log(2) + 1e-12).all()


def test_hand_numbers():
    student, teacher = torch.log(torch.tensor([[0.5, 0.5]])), torch.log(torch.tensor([[0.9, 0.1]]))
    expected = {
        0.0: 0.9 * math.log(1.8) + 0.1 * math.log(0.2),
        1.0: 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(5),
        0.5: 0.5 * (0.9 * math.log(0.9 / 0.7) + 0.1 * math.log(0.1 / 0.3))
        + 0.5 * (0.5 * math.log(0.5 / 0.7) + 0.5 * math.log(0.5 / 0.3)),
    }
    for beta, value in expected.items():
        assert generalised_jsd(student, teacher, beta=beta).item() == pytest.approx(value, rel=1e-5)


@settings(max_examples=20, deadline=None)
@given(logits, st.sampled_from([0.0, 0.3, 0.5, 1.0]), temperatures)
def test_gradients(pair, beta, temperature):
    student, teacher = pair[0].clone().requires_grad_(), pair[1].clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: generalised_jsd(s, pair[1], beta=beta, temperature=temperature), (student,)
    )
    generalised_jsd(student, teacher, beta=beta, temperature=temperature).sum().backward()
    assert teacher.grad is None


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_tokens_that_neither_can_choose_cost_nothing(beta):
    student = torch.tensor([[0.3, -0.2, -math.inf]], requires_grad=True)
    teacher = torch.tensor([[1.0, 0.1, -math.inf]])
    found = generalised_jsd(student, teacher, beta=beta)
    assert found.item() == pytest.approx(generalised_jsd(student[:, :2], teacher[:, :2], beta=beta).item())
    found.sum().backward()
    assert torch.isfinite(student.grad[:, :2]).all()


@pytest.mark.parametrize("options", [{"beta": -0.1}, {"beta": 1.1}, {"beta": 0.5, "temperature": 0.0}])
def test_out_of_range(options):
    with pytest.raises(ValueError, match="must be"):
        generalised_jsd(torch.zeros(1, 2), torch.zeros(1, 2), **options)
