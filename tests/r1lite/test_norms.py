"""RMSNorm as it is computed on CPUs is transformers' own."""

import copy

import pytest
import torch
from conftest import make_tiny_model
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm

from r1lite.model import norms
from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy

pytestmark = pytest.mark.quick

ROWS = [Row((3, 4, 5), (6, 7, 8, 9)), Row((3, 4, 5), (10, 11)), Row((12, 13), (14, 15, 16))]


def both(width, *, eps=1e-6):
    """transformers' module, and one that computes it so; the same weights, neither 0 nor 1."""
    library = Qwen2RMSNorm(width, eps=eps)
    with torch.no_grad():
        library.weight.uniform_(-2, 2, generator=torch.Generator().manual_seed(width))
    quick = copy.deepcopy(library)
    norms.quicken_norms(quick)
    assert "forward" in vars(quick)
    return library, quick


@pytest.mark.parametrize("learns", [(True, True), (True, False), (False, True)])
def test_gradcheck(learns):
    generator = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in [(2, 3, 5), (5,)])
    given = [hidden.requires_grad_(learns[0]), weight.requires_grad_(learns[1])]
    assert torch.autograd.gradcheck(lambda *inputs: norms._RMSNorm.apply(*inputs, 1e-2), given)


@pytest.mark.parametrize("width", [4, 96, 256])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e3])
def test_values_and_gradients_are_near_the_library_s(width, scale):
    library, quick = both(width)
    hidden = (torch.randn(7, width, 5, generator=torch.Generator().manual_seed(1)) * scale).transpose(1, 2)
    pull = torch.randn(7, width, 5, generator=torch.Generator().manual_seed(2)).transpose(1, 2)
    found = []
    for module in (library, quick):
        leaf = hidden.detach().requires_grad_()
        normed = module(leaf)
        normed.backward(pull)
        found.append((normed.detach(), leaf.grad * scale, module.weight.grad))
    for mine, theirs in zip(found[1], found[0], strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-5, atol=2e-6 * float(theirs.abs().max()))


def test_it_rounds_the_same_with_and_without_a_gradient():
    _, quick = both(96)
    hidden = torch.randn(33, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        without = quick(hidden)
    assert torch.equal(quick(hidden.requires_grad_()), without)


def test_other_precisions_are_the_library_s():
    library, quick = both(96)
    hidden = torch.randn(33, 96, generator=torch.Generator().manual_seed(0))
    assert torch.equal(quick(hidden.bfloat16()), library(hidden.bfloat16()))
    assert torch.equal(quick.double()(hidden.double()), library.double()(hidden.double()))


def test_weights_that_are_read_in_another_precision_are_computed_so_once_they_are_in_float32():
    library, _ = both(96)
    module = copy.deepcopy(library).bfloat16()
    norms.quicken_norms(module)
    quick = copy.deepcopy(library.bfloat16().float())
    norms.quicken_norms(quick)
    hidden = torch.randn(33, 96, generator=torch.Generator().manual_seed(0))
    assert torch.equal(module.float()(hidden), quick(hidden))


def test_a_copy_has_weights_of_its_own():
    _, quick = both(8)
    other = copy.deepcopy(quick)
    with torch.no_grad():
        other.weight.zero_()
    assert not other(torch.ones(1, 8)).any()
    assert quick(torch.ones(1, 8)).all()


class OneMoreRMSNorm(Qwen2RMSNorm):
    """Multiplies by 1 + w, as Gemma's does."""

    def forward(self, hidden_states):
        return super().forward(hidden_states) + super().forward(hidden_states) / self.weight


class GatedRMSNorm(Qwen2RMSNorm):
    def forward(self, hidden_states, gate=None):
        return super().forward(hidden_states if gate is None else hidden_states * gate)


@pytest.mark.parametrize("kind", [OneMoreRMSNorm, GatedRMSNorm])
def test_norms_that_compute_something_else_are_left_alone(kind):
    module = kind(8)
    norms.quicken_norms(module)
    assert "forward" not in vars(module)


def test_a_policy_s_gradient_is_near_the_library_s():
    model, found = make_tiny_model(), []
    policy = Policy(model, pad_id=0)
    quick = [module for module in model.modules() if isinstance(module, Qwen2RMSNorm) and "forward" in vars(module)]
    assert len(quick) == 5  # two a layer, and the last
    (batch,) = micro_batches(ROWS, 100, 0, "cpu")
    for _ in range(2):
        policy.logprobs(batch)[batch.loss_mask].mean().backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        model.zero_grad()
        for module in quick:
            vars(module).pop("forward", None)
    assert torch.allclose(*found, rtol=1e-4, atol=1e-5 * float(found[1].abs().max()))
