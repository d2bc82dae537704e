"""RMSNorm on CPUs: transformers' own passes over memory ten times forward and backward, mostly for autograd.

    y = w x r,  r = 1 / sqrt(mean x^2 + eps)
    dL/dx = r (w g - x r^2 mean(w g x)),  dL/dw = sum g x r

Layer norm's backward kernel computes both in one pass if its mean is set to 0, except that it subtracts the share of
the mean: r mean(w g) is added again.
"""

from __future__ import annotations

import contextlib
import inspect
import types
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_PROBE = 2  # rows
_SMALL = 8  # wide


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
        scale = _scale(hidden, eps)
        ctx.save_for_backward(hidden, weight, scale)
        return (hidden * scale).mul_(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        hidden, weight, scale = ctx.saved_tensors
        wanted = [*ctx.needs_input_grad[:2], False]
        with torch.autocast("cpu", enabled=False):
            of_hidden, of_weight, _ = torch.ops.aten.native_layer_norm_backward(
                grad.contiguous(), hidden, list(weight.shape), torch.zeros_like(scale), scale, weight, None, wanted
            )
            if wanted[0]:
                of_hidden.add_((grad @ weight)[..., None].mul_(scale).div_(len(weight)))
        return of_hidden, of_weight, None


def _scale(hidden: Tensor, eps: float) -> Tensor:
    """r: [..., H] -> [..., 1]."""
    norm = torch.linalg.vector_norm(hidden, dim=-1, keepdim=True)
    return torch.addcmul(norm.new_full((), eps), norm, norm, value=1 / hidden.shape[-1]).rsqrt_()


def quicken_norms(model: nn.Module) -> None:
    """Replaces the model's RMSNorms by this implementation, for float32 weights and inputs on a CPU.

    Each module is tested before it is replaced: some multiply by 1 + w, or round in another order.
    """
    for module in model.modules():
        if _is_rms_norm(module):
            module.forward = types.MethodType(_forward, module)


def quicken_shapes(model: nn.Module) -> None:
    """As `quicken_norms`, for a model without values: tests a small norm of each class instead."""
    known: dict[type, bool] = {}
    for module in model.modules():
        kind = type(module)
        if kind not in known:
            known[kind] = False
            if kind.__name__.endswith("RMSNorm"):
                with contextlib.suppress(TypeError):
                    known[kind] = _is_rms_norm(kind(_SMALL))
        if known[kind]:
            module.forward = types.MethodType(_forward, module)


def _forward(module: Any, hidden_states: Tensor) -> Tensor:
    weight, eps = module.weight, module.variance_epsilon
    if hidden_states.device.type != "cpu" or not hidden_states.dtype == weight.dtype == torch.float32:
        return type(module).forward(module, hidden_states)  # type: ignore[no-any-return]
    if not torch.is_grad_enabled():  # the same result, without autograd's cost at each token
        return (hidden_states * _scale(hidden_states, eps)).mul_(weight)
    return _RMSNorm.apply(hidden_states, weight, eps)  # type: ignore[no-any-return,no-untyped-call]


@torch.no_grad()
def _is_rms_norm(module: Any) -> bool:
    if not type(module).__name__.endswith("RMSNorm") or not isinstance(
        getattr(module, "variance_epsilon", None), float
    ):
        return False
    weight = getattr(module, "weight", None)
    if weight is None or weight.ndim != 1 or not len(weight) or weight.device.type != "cpu":
        return False
    if len(inspect.signature(module.forward).parameters) != 1:
        return False
    hidden = torch.linspace(-2, 3, _PROBE * len(weight)).view(_PROBE, -1)
    # Weights that are still in their files may have another precision than in training.
    expected, ours = module(hidden), hidden * _scale(hidden, module.variance_epsilon) * weight.float()
    return torch.allclose(expected.float(), ours, rtol=1e-5, atol=1e-6)
