"""Weights that stay in a model's files until each rank takes its part of them.

Weights that are loaded in their stored dtype on the CPU are memory-mapped: the system reads them page by page, and all
processes of a machine share them. So a rank needs no memory for the parts of other ranks.
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
    """(model on the CPU, transformers' loading info). Raises any error of the library.

    Args:
        source: arguments of `from_pretrained` that name the model.
        mapped: leave the weights in their files if all have one dtype; else they are in float32.
        architecture: a class of transformers with `from_pretrained`; by default `AutoModelForCausalLM`.
        options: further arguments of `from_pretrained`.
    """
    if architecture is None:
        from transformers import AutoModelForCausalLM as architecture

    arguments = {**source, **options, "output_loading_info": True}
    arguments.pop("trust_remote_code", None)  # always False, whatever the caller passes

    def read(dtype: torch.dtype) -> Any:
        return architecture.from_pretrained(**arguments, dtype=dtype, trust_remote_code=False)

    stored = _stored_dtype(source) if mapped else None
    if stored is None:
        return read(torch.float32)  # type: ignore[no-any-return]
    model, info = read(stored)
    if _is_narrow(stored) and any(buffer.dtype == stored for buffer in model.buffers()):  # buffers were rounded to it
        return read(torch.float32)  # type: ignore[no-any-return]
    model.config.dtype = torch.float32  # the dtype of training
    return model, info


def _stored_dtype(source: Mapping[str, Any]) -> torch.dtype | None:
    """The dtype of all weights in a model's safetensors files; None if they have several, or are in other files."""
    from safetensors import safe_open

    dtypes = set()
    for path in _files(source):
        with safe_open(path, framework="pt") as file:
            dtypes |= {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118  # no mapping
    return _DTYPES.get(dtypes.pop()) if len(dtypes) == 1 else None


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
    """The tensor in its training dtype: bfloat16 and float16 become float32, which holds their values exactly."""
    return value.float() if _is_narrow(value.dtype) else value


@torch.no_grad()
def widen(parameters: Iterable[nn.Parameter]) -> None:
    """Loads weights that are still in their files into memory, in their training dtype."""
    for parameter in parameters:
        parameter.data = wide(parameter.data)


@contextlib.contextmanager
def as_trained(model: Any) -> Iterator[None]:
    """Inside the context, weights that are still in their files have their training dtype, and no values."""
    narrow = [(p, p.data) for p in model.parameters() if _is_narrow(p.dtype)]
    for parameter, value in narrow:
        parameter.data = torch.zeros((), device=value.device).expand(value.shape)
    try:
        yield
    finally:
        for parameter, value in narrow:
            parameter.data = value


def sharing_copy(model: Any) -> Any:
    """A copy of a model that shares the memory of its weights, valid while neither model changes them."""
    return _copied(model, lambda weight: weight)


def empty_copy(model: Any, device: str) -> Any:
    """A copy of a model on the device, whose weights have no elements yet."""
    return _copied(model, lambda weight: wide(weight.new_empty(0, device=device))).to(device)


def _copied(model: Any, weight: Callable[[Tensor], Tensor]) -> Any:
    made = {id(p): nn.Parameter(weight(p.detach()), requires_grad=p.requires_grad) for p in model.parameters()}
    return copy.deepcopy(model, made)


def _is_narrow(dtype: torch.dtype) -> bool:
    return dtype in (torch.bfloat16, torch.float16)
