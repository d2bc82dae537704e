"""Weights that stay in a model's files until each rank takes its part of them.

Weights that are loaded in their stored dtype on the CPU are memory-mapped: the system reads them page by page, and all
processes of a machine share them. So a rank needs no memory for the parts of other ranks.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from r1lite.errors import UserError

_DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def read_model(
    source: Mapping[str, Any], *, mapped: bool, architecture: Any = None, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """(model on the CPU, transformers' loading info). Raises any error of the library.

    Args:
        source: arguments of `from_pretrained` that name the model.
        mapped: leave the weights in their files, in the dtypes of the files; else they are in float32, as are all
            weights if the files have other dtypes than bfloat16, float16 and float32, or if the model renames weights
            of several dtypes or computes a buffer in a narrow dtype in a way that can't be repeated.
        architecture: a class of transformers with `from_pretrained`; by default `AutoModelForCausalLM`.
        options: further arguments of `from_pretrained`.

    Raises:
        UserError: mapped, but the files have torch's format before 1.6, which can't be mapped.
    """
    if architecture is None:
        from transformers import AutoModelForCausalLM as architecture

    arguments = {**source, **options, "output_loading_info": True}
    arguments.pop("trust_remote_code", None)  # always False, whatever the caller passes

    def read(dtype: torch.dtype) -> Any:
        return architecture.from_pretrained(**arguments, dtype=dtype, trust_remote_code=False)

    stored = _stored(source) if mapped else {}
    sizes: collections.Counter[torch.dtype] = collections.Counter()
    for value in stored.values():
        sizes[value.dtype] += value.nbytes
    if not sizes or not set(sizes) <= set(_DTYPES):
        return read(torch.float32)  # type: ignore[no-any-return]
    ((most, _),) = sizes.most_common(1)
    model, info = read(most)
    used = {name: value for name, value in stored.items() if name not in info["unexpected_keys"]}
    if not (_takes_other_dtypes(model, used, most) and _has_wide_buffers(model)):
        return read(torch.float32)  # type: ignore[no-any-return]
    model.config.dtype = torch.float32  # the dtype of training
    return model, info


def _stored(source: Mapping[str, Any]) -> dict[str, Tensor]:
    """The floating-point tensors of a model's files, memory-mapped. Raises UserError for a format without mapping."""
    from safetensors import safe_open

    found: dict[str, Tensor] = {}
    for path in _files(source):
        if path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as file:
                found |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
        elif zipfile.is_zipfile(path):
            found |= torch.load(path, map_location="cpu", mmap=True, weights_only=True)
        else:
            raise UserError(
                f"{path.name} has torch's file format before version 1.6, which can't be memory-mapped: each rank "
                "would read the whole model. Load the model once with transformers and save it with save_pretrained, "
                "which writes safetensors, or use --shard none"
            )
    return {name: value for name, value in found.items() if isinstance(value, Tensor) and value.is_floating_point()}


def _files(source: Mapping[str, Any]) -> list[Path]:
    """The model's files, as the library chooses them; [] if there are none."""
    from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, WEIGHTS_INDEX_NAME, WEIGHTS_NAME
    from transformers.utils.hub import cached_file, get_checkpoint_shard_files

    name, more = source["pretrained_model_name_or_path"], {key: source[key] for key in ("revision",) if key in source}
    options: Any = {"_raise_exceptions_for_missing_entries": False, **more}
    for one, index in ((SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME), (WEIGHTS_NAME, WEIGHTS_INDEX_NAME)):
        if (path := cached_file(name, one, **options)) is not None:
            return [Path(path)]
        if (path := cached_file(name, index, **options)) is not None:
            return [Path(part) for part in get_checkpoint_shard_files(name, path, **more)[0]]
    return []


@torch.no_grad()
def _takes_other_dtypes(model: Any, stored: Mapping[str, Tensor], dtype: torch.dtype) -> bool:
    """Replaces weights and buffers that the library has cast to `dtype` with those of the files.

    Returns: False if one of them is not found under its name alone, because the library renames or ties it.
    """
    own = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}
    found = {name: own.get(name, own.get(f"{model.base_model_prefix}.{name}")) for name in stored}
    uses = collections.Counter(map(id, found.values()))
    pairs = []
    for name, value in stored.items():
        cast = found[name]
        if value.dtype == dtype and (cast is None or isinstance(cast, nn.Parameter)):
            continue
        # Two weights that differ in float32 only are one after the cast, if the model may tie them.
        if cast is None or uses[id(cast)] > 1 or not torch.equal(cast, value.to(cast.dtype)):
            return False
        pairs.append((cast, value))
    for cast, value in pairs:
        cast.data = value if isinstance(cast, nn.Parameter) else wide(value)
    return True


@torch.no_grad()
def _has_wide_buffers(model: Any) -> bool:
    """Computes buffers once more that were computed in a narrow dtype. Returns False if one can't be computed alone."""
    for module in model.modules():
        narrow = {name: value for name, value in module.named_buffers(recurse=False) if _is_narrow(value.dtype)}
        if narrow:
            for name, value in narrow.items():
                module._buffers[name] = torch.full_like(value, torch.nan, dtype=torch.float32)
            model._init_weights(module)  # leaves loaded weights as they are
            if not all(torch.equal(module._buffers[name].to(value.dtype), value) for name, value in narrow.items()):
                return False
    return True


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
