"""Low-rank adapters (LoRA, arXiv:2106.09685) through `peft`: few weights learn, the rest stay as they were loaded.

The adapter is put into the model in place, so sampler and trainer see the same one; without it the model is its own
reference. Engines get it by itself (`Adapter`) where they can; others, and checkpoints, get merged weights under the
names that the model has without an adapter.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r1lite.config import TrainConfig
from r1lite.errors import UserError
from r1lite.model.mapped import as_trained
from r1lite.model.quantized import parameter_count, quantized_layers, whole_state
from r1lite.model.sharding import is_part, whole

_BASE, _ADAPTER, _NAME = ".base_layer", "lora_", "default"


@dataclass(frozen=True, slots=True)
class Adapter:
    """The adapter of a model, as an engine of its own takes it: what is trained, and the weights below it."""

    rank: int
    alpha: float  # its product is multiplied by alpha / rank
    model: Any

    @property
    def layers(self) -> list[str]:
        """Names of the layers that have one."""
        return [name for name, _ in _layers(self.model)]

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Its tensors by LAYER.lora_A.weight [rank, in] and LAYER.lora_B.weight [out, rank]."""
        for name, value in adapter_state(self.model).items():
            yield name.replace(f".{_NAME}.", "."), value

    def base(self) -> Iterator[tuple[str, Tensor]]:
        """Every weight below it under the name that it has without one, tied ones under each; they never change."""
        for name, value in whole_state(self.model):
            if _ADAPTER not in name:
                yield name.replace(_BASE, ""), value

    def settings(self) -> dict[str, Any]:
        """Its adapter_config.json in peft's format."""
        targets = sorted({name.rpartition(".")[2] for name in self.layers})
        return {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "r": self.rank,
            "lora_alpha": self.alpha,
            "target_modules": targets,
            "bias": "none",
        }

    @property
    def over_quantized(self) -> bool:
        """True over weights that the trainer holds in 4 bits."""
        return bool(quantized_layers(self.model))

    def refusal(self) -> str:
        """Why no engine takes it by itself; empty if one can."""
        if any(is_part(value) for value in adapter_state(self.model).values()):
            return "it lies in parts on the ranks"
        others = sorted({type(layer).__name__ for _, layer in _layers(self.model) if not layer.lora_A})
        return f"{', '.join(others)} is not a linear layer" if others else ""


def adapter_of(model: Any) -> Adapter | None:
    """The adapter that `add_adapter` put there; None of a model without one."""
    first = next((layer for _, layer in _layers(model)), None)
    return None if first is None else Adapter(first.r[_NAME], first.lora_alpha[_NAME], model)


def add_adapter(model: Any, config: TrainConfig) -> str:
    """Puts an adapter of rank `lora_rank` on the layers that were asked for, and freezes the rest.

    Its product is 0 at first: the model says what it said.

    Returns: what was done, for the reader.

    Raises:
        UserError: peft is not installed, or no layer has such a name.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise UserError(f"--lora-rank {config.lora_rank} needs peft ({error}): pip install 'r1lite[lora]'") from error
    names = [name.strip() for name in config.lora_targets.split(",")]
    settings = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,  # type: ignore[arg-type]  # said to be an int, any number does
        target_modules="all-linear" if names == ["all-linear"] else names,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):  # the run's other random numbers are as they are without an adapter
        torch.manual_seed(config.seed)
        try:
            with as_trained(model):  # an adapter is made in the dtype of the weights it is put on
                inject_adapter_in_model(settings, model)
        except ValueError as error:
            raise UserError(f"--lora-targets {config.lora_targets}: {error}") from error
    learning = sum(p.numel() for p in model.parameters() if p.requires_grad)
    total = parameter_count(model)
    return f"rank {config.lora_rank}, alpha {config.lora_alpha:g}: {learning:,} of {total:,} weights learn"


def has_adapter(model: Any) -> bool:
    """True if `add_adapter` was here."""
    return any(True for _ in _layers(model))


def adapter_state(model: Any) -> dict[str, Tensor]:
    """The adapter's weights by name; empty without one."""
    return {name: value for name, value in model.state_dict().items() if _ADAPTER in name}


def merged_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Every weight under the name that it has without an adapter, and with what the adapter adds to it.

    One layer at a time is merged, into a copy: taking the adapter out again would not leave the weights bit-identical.
    Of a model in parts those with an adapter come whole, so that every rank goes through them in the same order.
    """
    layers = dict(_layers(model))
    for name, value in whole_state(model):
        if _ADAPTER in name:
            continue
        layer = layers.get(name.removesuffix(f"{_BASE}.weight"))
        if layer is not None and name.endswith(f"{_BASE}.weight"):
            value = whole(value) + _product(layer)
        yield name.replace(_BASE, ""), value


@contextlib.contextmanager
def without_adapter(model: Any) -> Iterator[None]:
    """The model as it was loaded."""
    layers = [layer for _, layer in _layers(model)]
    for layer in layers:
        layer._disable_adapters = True
    try:
        yield
    finally:
        for layer in layers:
            layer._disable_adapters = False


def _product(layer: Any) -> Tensor:
    """What the adapter adds to a layer's weight."""
    if not layer.lora_A or not is_part(layer.lora_A[_NAME].weight):  # an embedding's adapter is never in parts
        added: Tensor = layer.get_delta_weight(_NAME).detach()
        return added
    first, second = (whole(part[_NAME].weight.detach()) for part in (layer.lora_A, layer.lora_B))
    product: Tensor = second @ first  # [out, rank] @ [rank, in]
    scaling: float = layer.scaling[_NAME]
    return (product.T if layer.fan_in_fan_out else product) * scaling


def _layers(model: Any) -> Iterator[tuple[str, Any]]:
    return ((name, module) for name, module in model.named_modules() if hasattr(module, "lora_A"))
