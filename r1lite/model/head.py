"""Finds where a model's backbone ends and its head begins, so that logits need not be made as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from r1lite.rl.tiles import Head

_PROBE = 3  # tokens


@dataclass(frozen=True, slots=True)
class Parts:
    """A causal language model in two: head(backbone(token ids)) is what the model itself says."""

    backbone: Any  # returns `last_hidden_state`
    layer: nn.Linear
    scale: float
    softcap: float | None

    @property
    def head(self) -> Head:
        """With the layer's weights as they are now: of a sharded model they come and go."""
        return Head(self.layer.weight, self.layer.bias, self.scale, self.softcap)


def split(model: Any) -> Parts | str:
    """The model's two parts, or why it can't be taken apart.

    What the configuration names is tried on a few tokens: an architecture that does anything else between hidden states
    and logits is found out.
    """
    backbone, layer = getattr(model, "base_model", None), model.get_output_embeddings()
    if backbone is None or backbone is model:
        return f"{type(model).__name__} names no backbone"
    if type(layer) is not nn.Linear:
        return f"the head of {type(model).__name__} is a {type(layer).__name__}, not a plain linear layer"
    config = model.config.get_text_config()
    softcap = getattr(config, "final_logit_softcapping", None)
    for scale in _scales(config):
        parts = Parts(backbone, layer, scale, softcap)
        if _agree(model, parts):
            return parts
    return f"{type(model).__name__} does more than a linear layer between hidden states and logits"


def _scales(config: Any) -> Iterator[float]:
    """What the logits may be multiplied by: Cohere, Falcon-H1 and HyperCLOVA X multiply, Granite and MiniCPM divide."""
    yield 1.0
    for name in ("logit_scale", "lm_head_multiplier", "output_multiplier", "logits_scaling"):
        value = getattr(config, name, None)
        if value:
            yield from (float(value), 1 / value)


@torch.no_grad()
def _agree(model: Any, parts: Parts) -> bool:
    ids = torch.arange(_PROBE, device=model.device)[None] % len(parts.head.weight)
    training = model.training
    model.eval()
    try:
        expected = model(input_ids=ids, use_cache=False).logits.float()
        hidden = getattr(parts.backbone(input_ids=ids, use_cache=False), "last_hidden_state", None)
    finally:
        model.train(training)
    if hidden is None or hidden.shape[-1] != parts.head.weight.shape[1]:
        return False
    found = parts.head.logits(hidden).float()
    # In the dtype of its files a model rounds each of a few operations; what else it could do makes more.
    tolerance = max(1e-3, 4 * torch.finfo(model.dtype).eps)
    atol = 1e-3 if tolerance == 1e-3 else tolerance * float(expected.abs().max())
    return found.shape == expected.shape and torch.allclose(found, expected, rtol=tolerance, atol=atol)
