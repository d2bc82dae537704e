"""Compares digests of an engine's weights with the trainer's, to find differences that log-probabilities don't show.

In bfloat16 rounding alone changes a log-probability by 0.1 nats, so the canary does not detect a stale layer with a
smaller effect. vLLM (from 0.28) reports a SHA-256 of each tensor that it holds; the trainer computes the same from its
own weights, cast to the engine's precision and fused as vLLM does.

The first update shows which tensors can be compared: all tensors of a kind (a name without its layer's number) of
which at least one agrees. Others have another layout (experts of a mixture, shards of several GPUs, weights
that the CPU backend packs) and are left to the canary.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from r1lite.model.lora import Adapter
from r1lite.rollout import EngineError
from r1lite.rollout.layout import Layout, unchanged

_FUSED = {  # vLLM's name -> names of its parts, concatenated along the first dimension
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}
_WHOLE = {part: (fused, i) for fused, parts in _FUSED.items() for i, part in enumerate(parts)}
_PART = re.compile(rf"\.({'|'.join(_WHOLE)})(?=\.)")
_NUMBER = re.compile(r"\.\d+\.")
_SHOWN = 4


class WeightProof:
    """The comparison after an update.

    Args:
        dtype: of the engine's weights.
        layout: turns weights into those of the model's files.
    """

    def __init__(self, dtype: torch.dtype, layout: Layout = unchanged) -> None:
        self.dtype, self._layout = dtype, layout
        self._kinds: set[str] | None = None  # kinds that can be compared
        self._names: set[str] = set()  # tensors that were compared before

    def check(self, held: Mapping[str, str], weights: Iterable[tuple[str, Tensor]], *, where: str, version: int) -> int:
        """Number of the engine's tensors that equal the trainer's; 0 if none can be compared.

        Args:
            held: the engine's digests by name.
            weights: the trainer's weights by name; tied ones may be listed under each of their names.
            where: location of the engine, for the message.

        Raises:
            EngineError: tensors differ, or are no longer sent or held; the message names them.
        """
        # Layers with an adapter hold their base weights one level deeper.
        held = {name.rpartition(":")[2].replace(".base_layer.", "."): digest for name, digest in held.items()}
        own = digests(self._layout(weights), self.dtype)
        shared = own.keys() & held.keys()
        if self._kinds is None:
            self._kinds = {_kind(name) for name in shared if own[name] == held[name]}
        compared = {name for name in shared if _kind(name) in self._kinds} | self._names
        if others := sorted(name for name in compared if name not in shared or own[name] != held[name]):
            names = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
            raise EngineError(
                f"the engine{where} does not hold the trainer's weights of version {version}: "
                f"{names} have different bytes or are missing ({len(others)} of {len(compared)} tensors compared)"
            )
        self._names = compared
        return len(compared)


def check_adapter(held: Mapping[str, Tensor], adapter: Adapter, dtype: torch.dtype, *, version: int) -> int:
    """Number of the tensors in an engine's layers that equal the adapter's.

    Args:
        held: result of `vllm_calls.adapter_tensors`.

    Raises:
        EngineError: some tensors differ, or a layer without an adapter computes with one.
    """
    own = {}
    for name, weight in adapter.weights():
        value = weight.detach().to(dtype)
        # The engine multiplies in its own precision, once, when it loads the adapter.
        own[name.removesuffix(".weight")] = value * (adapter.alpha / adapter.rank) if ".lora_B" in name else value
    others, compared = [], 0
    for name, tensor in held.items():
        expected = torch.zeros_like(tensor)
        if (ours := own.get(name)) is not None:
            compared += 1
            expected[: ours.shape[0], : ours.shape[1]] = ours
        if not torch.equal(expected, tensor):
            others.append(name)
    if others:
        raise EngineError(
            f"the engine does not hold the trainer's adapter of version {version}: {', '.join(others[:_SHOWN])} "
            f"({len(others)} of {len(held)} tensors) have different values"
        )
    return compared


def digests(weights: Iterable[tuple[str, Tensor]], dtype: torch.dtype) -> dict[str, str]:
    """SHA-256 of each tensor's bytes in this precision, by vLLM's names; parts that vLLM fuses are joined."""
    hashes: dict[str, Any] = {}
    waiting: dict[str, dict[int, Any]] = {}  # fused name -> its parts, until all are present
    for name, weight in weights:
        value = _bytes(weight, dtype)
        match = _PART.search(name)
        if match is None:
            hashes[name] = hashlib.sha256(value)
            continue
        fused, position = _WHOLE[match[1]]
        whole = f"{name[: match.start(1)]}{fused}{name[match.end(1) :]}"
        parts = waiting.setdefault(whole, {})
        parts[position] = value
        if len(parts) == len(_FUSED[fused]):
            hashes[whole] = hashlib.sha256()
            for _, value in sorted(waiting.pop(whole).items()):
                hashes[whole].update(value)
    return {name: sha.hexdigest() for name, sha in hashes.items()}


def _bytes(weight: Tensor, dtype: torch.dtype) -> Any:
    value = weight.detach()
    if value.is_floating_point():
        value = value.to(dtype)
    return value.cpu().contiguous().view(-1).view(torch.uint8).numpy()


def _kind(name: str) -> str:
    """The name without the numbers of its layers."""
    return _NUMBER.sub(".#.", name)
