"""The gated MLP of Llama and its successors on CPUs, in fewer passes over memory and with the same results.

    y = W_down (s(g) u),  s(g) = g sigmoid(g),  g = W_gate x,  u = W_up x

autograd keeps s(g) for the backward pass and writes every product to memory of its own. Here s(g) is computed again,
and products replace one of their factors.
"""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

_LAYERS = ("gate_proj", "up_proj", "down_proj")
_SMALL = 8  # wide
_BLOCK = 1 << 17  # elements that stay in a core's cache from one operation to the next


class _Gated(torch.autograd.Function):
    """s(g) u; all tensors [..., I]."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        gated = up.new_empty(up.shape)
        for g, u, out in _blocks(gate, up, gated):
            torch.ops.aten.silu.out(g, out=out).mul_(u)
        return gated

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        of_gate, of_up = (gate.new_empty(gate.shape) for _ in range(2))
        for g, u, pull, of_g, of_u in _blocks(gate, up, grad, of_gate, of_up):
            torch.mul(pull, u, out=of_g)
            torch.ops.aten.silu_backward.grad_input(of_g, g, grad_input=of_g)
            torch.ops.aten.silu.out(g, out=of_u).mul_(pull)
        return of_gate, of_up


def _blocks(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """The rows of all tensors, a few at a time; all at once if they are only shapes, as in the planning of memory."""
    width = tensors[0].shape[-1]
    rows = max(1, _BLOCK // width) if type(tensors[0]) is Tensor else max(1, tensors[0].numel())
    return zip(*(tensor.reshape(-1, width).split(rows) for tensor in tensors), strict=True)


def quicken_gates(model: nn.Module) -> None:
    """Replaces the model's gated MLPs by this implementation on CPUs; each class is tested first."""
    known: dict[type, bool] = {}
    for module in model.modules():
        kind = type(module)
        if kind not in known:
            known[kind] = _is_gated(module)
        if known[kind]:
            module.forward = types.MethodType(_forward, module)


def _forward(module: Any, hidden_states: Tensor) -> Tensor:
    gate, up = module.gate_proj(hidden_states), module.up_proj(hidden_states)
    if gate.device.type == "cpu" and gate.dtype == up.dtype:
        if torch.is_grad_enabled():
            gated: Tensor = _Gated.apply(gate, up)  # type: ignore[no-untyped-call]
        else:
            gated = functional.silu(gate).mul_(up)
    else:
        gated = functional.silu(gate) * up
    return module.down_proj(gated)  # type: ignore[no-any-return]


@torch.no_grad()
def _is_gated(module: Any) -> bool:
    """True if the module's class computes the formula above, tested with small layers in place of its own."""
    if not all(isinstance(getattr(module, name, None), nn.Module) for name in (*_LAYERS, "act_fn")):
        return False
    if len(inspect.signature(module.forward).parameters) != 1:
        return False
    small = copy.copy(module)
    with torch.random.fork_rng(devices=[]):  # their values are drawn
        small._modules = {**module._modules, **{name: nn.Linear(_SMALL, _SMALL) for name in _LAYERS}}
    hidden = torch.linspace(-9, 9, 2 * _SMALL).view(2, _SMALL)
    return torch.equal(type(module).forward(small, hidden), _forward(small, hidden))
