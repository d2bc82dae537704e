"""AdamW on a model, with a clipped gradient and a guard against non-finite ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from r1lite.config import OptimizerConfig
from r1lite.model.gradients import nonfinite_gradients


class Optimizer:
    """AdamW on a model, with a clipped gradient and a guard against non-finite ones."""

    def __init__(
        self, model: nn.Module, *, betas: tuple[float, float], weight_decay: float, max_grad_norm: float
    ) -> None:
        self.model, self.max_grad_norm = model, max_grad_norm
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.nonfinite: list[str] = []  # parameters whose gradient was not finite at the last step
        self.adamw = torch.optim.AdamW(self.parameters, lr=0.0, betas=betas, weight_decay=weight_decay, fused=True)

    @classmethod
    def configured(cls, model: nn.Module, config: OptimizerConfig) -> Optimizer:
        """With the configuration's betas, weight decay and gradient norm."""
        return cls(
            model,
            betas=(config.adam_beta1, config.adam_beta2),
            weight_decay=config.weight_decay,
            max_grad_norm=config.max_grad_norm,
        )

    def step(self, lr: float) -> float | None:
        """Applies the accumulated gradient and clears it.

        Returns:
            The gradient's global norm before clipping, or None if it is not finite: then nothing was changed.
        """
        # Not clip_grad_norm_: where the norm is NaN it makes every gradient NaN, and nobody could tell whose it was.
        norm = nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        finite = bool(torch.isfinite(norm))
        self.nonfinite = [] if finite else nonfinite_gradients(self.model.named_parameters())
        if finite:
            nn.utils.clip_grads_with_norm_(self.parameters, self.max_grad_norm, norm)
            for group in self.adamw.param_groups:
                group["lr"] = lr
            self.adamw.step()
        self.discard()
        return float(norm) if finite else None

    def discard(self) -> None:
        """Clears the accumulated gradient."""
        self.adamw.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, Any]:
        """Moments of the gradient, as `torch.optim.AdamW` keeps them."""
        return self.adamw.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        self.adamw.load_state_dict(state)
