"""Weights that lie in a model's files until each rank takes its part of them.

Loaded in the dtype they are stored in, on the CPU, they are read by the system page by page and shared by all processes
of a machine: a rank needs no memory for what other ranks are going to hold.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

_DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}


def read_model(
    source: Mapping[str, Any], *, mapped: bool, architecture: Any = None, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """(model on the CPU, what transformers says of loading it). Raises whatever the library does.

    Args:
        source: arguments of `from_pretrained` that name the model.
        mapped: weights stay in the files, where all of these have one dtype; else they are in float32.
        architecture: a class of transformers that has `from_pretrained`; by default `AutoModelForCausalLM`.
        options: more arguments of `from_pretrained`.
    """
    if architecture is None:
        from transformers import AutoModelForCausalLM as architecture

    given = {**source, **options, "output_loading_info": True}
    given.pop("trust_remote_code", None)  # said where it counts, whoever calls

    def read(dtype: torch.dtype) -> Any:
        return architecture.from_pretrained(**given, dtype=dtype, trust_remote_code=False)

    stored = _stored_dtype(source) if mapped else None
    if stored is None:
        return read(torch.float32)  # type: ignore[no-any-return]
    model, said = read(stored)
    if _is_narrow(stored) and any(buffer.dtype == stored for buffer in model.buffers()):  # computed in it, and rounded
        return read(torch.float32)  # type: ignore[no-any-return]
    model.config.dtype = torch.float32  # in which it is going to be trained
    return model, said


def _stored_dtype(source: Mapping[str, Any]) -> torch.dtype | None:
    """The dtype of all weights in a model's safetensors files; None where they have several, or are other files."""
    from safetensors import safe_open

    found = set()
    for path in _files(source):
        with safe_open(path, framework="pt") as file:
            found |= {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118  # no mapping
    return _DTYPES.get(found.pop()) if len(found) == 1 else None


def _files(source: Mapping[str, Any]) -> list[Path]:
    from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME
    from transformers.utils.hub import cached_file, get_checkpoint_shard_files

    name, more = source["pretrained_model_name_or_path"], {key: source[key] for key in ("revision",) if key in source}
    options: Any = {"_raise_exceptions_for_missing_entries": False, **more}
    if (one := cached_file(name, SAFE_WEIGHTS_NAME, **options)) is not None:
        return [Path(one)]
    if (index := cached_file(name, SAFE_WEIGHTS_INDEX_NAME, **options)) is None:
        return []
    return [Path(path) for path in get_checkpoint_shard_files(name, index, **more)[0]]


def wide(value: Tensor) -> Tensor:
    """The tensor that is trained: bfloat16 and float16 become float32, which holds their values exactly."""
    return value.float() if _is_narrow(value.dtype) else value


@torch.no_grad()
def widen(parameters: Iterable[nn.Parameter]) -> None:
    """Puts weights that are still in their files into memory, as they are trained."""
    for parameter in parameters:
        parameter.data = wide(parameter.data)


@contextlib.contextmanager
def as_trained(model: Any) -> Iterator[None]:
    """Inside, weights that are still in their files have the dtype they are trained in, and no values."""
    narrow = [(p, p.data) for p in model.parameters() if _is_narrow(p.dtype)]
    for parameter, value in narrow:
        parameter.data = torch.zeros((), device=value.device).expand(value.shape)
    try:
        yield
    finally:
        for parameter, value in narrow:
            parameter.data = value


def sharing_copy(model: Any) -> Any:
    """A copy of a model that reads the same weights in the same memory, for as long as neither changes them."""
    return _copied(model, lambda weight: weight)


def empty_copy(model: Any, device: str) -> Any:
    """A copy of a model on the device, whose weights have no elements yet."""
    return _copied(model, lambda weight: wide(weight.new_empty(0, device=device))).to(device)


def _copied(model: Any, weight: Callable[[Tensor], Tensor]) -> Any:
    made = {id(p): nn.Parameter(weight(p.detach()), requires_grad=p.requires_grad) for p in model.parameters()}
    return copy.deepcopy(model, made)


def _is_narrow(dtype: torch.dtype) -> bool:
    return dtype in (torch.bfloat16, torch.float16)
