"""A base in 4 bits below an adapter (QLoRA, arXiv:2305.14314) through `bitsandbytes`.

Only linear layers but the head are quantized: NF4 in blocks of 64, the blocks' scales in 8 bits. What the trainer
computes with, and everybody else gets, are the dequantized weights: those the adapter was trained on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from r1lite.errors import UserError


def quantization(kind: str, dtype: torch.dtype) -> Any:
    """transformers' settings for a base that is quantized as it is loaded.

    Args:
        dtype: that is computed in.

    Raises:
        UserError: bitsandbytes is not installed.
    """
    try:
        import bitsandbytes  # noqa: F401  # transformers says it in many lines, after it has read the weights
    except ImportError as error:
        raise UserError(
            f"--base-quantization {kind} needs bitsandbytes ({error}): pip install 'r1lite[qlora]'"
        ) from error
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type=kind, bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
    )


def quantized_layers(model: Any) -> dict[str, Any]:
    """Each quantized weight's layer, by the weight's name."""
    return {
        f"{name}.weight": module
        for name, module in model.named_modules()
        if getattr(getattr(module, "weight", None), "quant_state", None) is not None
    }


def keep_layout(model: Any) -> None:
    """Has the weights stay as they were loaded.

    On CPUs with AVX512-BF16 bitsandbytes would repack them at the first forward pass of a model in evaluation mode:
    what is computed then is rounded otherwise, can't be dequantized, and fails below an adapter.
    """
    for layer in quantized_layers(model).values():
        layer.support_avx512bf16_for_cpu = False


def whole_state(model: Any) -> Iterator[tuple[str, Tensor]]:
    """`model.state_dict()` with quantized weights dequantized, one at a time, and without what describes them."""
    layers = quantized_layers(model)
    for name, value in model.state_dict().items():
        if name in layers:
            yield name, dequantized(layers[name])
        elif not (layers and ".weight." in name and f"{name.partition('.weight.')[0]}.weight" in layers):
            yield name, value


def dequantized(layer: Any) -> Tensor:
    """[out, in] the weight that a quantized layer computes with."""
    from bitsandbytes.functional import dequantize_4bit

    weight: Tensor = dequantize_4bit(layer.weight.data, layer.weight.quant_state)
    return weight


def parameter_count(model: Any) -> int:
    """How many parameters a model has: of packed ones, how many are in them."""
    return sum(
        parameter.numel() if (state := getattr(parameter, "quant_state", None)) is None else state.shape.numel()
        for parameter in model.parameters()
    )


def scale_bytes(parameter: Any) -> int:
    """What describes a quantized parameter, in bytes; 0 of any other."""
    state = getattr(parameter, "quant_state", None)
    if state is None:
        return 0
    nested = state.state2.absmax.nbytes if state.nested else 0
    return int(state.absmax.nbytes) + int(nested)


@contextlib.contextmanager
def described_as_whole(model: Any) -> Iterator[None]:
    """Inside, transformers saves it as a model of whole weights, which are handed to it."""
    if not quantized_layers(model):
        yield
        return
    kept = model.config.quantization_config, model.hf_quantizer
    del model.config.quantization_config
    model.hf_quantizer = None
    try:
        yield
    finally:
        model.config.quantization_config, model.hf_quantizer = kept
