"""The trained model: micro-batches, shared prompts, log-probabilities, adapters, memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Inside the context, the model is in evaluation mode: in training mode, which gradient checkpointing needs, layers
    drop the cache."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
