"""The trained model: micro-batches, shared prompts, log-probabilities, adapters, memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


def vocabulary_size(model: Any) -> int:
    """Returns the number of tokens that the model has embeddings for."""
    return int(model.get_input_embeddings().weight.shape[0])  # an adapted layer has no `num_embeddings`


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
