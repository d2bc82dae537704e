"""The gated MLP as it is computed on CPUs is transformers' own, bit for bit."""

import copy

import pytest
import torch
from conftest import make_tiny_model
from torch import nn
from transformers import Qwen2Config
from transformers.models.qwen2.modeling_qwen2 import Qwen2MLP

from r1lite.model import gates
from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy

pytestmark = pytest.mark.quick

ROWS = [Row((3, 4, 5), (6, 7, 8, 9)), Row((3, 4, 5), (10, 11)), Row((12, 13), (14, 15, 16))]


def both(kind=Qwen2MLP):
    """transformers' module, and one that computes it so, with the same weights."""
    library = kind(Qwen2Config(hidden_size=24, intermediate_size=40))
    quick = copy.deepcopy(library)
    gates.quicken_gates(quick)
    return library, quick


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_values_and_gradients_are_the_library_s(dtype):
    library, quick = (module.to(dtype) for module in both())
    assert "forward" in vars(quick)
    hidden = torch.randn(3, 7, 24, generator=torch.Generator().manual_seed(1)).to(dtype) * 3
    found = []
    for module in (library, quick):
        leaf = hidden.clone().requires_grad_()
        out = module(leaf)
        out.square().sum().backward()
        with torch.no_grad():
            assert torch.equal(module(hidden), out)
        found.append([out, leaf.grad, *(parameter.grad for parameter in module.parameters())])
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(*found, strict=True))


def test_gradcheck():
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(2, 3, 5, dtype=torch.float64, generator=generator).requires_grad_() for _ in range(2)]
    assert torch.autograd.gradcheck(gates._Gated.apply, given)


def test_a_copy_has_weights_of_its_own():
    _, quick = both()
    other = copy.deepcopy(quick)
    with torch.no_grad():
        other.down_proj.weight.zero_()
    assert not other(torch.ones(1, 24)).any()
    assert quick(torch.ones(1, 24)).all()


class WithGelu(Qwen2MLP):
    def __init__(self, config):
        super().__init__(config)
        self.act_fn = nn.GELU()


class ThatBounds(Qwen2MLP):
    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)).clamp(max=0.1) * self.up_proj(x))


class WithoutUp(Qwen2MLP):
    def __init__(self, config):
        super().__init__(config)
        del self.up_proj

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)))


class OfTwo(Qwen2MLP):
    def forward(self, x, weight=None):
        return super().forward(x)


@pytest.mark.parametrize("kind", [WithGelu, ThatBounds, WithoutUp, OfTwo])
def test_other_mlps_are_left_alone(kind):
    assert "forward" not in vars(both(kind)[1])


def test_layers_of_other_classes_are_called():
    library, quick = (nn.Sequential(module) for module in both())
    vars(quick[0]).pop("forward")
    for module in (library, quick):
        module[0].gate_proj = nn.Sequential(nn.Identity(), module[0].gate_proj)
    gates.quicken_gates(quick)
    assert "forward" in vars(quick[0])
    assert torch.equal(quick(torch.ones(1, 24)), library(torch.ones(1, 24)))


def test_the_test_of_a_class_draws_no_random_number():
    library, _ = both()
    state = torch.get_rng_state()
    gates.quicken_gates(library)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_policy_s_gradient_is_the_library_s():
    model, found = make_tiny_model(), []
    policy = Policy(model, pad_id=0)
    quick = [module for module in model.modules() if isinstance(module, Qwen2MLP) and "forward" in vars(module)]
    assert len(quick) == 2
    (batch,) = micro_batches(ROWS, 100, 0, "cpu")
    for _ in range(2):
        policy.logprobs(batch)[batch.loss_mask].mean().backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        model.zero_grad()
        for module in quick:
            vars(module).pop("forward", None)
    assert torch.equal(*found)
