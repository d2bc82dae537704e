"""4-bit base weights under an adapter (QLoRA, arXiv:2305.14314) through `bitsandbytes`.

Only linear layers except the head are quantized: NF4 in blocks of 64, the blocks' scales in 8 bits. The trainer
computes with the dequantized weights, and engines and checkpoints get the same: those the adapter was trained on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from r1lite.errors import UserError


def quantization(kind: str, dtype: torch.dtype) -> Any:
    """transformers' settings that quantize the base weights on loading.

    Args:
        dtype: the dtype of computation.

    Raises:
        UserError: bitsandbytes is not installed.
    """
    try:
        import bitsandbytes  # noqa: F401  # transformers' own error is long, and comes after it has read the weights
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
    """Keeps the weights in the layout in which they were loaded.

    On CPUs with AVX512-BF16 bitsandbytes would repack them at the first forward pass of a model in evaluation mode.
    Repacked weights round differently, can't be dequantized, and fail under an adapter.
    """
    for layer in quantized_layers(model).values():
        layer.support_avx512bf16_for_cpu = False


def whole_state(model: Any) -> Iterator[tuple[str, Tensor]]:
    """`model.state_dict()` with quantized weights dequantized, one at a time, and without their quantization data."""
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
    """Number of a model's parameters; packed ones are counted unpacked."""
    return sum(
        parameter.numel() if (state := getattr(parameter, "quant_state", None)) is None else state.shape.numel()
        for parameter in model.parameters()
    )


def scale_bytes(parameter: Any) -> int:
    """Size of a parameter's quantization data, in bytes; 0 if it is not quantized."""
    state = getattr(parameter, "quant_state", None)
    if state is None:
        return 0
    nested = state.state2.absmax.nbytes if state.nested else 0
    return int(state.absmax.nbytes) + int(nested)


@contextlib.contextmanager
def described_as_whole(model: Any) -> Iterator[None]:
    """Inside the context, transformers saves the model as one with whole weights, which the caller passes in."""
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
