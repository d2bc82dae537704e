"""Weights as a model's own files hold them, which is how engines of their own read them.

transformers holds some weights in another way than their files do: all experts of a mixture in one tensor, or a module
under another name. Its own table of conversions, by which it reads and writes such files, is used backwards here.
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
    """The layout of a model that is held as its files are."""
    return weights


def file_layout(model: Any) -> Layout:
    """What turns a transformers model's weights, by the model's names, into those of its files.

    A layer at a time is turned, so no more than one is held twice; a weight with two names keeps both.
    """
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import revert_weight_conversion

    conversions = getattr(model, "_weight_conversions", None)  # those that loading it needed
    if conversions is None:  # it was not loaded, but made
        conversions = get_model_conversion_mapping(model, add_legacy=False)
    headless = type(model).__name__ in _WITHOUT_HEAD
    if not conversions and not headless:
        return unchanged

    def turned(weights: NamedWeights) -> Iterator[tuple[str, Tensor]]:
        if headless:
            weights = ((name, weight) for name, weight in weights if name != "lm_head.weight")
        for _, layer in itertools.groupby(weights, lambda named: _layer(named[0])):
            yield from revert_weight_conversion(model, dict(layer)).items()

    return turned


def _layer(name: str) -> str:
    """The name up to the number of its layer; empty outside of layers."""
    match = _LAYER.match(name)
    return match[0] if match else ""
