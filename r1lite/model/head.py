"""Splits a model into backbone and head, so that logits need not be computed all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from r1lite.model import evaluating
from r1lite.rl.tiles import Head

_PROBE = 3  # tokens


@dataclass(frozen=True, slots=True)
class Parts:
    """A causal language model in two parts: head(backbone(token ids)) gives the model's own logits."""

    backbone: Any  # returns `last_hidden_state`
    layer: nn.Linear
    scale: float
    softcap: float | None

    @property
    def head(self) -> Head:
        """The head with the layer's current weights, which come and go in a sharded model."""
        return Head(self.layer.weight, self.layer.bias, self.scale, self.softcap)


def split(model: Any) -> Parts | str:
    """The model's two parts, or the reason why it can't be split.

    The parts that the configuration names are tested on a few tokens, which detects an architecture that does anything
    else between hidden states and logits.
    """
    backbone, layer = getattr(model, "base_model", None), model.get_output_embeddings()
    if backbone is None or backbone is model:
        return f"{type(model).__name__} declares no backbone"
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
    """Possible factors of the logits: Cohere, Falcon-H1 and HyperCLOVA X multiply, Granite and MiniCPM divide."""
    yield 1.0
    for name in ("logit_scale", "lm_head_multiplier", "output_multiplier", "logits_scaling"):
        value = getattr(config, name, None)
        if value:
            yield from (float(value), 1 / value)


@torch.no_grad()
def _agree(model: Any, parts: Parts) -> bool:
    ids = torch.arange(_PROBE, device=model.device)[None] % len(parts.head.weight)
    with evaluating(model):
        expected = model(input_ids=ids, use_cache=False).logits.float()
        hidden = getattr(parts.backbone(input_ids=ids, use_cache=False), "last_hidden_state", None)
    if hidden is None or hidden.shape[-1] != parts.head.weight.shape[1]:
        return False
    logits = parts.head.logits(hidden).float()
    # In the dtype of its files a model rounds a few operations; any other operation would differ by more.
    tolerance = max(1e-3, 4 * torch.finfo(model.dtype).eps)
    atol = 1e-3 if tolerance == 1e-3 else tolerance * float(expected.abs().max())
    return logits.shape == expected.shape and torch.allclose(logits, expected, rtol=tolerance, atol=atol)
