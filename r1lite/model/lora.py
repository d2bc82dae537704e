"""Low-rank adapters (LoRA, arXiv:2106.09685) through `peft`: few weights are trained, the others keep their values.

The adapter is inserted into the model in place, so sampler and trainer use the same one; without it the model is its
own reference. Engines that support adapters get the adapter alone (`Adapter`). Other engines, and checkpoints, get
merged weights under the names that the model has without an adapter; checkpoints hold the adapter alone as well.
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
_IN_FILES = "base_model.model."  # before the names of tensors in peft's files


@dataclass(frozen=True, slots=True)
class Adapter:
    """A model's adapter for an engine with weights of its own: the trained tensors, and the base weights."""

    rank: int
    alpha: float  # the product is multiplied by alpha / rank
    model: Any

    @property
    def layers(self) -> list[str]:
        """Names of the layers that have an adapter."""
        return [name for name, _ in _layers(self.model)]

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """The adapter's tensors as LAYER.lora_A.weight [rank, in] and LAYER.lora_B.weight [out, rank]."""
        for name, value in adapter_state(self.model).items():
            yield name.replace(f".{_NAME}.", ".").removesuffix(f".{_NAME}"), value  # the latter for embeddings

    def in_files(self) -> dict[str, Tensor]:
        """The whole tensors under their names in peft's files. Every rank must call this for a sharded model."""
        return {f"{_IN_FILES}{name}": whole(value) for name, value in self.weights()}

    def base(self) -> Iterator[tuple[str, Tensor]]:
        """Every base weight under its name without an adapter, tied ones under each name; they never change."""
        for name, value in whole_state(self.model):
            if _ADAPTER not in name:
                yield name.replace(_BASE, ""), value

    def settings(self) -> dict[str, Any]:
        """The adapter_config.json of peft's format."""
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
        """True if the trainer holds the base weights in 4 bits."""
        return bool(quantized_layers(self.model))

    def refusal(self) -> str:
        """The reason why no engine can take the adapter alone; empty if one can."""
        if any(is_part(value) for value in adapter_state(self.model).values()):
            return "it is sharded over the ranks"
        others = sorted({type(layer).__name__ for _, layer in _layers(self.model) if not layer.lora_A})
        return f"{', '.join(others)} is not a linear layer" if others else ""


def adapter_of(model: Any) -> Adapter | None:
    """The adapter that `add_adapter` inserted; None for a model without one."""
    first = next((layer for _, layer in _layers(model)), None)
    return None if first is None else Adapter(first.r[_NAME], first.lora_alpha[_NAME], model)


def add_adapter(model: Any, config: TrainConfig) -> str:
    """Inserts an adapter of rank `lora_rank` into the layers of `lora_targets`, and freezes all other weights.

    Its product is 0 at first, so the model's output is unchanged.

    Returns: a summary for the reader.

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
        lora_alpha=config.lora_alpha,  # type: ignore[arg-type]  # declared as int, but accepts any number
        target_modules="all-linear" if names == ["all-linear"] else names,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):  # leaves the run's other random numbers as they are without an adapter
        torch.manual_seed(config.seed)
        try:
            with as_trained(model):  # the adapter gets the dtype of the weights that it is inserted into
                inject_adapter_in_model(settings, model)
        except ValueError as error:
            raise UserError(f"--lora-targets {config.lora_targets}: {error}") from error
    learning = sum(p.numel() for p in model.parameters() if p.requires_grad)
    total = parameter_count(model)
    return f"rank {config.lora_rank}, alpha {config.lora_alpha:g}: {learning:,} of {total:,} weights are trained"


def has_adapter(model: Any) -> bool:
    """True if the model has an adapter from `add_adapter`."""
    return any(True for _ in _layers(model))


def adapter_state(model: Any) -> dict[str, Tensor]:
    """The adapter's weights by name; empty without one."""
    return {name: value for name, value in model.state_dict().items() if _ADAPTER in name}


def merged_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Every weight under its name without an adapter, with the adapter's product added.

    Layers are merged one at a time, into a copy: removing the adapter again would not restore the weights bit for bit.
    In a sharded model the weights with an adapter are gathered, so every rank must iterate in the same order.
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
    """Inside the context, the model computes without its adapter."""
    layers = [layer for _, layer in _layers(model)]
    for layer in layers:
        layer._disable_adapters = True
    try:
        yield
    finally:
        for layer in layers:
            layer._disable_adapters = False


def _product(layer: Any) -> Tensor:
    """The product that the adapter adds to a layer's weight."""
    if not layer.lora_A or not is_part(layer.lora_A[_NAME].weight):  # an embedding's adapter is never sharded
        added: Tensor = layer.get_delta_weight(_NAME).detach()
        return added
    first, second = (whole(part[_NAME].weight.detach()) for part in (layer.lora_A, layer.lora_B))
    product: Tensor = second @ first  # [out, rank] @ [rank, in]
    scaling: float = layer.scaling[_NAME]
    return (product.T if layer.fan_in_fan_out else product) * scaling


def _layers(model: Any) -> Iterator[tuple[str, Any]]:
    return ((name, module) for name, module in model.named_modules() if hasattr(module, "lora_A"))
