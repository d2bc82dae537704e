"""Exact KL between the next-token distributions of two language models, and their squared masses, tile by tile.

Shapes: N tokens, H hidden size, V vocabulary. Like `tiles.py`, only one tile of logits of each model exists at a time;
statistics are in float32, or float64 for float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from r1lite.rl.tiles import Gradients, Head, logit_tiles, precise


def tiled_kl(
    hidden: Tensor,
    head: Head,
    ref_hidden: Tensor,
    ref_head: Head,
    *,
    temperature: float = 1.0,
    into_grad: bool = False,
) -> Tensor:
    """KL(policy || reference) over the whole vocabulary at each of N tokens, without the [N, V] logits.

        KL = sum_v p_v (log p_v - log q_v);   d KL / d z_v = p_v (log p_v - log q_v - KL)

    The reference may have another hidden size, but must have the same vocabulary.

    Args:
        hidden: [N, H] of the policy; gradients flow to it and to `head`, once only.
        ref_hidden: [N, H'] of the reference.
        temperature: of both distributions, > 0.
        into_grad: add the head's gradient to `head.weight.grad` itself, as in `tiles.tiled_logprobs`.

    Returns: [N], nats, >= 0 up to rounding.

    Raises:
        ValueError: vocabularies of different sizes.
    """
    if len(head.weight) != len(ref_head.weight):
        raise ValueError(f"the policy has {len(head.weight)} tokens, the reference {len(ref_head.weight)}")
    kl: Tensor = _TiledKL.apply(  # type: ignore[no-untyped-call]
        hidden, head.weight, head.bias, ref_hidden, head, ref_head, temperature, into_grad and head.weight.requires_grad
    )
    return kl


@torch.no_grad()
def square_masses(hidden: Tensor, head: Head, *, temperature: float = 1.0) -> Tensor:
    """sum_v p_v^2 of each token's distribution, [N, H] -> [N]: 1 for a certain token, 1 / V for a uniform distribution.

    Computed from two normalisers: exp(logsumexp(2 z) - 2 logsumexp(z)).
    """
    once, twice = _Normaliser(hidden), _Normaliser(hidden)
    for _, _, rows, logits in logit_tiles(hidden, head, temperature):
        once.add(rows, logits)
        twice.add(rows, 2 * logits)
    return (twice.value() - 2 * once.value()).exp()


class _Normaliser:
    """logsumexp over tiles, and the mean of x under the softmax."""

    def __init__(self, hidden: Tensor) -> None:
        self.top = hidden.new_full((len(hidden),), -torch.inf, dtype=precise(hidden))
        self.mass, self.moment = torch.zeros_like(self.top), torch.zeros_like(self.top)

    def add(self, rows: slice, logits: Tensor, x: Tensor | None = None) -> None:
        higher = torch.maximum(self.top[rows], logits.amax(dim=1))
        faded, weights = (self.top[rows] - higher).exp(), (logits - higher[:, None]).exp()
        self.mass[rows] = faded * self.mass[rows] + weights.sum(dim=1)
        if x is not None:
            self.moment[rows] = faded * self.moment[rows] + (weights * x).sum(dim=1)
        self.top[rows] = higher

    def value(self) -> Tensor:
        return self.top + self.mass.log()

    def mean(self) -> Tensor:
        return self.moment / self.mass


class _TiledKL(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        ref_hidden: Tensor,
        head: Head,
        ref_head: Head,
        temperature: float,
        into_grad: bool,
    ) -> Tensor:
        ours, theirs = _Normaliser(hidden), _Normaliser(hidden)

        def add(columns: slice, _: Tensor, rows: slice, logits: Tensor, ref_logits: Tensor) -> None:
            ours.add(rows, logits, logits - ref_logits)
            theirs.add(rows, ref_logits)

        with torch.autocast(hidden.device.type, enabled=False):
            _in_pairs(hidden, head, ref_hidden, ref_head, temperature, add)
        shift = ours.value() - theirs.value()  # log p - log q = z - z_ref - shift
        kl = ours.mean() - shift
        ctx.save_for_backward(hidden, weight, bias, ref_hidden, ours.value(), shift, kl)
        ctx.head, ctx.ref_head, ctx.temperature, ctx.into_grad = head, ref_head, temperature, into_grad
        return kl

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_kl: Tensor) -> tuple[Any, ...]:
        hidden, weight, bias, ref_hidden, normaliser, shift, kl = ctx.saved_tensors
        head = Head(weight, bias, ctx.head.scale, ctx.head.softcap)
        grads = Gradients.of(hidden, head, ctx.needs_input_grad, into=ctx.head.weight if ctx.into_grad else None)
        pull = of_kl / ctx.temperature

        def add(columns: slice, part: Tensor, rows: slice, logits: Tensor, ref_logits: Tensor) -> None:
            bend = None if head.softcap is None else 1 - (logits * (ctx.temperature / head.softcap)).square()
            excess = logits - ref_logits - (shift + kl)[rows][:, None]
            of_logits = (logits - normaliser[rows][:, None]).exp_() * excess * pull[rows][:, None]
            grads.add(columns, rows, of_logits if bend is None else of_logits * bend, part, hidden[rows], head.scale)

        with torch.autocast(hidden.device.type, enabled=False):
            _in_pairs(hidden, head, ref_hidden, ctx.ref_head, ctx.temperature, add)
        of_hidden = None if grads.hidden is None else grads.hidden.to(hidden.dtype)
        of_weight = None if grads.weight is None or ctx.into_grad else grads.weight
        return of_hidden, of_weight, grads.bias, None, None, None, None, None


def _in_pairs(
    hidden: Tensor,
    head: Head,
    ref_hidden: Tensor,
    ref_head: Head,
    temperature: float,
    use: Callable[[slice, Tensor, slice, Tensor, Tensor], None],
) -> None:
    """Calls `use` with each tile's columns, policy weight and rows, and with both models' logits of the tile."""
    theirs = logit_tiles(ref_hidden, ref_head, temperature)
    for (columns, weight, rows, logits), (_, _, _, ref_logits) in zip(
        logit_tiles(hidden, head, temperature), theirs, strict=True
    ):
        use(columns, weight, rows, logits, ref_logits.to(logits.dtype))
