"""Does an engine hold the very weights it was given? Digests of their bytes say so, where log-probabilities can't.

In bfloat16 rounding alone moves a log-probability by 0.1 nats, so that the canary does not see a layer that stayed
behind by less. vLLM (from 0.28) gives a SHA-256 of each tensor that it holds; the trainer makes the same from its own
weights, cast to the engine's precision and put together as vLLM does.

Which tensors can be compared is learnt from the first update: those of a kind (a name without its layer's number) of
which at least one agrees. Others are laid out in another way (experts of a mixture, shards of several GPUs, weights
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

_FUSED = {  # vLLM's name -> those of its parts, one after the other along the first dimension
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}
_WHOLE = {part: (fused, place) for fused, parts in _FUSED.items() for place, part in enumerate(parts)}
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
        self._kinds: set[str] | None = None  # that can be compared
        self._names: set[str] = set()  # that were compared before

    def check(self, held: Mapping[str, str], weights: Iterable[tuple[str, Tensor]], *, where: str, version: int) -> int:
        """How many of the engine's tensors are proven to be the trainer's; 0 where none can be compared.

        Args:
            held: the engine's digests by name.
            weights: the trainer's, by name; tied ones may come under each of their names.
            where: the engine's place, for the message.

        Raises:
            EngineError: tensors differ, or are no longer sent or held; the message names them.
        """
        # Layers with an adapter keep their own weights one level below.
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
                f"{names} have other bytes or are missing ({len(others)} of {len(compared)} tensors compared)"
            )
        self._names = compared
        return len(compared)


def check_adapter(held: Mapping[str, Tensor], adapter: Adapter, dtype: torch.dtype, *, version: int) -> int:
    """How many of the tensors that an engine's layers compute with are proven to be the adapter's.

    Args:
        held: as `vllm_calls.adapter_tensors` gives them.

    Raises:
        EngineError: some differ, or a layer that has no adapter computes with one.
    """
    own = {}
    for name, weight in adapter.weights():
        value = weight.detach().to(dtype)
        # The engine multiplies in its own precision, once, when it takes the adapter in.
        own[name.removesuffix(".weight")] = value * (adapter.alpha / adapter.rank) if ".lora_B" in name else value
    others, compared = [], 0
    for name, found in held.items():
        expected = torch.zeros_like(found)
        if (ours := own.get(name)) is not None:
            compared += 1
            expected[: ours.shape[0], : ours.shape[1]] = ours
        if not torch.equal(expected, found):
            others.append(name)
    if others:
        raise EngineError(
            f"the engine does not hold the trainer's adapter of version {version}: {', '.join(others[:_SHOWN])} "
            f"({len(others)} of {len(held)} tensors) have other values"
        )
    return compared


def digests(weights: Iterable[tuple[str, Tensor]], dtype: torch.dtype) -> dict[str, str]:
    """SHA-256 of each tensor's bytes in this precision, by vLLM's names: parts that it fuses become one."""
    hashes: dict[str, Any] = {}
    waiting: dict[str, dict[int, Any]] = {}  # fused name -> parts, until all are there
    for name, weight in weights:
        value = _bytes(weight, dtype)
        match = _PART.search(name)
        if match is None:
            hashes[name] = hashlib.sha256(value)
            continue
        fused, place = _WHOLE[match[1]]
        whole = f"{name[: match.start(1)]}{fused}{name[match.end(1) :]}"
        parts = waiting.setdefault(whole, {})
        parts[place] = value
        if len(parts) == len(_FUSED[fused]):
            hashes[whole] = hashlib.sha256()
            for _, value in sorted(waiting.pop(whole).items()):
                hashes[whole].update(value)
    return {name: found.hexdigest() for name, found in hashes.items()}


def _bytes(weight: Tensor, dtype: torch.dtype) -> Any:
    value = weight.detach()
    if value.is_floating_point():
        value = value.to(dtype)
    return value.cpu().contiguous().view(-1).view(torch.uint8).numpy()


def _kind(name: str) -> str:
    """The name without the numbers of its layers."""
    return _NUMBER.sub(".#.", name)
