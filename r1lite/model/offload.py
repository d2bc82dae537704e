"""Keeps a frozen model's decoder layers in CPU memory, and copies each to the GPU for its forward pass only."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from r1lite.config import TrainConfig
from r1lite.errors import UserError
from r1lite.model.sharding import layers_of


def check_offload(config: TrainConfig, frozen: Any) -> None:
    """Refuses to offload a model that does not exist or is not on a GPU. Raises UserError.

    Args:
        frozen: the reference or the teacher, a `Policy`; None if there is none.
    """
    asked = [name for name in ("offload_optimizer", "offload_reference") if getattr(config, name)]
    if asked and not config.device.startswith("cuda"):
        raise UserError(
            f"--{asked[0].replace('_', '-')} with --device {config.device}: everything is in CPU memory already"
        )
    if config.offload_reference and (frozen is None or frozen.above is not None):
        why = "this run has no reference" if frozen is None else "with --lora-rank the reference is the model itself"
        raise UserError(f"--offload-reference: {why}; leave the flag out")
    moves = getattr(config, "reference_refresh_steps", 0) > 0 or getattr(config, "reference_decay", 1.0) < 1
    if config.offload_reference and config.shard != "none" and moves:
        raise UserError(
            f"--offload-reference with --shard {config.shard}: a reference that moves (--reference-refresh-steps, "
            "--reference-decay) must stay on the GPU; leave one of the flags out"
        )


def stream_layers(model: Any) -> None:
    """Keeps each layer's weights on the CPU between its forward passes; embedding and head stay on the device.

    Args:
        model: a whole, frozen transformers model; gradients can no longer pass through it.

    Raises:
        UserError: the model does not declare its layers.
    """
    for layer in layers_of(model):
        _stream(layer, model.device)


def _stream(layer: nn.Module, device: torch.device) -> None:
    kept = [(p, p.data.to("cpu", copy=True)) for p in layer.parameters()]
    if device.type == "cuda":
        kept = [(p, held.pin_memory()) for p, held in kept]

    def leave(*_: Any) -> None:
        for p, held in kept:
            p.data = held

    def come(*_: Any) -> None:
        for p, held in kept:
            p.data = held.to(device, non_blocking=True)

    leave()
    layer.register_forward_pre_hook(come)
    layer.register_forward_hook(leave, always_call=True)
