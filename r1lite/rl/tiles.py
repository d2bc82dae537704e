"""Log-probabilities and entropies of tokens from hidden states, without the [N, V] logits.

The head's matrix is processed in tiles of the vocabulary, and the tokens in tiles of their own, so that only one tile
of logits exists at a time. The backward pass computes each tile again and adds its gradient in place.

    z = cap(h W^T * scale + b) / T,  cap(x) = softcap * tanh(x / softcap)
    lp = z_y - logsumexp z          d lp / d z = 1_y - p
    H = logsumexp z - sum p z       d H / d z = -p (log p + H)

Shapes: N tokens, H hidden size, V vocabulary. Statistics and sums over tiles are in float32, or float64 for float64.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Tokens and vocabulary entries of a tile: 8 MB of float32 fit a CPU's cache; a GPU needs larger products.
_CPU_TILE = 1024, 2048
_GPU_TILE = 4096, 16384


@dataclass(frozen=True, slots=True)
class Head:
    """The last layer of a language model: logits = cap(hidden @ weight.T * scale + bias).

    Args:
        weight: [V, H].
        bias: [V], or none.
        scale: factor of the logits (Cohere, Granite).
        softcap: bound of the logits (Gemma 2), or none.
    """

    weight: Tensor
    bias: Tensor | None = None
    scale: float = 1.0
    softcap: float | None = None

    def logits(self, hidden: Tensor, *, temperature: float = 1.0) -> Tensor:
        """[..., H] -> [..., V], divided by the temperature; the product in hidden's precision, the rest in float32."""
        return _shape(hidden @ self.weight.to(hidden.dtype).T, self, self.bias, temperature)


def tiled_logprobs(
    hidden: Tensor, head: Head, token_ids: Tensor, *, temperature: float, entropy: bool, into_grad: bool
) -> tuple[Tensor, Tensor]:
    """(lp [N], H [N]) of tokens [N] under hidden states [N, H]; H is empty unless `entropy`.

    Args:
        into_grad: add the head's gradient to `head.weight.grad` itself instead of giving autograd a second matrix
            of that size; the weight must be a leaf. `torch.autograd.grad` then does not see the weight's gradient.
    """
    outcome: tuple[Tensor, Tensor] = _Tiled.apply(  # type: ignore[no-untyped-call]
        hidden, head.weight, head.bias, token_ids, head, temperature, entropy, into_grad
    )
    return outcome


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        token_ids: Tensor,
        head: Head,
        temperature: float,
        entropy: bool,
        into_grad: bool,
    ) -> tuple[Tensor, Tensor]:
        with torch.autocast(hidden.device.type, enabled=False):
            logprobs, entropies, normaliser = _forward(hidden, head, token_ids, temperature, entropy)
        ctx.save_for_backward(hidden, weight, bias, token_ids, normaliser, entropies)
        ctx.head, ctx.temperature, ctx.entropy, ctx.into_grad = head, temperature, entropy, into_grad
        return logprobs, entropies

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_logprobs: Tensor, of_entropies: Tensor) -> tuple[Any, ...]:
        hidden, weight, bias, token_ids, normaliser, entropies = ctx.saved_tensors
        head = Head(weight, bias, ctx.head.scale, ctx.head.softcap)
        with torch.autocast(hidden.device.type, enabled=False):
            grads = Gradients.of(hidden, head, ctx.needs_input_grad, into=ctx.head.weight if ctx.into_grad else None)
            entropy = (of_entropies, entropies) if ctx.entropy else None
            _backward(hidden, head, token_ids, ctx.temperature, normaliser, of_logprobs, entropy, grads)
        of_hidden = None if grads.hidden is None else grads.hidden.to(hidden.dtype)
        of_weight = None if grads.weight is None or ctx.into_grad else grads.weight
        return of_hidden, of_weight, grads.bias, None, None, None, None, None


def _forward(
    hidden: Tensor, head: Head, token_ids: Tensor, temperature: float, entropy: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """(lp, H, logsumexp), each [N]."""
    count, dtype = len(hidden), precise(hidden)
    top = hidden.new_full((count,), -torch.inf, dtype=dtype)  # largest logit so far
    mass = hidden.new_zeros(count, dtype=dtype)  # sum e^(z - top)
    slope = hidden.new_zeros(count if entropy else 0, dtype=dtype)  # sum e^(z - top) (z - top)
    chosen = hidden.new_zeros(count, dtype=dtype)  # z_y
    for columns, _, rows, logits in logit_tiles(hidden, head, temperature):
        local = token_ids[rows] - columns.start
        inside = (local >= 0) & (local < logits.shape[1])
        local_logits = logits.gather(1, local.clamp(0, logits.shape[1] - 1)[:, None]).squeeze(1)
        chosen[rows] += torch.where(inside, local_logits, 0.0)
        higher = torch.maximum(top[rows], logits.amax(dim=1))
        step = top[rows] - higher  # <= 0; -inf in the first tile, where the sums are 0
        faded = step.exp()
        logits.sub_(higher[:, None])
        weights = logits.exp() if entropy else logits.exp_()
        total = weights.sum(dim=1)
        if entropy:
            moved = torch.where(mass[rows] > 0, slope[rows] + step * mass[rows], 0.0)
            slope[rows] = faded * moved + weights.mul_(logits).sum(dim=1)
        mass[rows] = faded * mass[rows] + total
        top[rows] = higher
    normaliser = top + mass.log()
    entropies = mass.log() - slope / mass if entropy else slope
    return chosen - normaliser, entropies, normaliser


def _backward(
    hidden: Tensor,
    head: Head,
    token_ids: Tensor,
    temperature: float,
    normaliser: Tensor,
    of_logprobs: Tensor,
    entropy: tuple[Tensor, Tensor] | None,
    grads: Gradients,
) -> None:
    """Adds the gradients of the loss to `grads`, given dL/d lp [N] and, with `entropy` = (dL/d H, H), dL/d H [N]."""
    pull = of_logprobs / temperature
    for columns, weight, rows, logits in logit_tiles(hidden, head, temperature):
        bend = None if head.softcap is None else 1 - (logits * (temperature / head.softcap)).square_()
        g = pull[rows][:, None]
        logprobs = logits.sub_(normaliser[rows][:, None])
        if entropy is None:
            of_logits = logprobs.exp_().mul_(-g)
        else:
            of_entropies, entropies = (values[rows][:, None] for values in entropy)
            probs = logprobs.exp()
            of_logits = logprobs.add_(entropies).mul_(of_entropies / temperature).add_(g).mul_(probs).neg_()
        local = token_ids[rows] - columns.start
        inside = (local >= 0) & (local < logits.shape[1])
        of_logits.scatter_add_(
            1, local.clamp(0, logits.shape[1] - 1)[:, None], torch.where(inside, pull[rows], 0.0)[:, None]
        )
        if bend is not None:
            of_logits.mul_(bend)
        grads.add(columns, rows, of_logits, weight, hidden[rows], head.scale)


@dataclass(slots=True)
class Gradients:
    """Sums over tiles of dL/dz, propagated to the hidden states, the head's weight and bias; None = not needed."""

    hidden: Tensor | None
    weight: Tensor | None
    bias: Tensor | None
    fresh: bool  # `weight` holds nothing yet

    @classmethod
    def of(cls, hidden: Tensor, head: Head, wanted: tuple[bool, ...], *, into: Tensor | None) -> Gradients:
        """Empty sums; `wanted`: for hidden, weight and bias; `into`: the weight whose `.grad` receives the sum."""
        weight, fresh = None, False
        if wanted[1]:
            fresh = into is None or into.grad is None
            weight = torch.empty_like(head.weight) if fresh else into.grad  # type: ignore[union-attr]
            if into is not None:
                into.grad = weight
        return cls(
            hidden=torch.zeros_like(hidden, dtype=precise(hidden)) if wanted[0] else None,
            weight=weight,
            bias=None if head.bias is None or not wanted[2] else torch.zeros_like(head.bias),
            fresh=fresh,
        )

    def add(self, columns: slice, rows: slice, of_logits: Tensor, weight: Tensor, hidden: Tensor, scale: float) -> None:
        """Adds one tile: dL/dz [n, v], with the tile's weight [v, H] and hidden states [n, H]."""
        if self.bias is not None:
            self.bias[columns] += of_logits.sum(dim=0)
        low = of_logits.to(weight.dtype)
        if self.hidden is not None:
            self.hidden[rows].add_(_product(low, weight), alpha=scale)
        if self.weight is not None:
            if self.fresh and rows.start == 0:
                self.weight[columns] = _product(low.T, hidden).mul_(scale)
            else:
                self.weight[columns].add_(_product(low.T, hidden), alpha=scale)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """[m, k] @ [k, n]. On AMD's AVX-512 CPUs PyTorch's own product runs at half the speed of oneDNN's."""
    if left.dtype == torch.float32 and left.device.type == "cpu" and prefers_onednn():
        product: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.T, None, "none", [], "")
        return product
    return left @ right


@functools.cache
def prefers_onednn() -> bool:
    """True if oneDNN multiplies float32 matrices faster than PyTorch's own product."""
    # Decided by CPU features, not by timing: a resumed run must round as the first run did.
    available = bool(torch.backends.mkldnn.is_available())
    return available and torch.backends.cpu.get_cpu_capability() == "AVX512" and not suits_mkl()


@functools.cache
def suits_mkl() -> bool:
    """True if the CPU is Intel's: PyTorch's own float32 products use MKL, which runs slower code on other CPUs."""
    return "Intel" in str(torch.cpu.get_capabilities().get("cpu_name", ""))


def logit_tiles(hidden: Tensor, head: Head, temperature: float) -> Iterator[tuple[slice, Tensor, slice, Tensor]]:
    """Yields (columns, weight [v, H], rows, logits [n, v]) of each tile; the caller may overwrite the logits.

    The inner loop is over tokens, so that each part of the head is read and cast only once.
    """
    count, vocabulary = len(hidden), len(head.weight)
    height, width = _CPU_TILE if hidden.device.type == "cpu" else _GPU_TILE
    for left in range(0, vocabulary, width):
        columns = slice(left, min(left + width, vocabulary))
        weight = head.weight[columns].to(hidden.dtype)
        bias = None if head.bias is None else head.bias[columns]
        for upper in range(0, count, height):
            rows = slice(upper, min(upper + height, count))
            yield columns, weight, rows, _shape(_product(hidden[rows], weight.T), head, bias, temperature)


def _shape(product: Tensor, head: Head, bias: Tensor | None, temperature: float) -> Tensor:
    """h W^T -> cap(h W^T * scale + b) / T, in float32 or better; `product` may be overwritten."""
    logits = product.to(precise(product))
    if head.scale != 1.0:
        logits = logits.mul_(head.scale)
    if bias is not None:
        logits = logits.add_(bias)
    if head.softcap is not None:
        logits = logits.div_(head.softcap).tanh() * head.softcap
    return logits.div_(temperature) if temperature != 1.0 else logits


def precise(values: Tensor) -> torch.dtype:
    """The precision of statistics over `values`."""
    return torch.float64 if values.dtype == torch.float64 else torch.float32
