"""Converts weights to the layout of a model's own files, which engines with weights of their own read.

transformers holds some weights in another layout than the files: all experts of a mixture in one tensor, or a module
under another name. Its own conversion table, with which it reads and writes such files, is applied in reverse here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import Tensor

NamedWeights = Iterable[tuple[str, Tensor]]
Layout = Callable[[NamedWeights], NamedWeights]

_LAYER = re.compile(r"^.*?\.\d+\.")
_WITHOUT_HEAD = ("Gemma2ForCausalLM", "Gemma3nForCausalLM")  # in vLLM, which refuses the name; always tied


def unchanged(weights: NamedWeights) -> NamedWeights:
    """The layout of a model that is held as in its files."""
    return weights


def file_layout(model: Any) -> Layout:
    """A function that converts a transformers model's named weights to those of its files.

    Layers are converted one at a time, so at most one is held twice; a weight with two names keeps both.
    """
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import revert_weight_conversion

    conversions = getattr(model, "_weight_conversions", None)  # set by transformers when the model is loaded
    if conversions is None:  # the model was created from a configuration
        conversions = get_model_conversion_mapping(model, add_legacy=False)
    headless = type(model).__name__ in _WITHOUT_HEAD
    if not conversions and not headless:
        return unchanged

    def converted(weights: NamedWeights) -> Iterator[tuple[str, Tensor]]:
        if headless:
            weights = ((name, weight) for name, weight in weights if name != "lm_head.weight")
        for _, layer in itertools.groupby(weights, lambda named: _layer(named[0])):
            yield from revert_weight_conversion(model, dict(layer)).items()

    return converted


def _layer(name: str) -> str:
    """The name up to the number of its layer; empty outside layers."""
    match = _LAYER.match(name)
    return match[0] if match else ""
