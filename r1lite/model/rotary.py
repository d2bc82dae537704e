"""Rotary position embeddings on CPUs in fewer passes over memory.

    y_1 = x_1 cos_1 - x_2 sin_1,  y_2 = x_2 cos_2 + x_1 sin_2        for the two halves of each head

transformers first makes (-x_2, x_1), and autograd takes this apart again.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_NAME = "apply_rotary_pos_emb"  # of the function in transformers' modelling files
_EXACT = (torch.float32, torch.float64)


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _rotated(states, cos, sin)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        first, second = sin.chunk(2, dim=-1)
        return _rotated(grad, cos, torch.cat([-second, -first], dim=-1)), None, None


def _rotated(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """[B, heads, T, d], with cos and sin [B, 1, T, d]."""
    made = states * cos
    (x_1, x_2), (y_1, y_2), (sin_1, sin_2) = (tensor.chunk(2, dim=-1) for tensor in (states, made, sin))
    y_1.addcmul_(x_2, sin_1, value=-1)
    y_2.addcmul_(x_1, sin_2)
    return made


def quicken_rotary(model: nn.Module) -> None:
    """Gives the model's attention modules this implementation, where it computes what their own function does."""
    known: dict[type, Callable[..., Any] | None] = {}
    for module in model.modules():
        kind = type(module)
        if kind not in known:
            known[kind] = _quick_forward(kind)
        quick = known[kind]
        if quick is not None:
            module.forward = types.MethodType(quick, module)


def _quick_forward(kind: type) -> Callable[..., Any] | None:
    """The class's own forward pass with the other function in place of the library's; None if that isn't the same."""
    forward: Any = vars(kind).get("forward")
    if not isinstance(forward, types.FunctionType) or _NAME not in forward.__code__.co_names:
        return None
    library = forward.__globals__.get(_NAME)
    if library is None or not _is_same(library):
        return None
    named = {**forward.__globals__, _NAME: functools.partial(_apply, library)}
    quick = types.FunctionType(forward.__code__, named, forward.__name__, forward.__defaults__, forward.__closure__)
    quick.__kwdefaults__ = forward.__kwdefaults__
    return functools.wraps(forward)(quick)


def _apply(library: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *more: Any, **named: Any) -> Any:
    ours = q.device.type == "cpu" and q.dtype in _EXACT and q.dtype == k.dtype == cos.dtype == sin.dtype
    whole = q.shape[-1] == k.shape[-1] == cos.shape[-1]  # some rotate a part of each head
    if more or named or not (ours and whole) or cos.requires_grad:
        return library(q, k, cos, sin, *more, **named)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    rotate = _Rotate.apply if torch.is_grad_enabled() else _rotated
    return rotate(q, cos, sin), rotate(k, cos, sin)


@torch.no_grad()
def _is_same(library: Any) -> bool:
    query, key = (torch.linspace(-2, 3, 2 * heads * 24).view(2, heads, 3, 8).sin() for heads in (2, 1))
    cos, sin = torch.linspace(-1, 1, 96).square().view(2, 2, 3, 8).unbind()
    try:
        expected = library(query, key, cos, sin)
    except (TypeError, ValueError, RuntimeError, IndexError):  # a function of other arguments
        return False
    found = _apply(library, query, key, cos, sin)
    return all(
        one.shape == other.shape and torch.allclose(one, other, rtol=1e-5, atol=1e-6)
        for one, other in zip(found, expected, strict=True)
    )
