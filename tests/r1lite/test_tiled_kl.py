"""The exact KL and the sums of squared probabilities, against whole softmaxes."""

import pytest
import torch

from r1lite.rl import tiles
from r1lite.rl.tiled_kl import square_masses, tiled_kl
from r1lite.rl.tiles import Head


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(tiles, "_CPU_TILE", (3, 4))


def models(seed=0, *, tokens=7, vocabulary=11, softcap=None, bias=False):
    torch.manual_seed(seed)

    def make(*shape):
        return torch.randn(*shape, dtype=torch.float64)

    ours = Head(make(vocabulary, 5).requires_grad_(), make(vocabulary).requires_grad_() if bias else None, 1.3, softcap)
    theirs = Head(make(vocabulary, 6), None, 1.0, None)
    return make(tokens, 5).requires_grad_(), ours, make(tokens, 6), theirs


def plain_kl(hidden, head, ref_hidden, ref_head, temperature):
    p = head.logits(hidden, temperature=temperature).log_softmax(-1)
    q = ref_head.logits(ref_hidden, temperature=temperature).log_softmax(-1)
    return (p.exp() * (p - q)).sum(-1)


@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}, {"bias": True}, {"tokens": 1, "vocabulary": 4}])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_kl_and_its_gradients(options, temperature):
    hidden, head, ref_hidden, ref_head = models(**options)
    wanted = [hidden, head.weight] + ([head.bias] if head.bias is not None else [])
    weights = torch.randn(len(hidden), dtype=torch.float64)
    expected = plain_kl(hidden, head, ref_hidden, ref_head, temperature)
    found = tiled_kl(hidden, head, ref_hidden, ref_head, temperature=temperature)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    theirs = torch.autograd.grad((expected * weights).sum(), wanted)
    for ours, wanted_gradient in zip(torch.autograd.grad((found * weights).sum(), wanted), theirs, strict=True):
        torch.testing.assert_close(ours, wanted_gradient, rtol=1e-10, atol=1e-10)
    into = tiled_kl(hidden, head, ref_hidden, ref_head, temperature=temperature, into_grad=True)
    (into * weights).sum().backward()
    torch.testing.assert_close(head.weight.grad, theirs[1], rtol=1e-10, atol=1e-10)


def test_a_policy_that_is_the_reference_has_kl_0():
    hidden, head, _, _ = models()
    found = tiled_kl(hidden, head, hidden.detach(), head)
    assert found.abs().max() < 1e-12
    assert max(g.abs().max() for g in torch.autograd.grad(found.sum(), [hidden, head.weight])) < 1e-12


def test_other_vocabularies_are_refused():
    hidden, head, ref_hidden, ref_head = models()
    with pytest.raises(ValueError, match="11 tokens, the reference 10"):
        tiled_kl(hidden, head, ref_hidden, Head(ref_head.weight[:10]))


def test_square_masses():
    hidden, head, _, _ = models()
    expected = head.logits(hidden, temperature=0.7).softmax(-1).square().sum(-1)
    torch.testing.assert_close(square_masses(hidden, head, temperature=0.7), expected, rtol=1e-10, atol=1e-10)
    flat = Head(torch.zeros(8, 5, dtype=torch.float64))
    assert square_masses(hidden, flat).tolist() == pytest.approx([1 / 8] * 7)
