"""Sharded weights: FSDP2 over the decoder layers, and gathering where whole weights are needed.

FSDP gathers a unit's weights for its forward and its backward pass. Each decoder layer is a unit. The remaining
weights, embedding and head (which may be one matrix), belong to the policy itself, whose forward pass needs both.
"""

from __future__ import annotations

import contextlib
import functools
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from r1lite.distributed.world import World
from r1lite.errors import UserError
from r1lite.model.mapped import widen

# Methods that run the model: unless registered, FSDP gathers the root's weights only for `forward`.
_FORWARD = (
    "hidden_of",
    "with_kl",
    "with_square_mass",
    "per_token",
    "states",
    "of_states",
    "packed_logprobs",
    "logprobs_of",
)


def shard(policy: Any, world: World, *, device: str = "cpu", **options: Any) -> None:
    """Leaves each rank its part of the main rank's weights, in float32 or better. Every rank calls this.

    One layer at a time is loaded into memory; the others may stay in the model's files (`r1lite.model.mapped`).

    Args:
        policy: a `Policy`.
        options: of `shard_module`.

    Raises:
        UserError: the model does not declare its layers.
    """
    from torch.distributed.fsdp import register_fsdp_forward_method

    if policy.above is not None:  # it shares the policy's model, which is sharded already
        policy.shares_prompts = False
        return
    model = policy.model
    if isinstance(policy.parts, str):
        raise UserError(f"--shard: {policy.parts}")
    if odd := [name for name, module in model.named_modules() if hasattr(module, "lora_A") and not module.lora_A]:
        raise UserError(
            f"--shard with an adapter on {odd[0]}, which is not a linear layer: leave it out of --lora-targets"
        )
    shard_module(policy, layers_of(model), world, device=device, **options)
    for name in _FORWARD:
        register_fsdp_forward_method(policy, name)
    policy.is_sharded = True
    # A cache passes keys and values around the outputs that FSDP watches, so a layer's weights would be freed before
    # their gradient is computed.
    policy.shares_prompts = False


def shard_module(
    module: Any,
    layers: Sequence[nn.Module],
    world: World,
    *,
    device: str,
    copies: int = 1,
    whole_in_between: bool = False,
    learns: bool = True,
    offload: bool = False,
) -> None:
    """As `shard`: each layer is a unit, and the remaining weights belong to the module itself.

    Args:
        device: device of the parts.
        copies: number of copies of the model among the ranks (HSDP); the ranks of a copy have consecutive numbers.
        whole_in_between: keep a layer's weights gathered from its forward to its backward pass.
        learns: False for a reference: its embedding and head stay gathered after a forward pass, because another
            model's pass reads the head; `reshard()` shards them again.
        offload: keep the layers' parts in CPU memory, and copy them to the GPU when they are gathered.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.distributed_c10d import get_world_size
    from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard

    ranks, kind = get_world_size(), torch.device(device).type
    mesh = init_device_mesh(
        kind,
        (ranks,) if copies == 1 else (copies, ranks // copies),
        mesh_dim_names=("parts",) if copies == 1 else ("copies", "parts"),
    )
    offload_policy = CPUOffloadPolicy(pin_memory=kind == "cuda") if offload else OffloadPolicy()
    originals = [parameter.detach() for parameter in module.parameters()]
    for layer in layers:
        widen(layer.parameters())
        fully_shard(layer, mesh=mesh, reshard_after_forward=not whole_in_between, offload_policy=offload_policy)
    widen(parameter for parameter in module.parameters() if not is_part(parameter))
    fully_shard(module, mesh=mesh, reshard_after_forward=learns)
    _take_from_main(module, originals, world, device)


@torch.no_grad()
def _take_from_main(module: nn.Module, originals: list[Tensor], world: World, device: str) -> None:
    """Sets the parts to the main rank's original weights, because each rank has read its own files."""
    for part, value in zip(module.parameters(), originals, strict=True):
        if world.is_main:
            whole = value.to(device, part.dtype, copy=True)
        else:
            whole = torch.empty(part.shape, dtype=part.dtype, device=device)
        world.copy_from_main([whole])
        local(part).copy_(local(like(part, whole)))


def layers_of(model: Any) -> list[nn.Module]:
    """A model's decoder layers. Raises UserError if the model does not declare them."""
    names = set(getattr(model, "_no_split_modules", None) or ())
    # FSDP gives each layer a class of its own with this prefix.
    layers = [module for module in model.modules() if type(module).__name__.removeprefix("FSDP") in names]
    if layers:
        return layers
    raise UserError(f"--shard: {type(model).__name__} does not declare its layers, so it can't be sharded")


@contextlib.contextmanager
def computes_wide(model: Any) -> Iterator[None]:
    """Inside the context, a model whose weights have several dtypes can compute: a layer's weights are in float32 while
    the layer runs."""
    if len({weight.dtype for weight in model.parameters() if weight.is_floating_point()}) < 2:
        yield
        return
    layers = layers_of(model)
    inside = {module for layer in layers for module in layer.modules()}
    units = {layer: list(layer.parameters()) for layer in layers}
    units |= {module: list(module.parameters(recurse=False)) for module in model.modules() if module not in inside}
    narrow: dict[nn.Module, list[Tensor]] = {}

    def before(module: nn.Module, _: object) -> None:
        narrow[module] = [weight.data for weight in units[module]]
        widen(units[module])

    def after(module: nn.Module, *_: object) -> None:
        for weight, value in zip(units[module], narrow.pop(module), strict=True):
            weight.data = value

    with contextlib.ExitStack() as hooks:
        for module in units:
            hooks.callback(module.register_forward_pre_hook(before).remove)
            hooks.callback(module.register_forward_hook(after, always_call=True).remove)
        yield


def is_part(value: Any) -> bool:
    """True for a sharded tensor, of which this rank holds a part."""
    return hasattr(value, "full_tensor")


def local(value: Tensor) -> Tensor:
    """The part of a tensor that this rank holds; the tensor itself if it is not sharded."""
    return value.to_local() if is_part(value) else value  # type: ignore[attr-defined]


def holders(value: Tensor) -> int:
    """Number of ranks that hold the same part of a tensor as this one."""
    if not is_part(value):
        return 1
    sharded: Any = value
    sizes = enumerate(sharded.placements)
    return math.prod(sharded.device_mesh.size(axis) for axis, placement in sizes if placement.is_replicate())


def whole(value: Tensor) -> Tensor:
    """The whole tensor. Every rank must call this for a sharded one."""
    return value.full_tensor() if is_part(value) else value  # type: ignore[attr-defined]


def like(part: Tensor, value: Any) -> Tensor:
    """Shards a whole tensor (on every rank, or on disk) as `part` is sharded; returns it whole if `part` is not."""
    if not isinstance(value, Tensor):  # a TensorOnDisk
        read: Tensor = value.like(part)
        return read
    if not is_part(part):
        return value
    from torch.distributed.tensor import distribute_tensor

    sharded: Any = part
    return distribute_tensor(  # without communication
        value.to(sharded.device), sharded.device_mesh, sharded.placements, src_data_rank=None
    )


@torch.no_grad()
def put_into(model: nn.Module, weights: Mapping[str, Any], *, some: bool = False) -> None:
    """Loads whole weights into a model that may be sharded.

    Args:
        weights: held by every rank, or on disk.
        some: the weights are only some of the model's.
    """
    own = model.state_dict()
    parts = {name: like(own[name], value) if name in own else value for name, value in weights.items()}
    model.load_state_dict(parts, strict=not some)


def part_like(part: Tensor, value: Tensor) -> Tensor:
    """Wraps this rank's part of a tensor as a sharded tensor like `part`; returns it unchanged if `part` is whole."""
    if not is_part(part):
        return value
    from torch.distributed.tensor import DTensor

    sharded: Any = part
    mesh = sharded.device_mesh
    if value.device.type != mesh.device_type:  # from_local would move it
        mesh = _mesh_of(value.device.type, tuple(mesh.shape))
    return DTensor.from_local(
        value, mesh, sharded.placements, run_check=False, shape=sharded.shape, stride=sharded.stride()
    )


@functools.cache
def _mesh_of(device: str, shape: tuple[int, ...]) -> Any:
    """The same mesh of ranks for tensors on another kind of device."""
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(device, shape)


def weights_on_main(
    model: nn.Module, weights: Iterator[tuple[str, Tensor]], world: World, *, folder: Path, dtype: torch.dtype | None
) -> dict[str, Tensor]:
    """The model's whole weights on the main rank; other ranks get empty tensors. A tied weight is one tensor again.

    Weights are gathered one at a time and written to disk: the main rank's memory holds one, plus the pages of the
    files that the system caches.

    Args:
        weights: by name; every rank has the same, in the same order.
        folder: for unnamed files, which disappear with the tensors.
        dtype: of the returned floating-point tensors; None: their own.

    Raises:
        OSError: on the main rank: the disk is full.
    """
    numbers = {name: id(parameter) for name, parameter in model.named_parameters(remove_duplicate=False)}
    made: dict[Any, Tensor] = {}
    by_name: dict[str, Tensor] = {}
    for name, value in weights:
        number = numbers.get(name, name)
        if number not in made:
            held = whole(value)
            if world.is_main:
                made[number] = _in_file(held.to(dtype) if dtype and held.is_floating_point() else held, folder)
            else:
                made[number] = held.new_empty(0)
        by_name[name] = made[number]
    return by_name


def _in_file(value: Tensor, folder: Path) -> Tensor:
    """The same tensor on the CPU, backed by an unnamed file."""
    value = value.detach().cpu().contiguous()
    if value.numel() == 0:
        return value
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(value.flatten().view(torch.uint8).numpy().data)
        file.flush()
        return torch.from_file(file.name, shared=False, size=value.numel(), dtype=value.dtype).view(value.shape)


def whole_weights(weights: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Yields each weight gathered, one at a time."""
    for name, value in weights:
        yield name, whole(value)
