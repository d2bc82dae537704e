"""Detection of non-finite gradients."""

from __future__ import annotations

from typing import Any

import torch

from r1lite.model.sharding import local


def nonfinite_gradients(named_parameters: Any) -> list[str]:
    """Names of the parameters whose gradient contains a NaN or an infinity; call it before gradients are cleared."""
    return [
        name for name, p in named_parameters if p.grad is not None and not bool(torch.isfinite(local(p.grad)).all())
    ]
