"""AdamW with gradient clipping and a guard against non-finite gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from r1lite.config import OptimizerConfig
from r1lite.distributed.world import ALONE, World
from r1lite.model.sharding import holders, is_part, like, local, part_like


class Optimizer:
    """AdamW on a model, with gradient clipping and a guard against non-finite gradients.

    Args:
        world: the ranks whose gradients are summed.
        offload: keep the moments and a copy of the trained weights in CPU memory, and compute the update there: saves
            8 bytes per weight on a GPU, and costs a transfer of gradients and weights per step.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        betas: tuple[float, float],
        weight_decay: float,
        max_grad_norm: float,
        world: World = ALONE,
        offload: bool = False,
    ) -> None:
        self.model, self.max_grad_norm, self.world = model, max_grad_norm, world
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self._in_parts = [p for p in self.parameters if is_part(p)]
        self.nonfinite: list[str] = []  # parameters whose gradient was not finite at the last step
        # For a sharded weight, AdamW gets this rank's part, in the same memory.
        self._own = [nn.Parameter(local(p).detach()) if is_part(p) else p for p in self.parameters]
        self._offloads = offload
        if offload:
            self._own = [nn.Parameter(own.detach().to("cpu", copy=True)) for own in self._own]
        self.adamw = torch.optim.AdamW(self._own, lr=0.0, betas=betas, weight_decay=weight_decay, fused=True)

    @classmethod
    def configured(
        cls, model: nn.Module, config: OptimizerConfig, world: World = ALONE, *, offload: bool = False
    ) -> Optimizer:
        """An optimizer with the configuration's betas, weight decay and gradient norm."""
        return cls(
            model,
            betas=(config.adam_beta1, config.adam_beta2),
            weight_decay=config.weight_decay,
            max_grad_norm=config.max_grad_norm,
            world=world,
            offload=offload,
        )

    def step(self, lr: float) -> float | None:
        """Applies the gradient that the ranks have accumulated, and clears it.

        Returns:
            The gradient's global norm before clipping, or None if it is not finite; then nothing was changed.
        """
        if self.world.size > 1:
            self._add_up()
        # Not clip_grad_norm_: with a NaN norm it makes every gradient NaN, so the source could not be named.
        norm = self._norm()
        finite = bool(torch.isfinite(norm))
        self.nonfinite = [] if finite else self._nonfinite()
        if finite:
            self._clip(norm)
            for group in self.adamw.param_groups:
                group["lr"] = lr
            for own, p in zip(self._own, self.parameters, strict=True):
                own.grad = None if p.grad is None else local(p.grad).to(own.device)
            self.adamw.step()
            if self._offloads:
                self._copy(to_model=True)
        self.discard()
        return float(norm) if finite else None

    @torch.no_grad()
    def _copy(self, *, to_model: bool) -> None:
        """Copies between the weights that are updated on the CPU and the model's weights."""
        for own, p in zip(self._own, self.parameters, strict=True):
            source, target = (own, local(p)) if to_model else (local(p), own)
            target.copy_(source)

    def _add_up(self) -> None:
        """Replaces every rank's gradient by the sum over ranks; it stays None if no rank has one, as with one rank.

        The gradients of sharded weights are already averaged over the ranks, and are scaled to sums: the loss
        is divided by the counts of the whole minibatch.
        """
        for p in self._in_parts:
            if p.grad is not None:
                local(p.grad).mul_(self.world.size)
        alone = [p for p in self.parameters if not is_part(p)]
        has = self.world.all_gather_object([p.grad is not None for p in alone])
        with_gradient = [p for p, *ranks in zip(alone, *has, strict=True) if any(ranks)]
        for p in with_gradient:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        self.world.add_up([p.grad for p in with_gradient if p.grad is not None])

    def _norm(self) -> Tensor:
        """The global norm of the gradient."""
        whole = [p.grad for p in self.parameters if p.grad is not None and not is_part(p)]
        norm = nn.utils.get_total_norm(whole)
        parts = [local(p.grad) for p in self._in_parts if p.grad is not None]
        if not self._in_parts:
            return norm
        of_parts = zip(parts, (holders(p) for p in self._in_parts if p.grad is not None), strict=True)
        squares = self.world.sum(float(sum(part.double().square().sum() / count for part, count in of_parts)))
        return (norm.double().square() + squares).sqrt()

    def _clip(self, norm: Tensor) -> None:
        if not self._in_parts:
            nn.utils.clip_grads_with_norm_(self.parameters, self.max_grad_norm, norm)
            return
        factor = float((self.max_grad_norm / (norm + 1e-6)).clamp(max=1.0))  # as in torch.nn.utils.clip_grad_norm_
        for p in self.parameters:
            if p.grad is not None:
                local(p.grad).mul_(factor)

    def _nonfinite(self) -> list[str]:
        named = ((name, p) for name, p in self.model.named_parameters())
        local_names = nonfinite_gradients(named)
        return list(dict.fromkeys(name for names in self.world.all_gather_object(local_names) for name in names))

    def discard(self) -> None:
        """Clears the accumulated gradient."""
        for p in (*self.parameters, *self._own):
            p.grad = None

    def state_dict(self) -> dict[str, Any]:
        """The moments, in the format of `torch.optim.AdamW`."""
        state = self.adamw.state_dict()
        of_parameters = {
            number: {
                name: part_like(self.parameters[number], value) if value.ndim else value
                for name, value in moments.items()
            }
            for number, moments in state["state"].items()
        }
        return {**state, "state": of_parameters}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned; the model's weights must be loaded already."""
        if self._offloads:
            self._copy(to_model=False)
        of_parameters = {
            number: {
                name: local(like(self.parameters[number], value)).to(self._own[number].device) if value.ndim else value
                for name, value in moments.items()
            }
            for number, moments in state["state"].items()
        }
        self.adamw.load_state_dict({**state, "state": of_parameters})


def nonfinite_gradients(named_parameters: Any) -> list[str]:
    """Names of the parameters whose gradient contains a NaN or an infinity; call it before gradients are cleared."""
    return [
        name for name, p in named_parameters if p.grad is not None and not bool(torch.isfinite(local(p.grad)).all())
    ]
