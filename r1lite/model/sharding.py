"""Weights in parts on the ranks: FSDP2 over the decoder layers, and what has to be whole put together again.

A unit's weights are put together for its forward and its backward pass. Each decoder layer is a unit; what is left, the
embedding and the head, which may be one matrix, belongs to the policy itself, whose forward pass needs both.
"""

from __future__ import annotations

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

# Methods that run the model: FSDP puts the root's weights together for its forward pass alone, unless it is told.
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


def shard(
    policy: Any,
    world: World,
    *,
    device: str = "cpu",
    copies: int = 1,
    whole_in_between: bool = False,
    learns: bool = True,
    offload: bool = False,
) -> None:
    """Leaves each rank its part of the main rank's weights, in float32 or better. Every rank calls this.

    A layer at a time is put into memory; the rest may lie in the model's files (`r1lite.model.mapped`).

    Args:
        policy: a `Policy`.
        device: that the parts lie on.
        copies: of the model among the ranks (HSDP): each is held by as many ranks, whose numbers follow one another.
        whole_in_between: a layer's weights stay together from its forward to its backward pass.
        learns: False: of a reference the embedding and the head stay together after a forward pass, since another
            model's pass reads the head; `reshard()` takes them apart.
        offload: the layers' parts lie in the CPU's memory, and are copied to the GPU when they are put together.

    Raises:
        UserError: the model does not say what its layers are.
    """
    from torch.distributed.fsdp import register_fsdp_forward_method

    if policy.above is not None:  # the model is the policy's, in parts already
        policy.shares_prompts = False
        return
    model = policy.model
    if isinstance(policy.parts, str):
        raise UserError(f"--shard: {policy.parts}")
    if odd := [name for name, module in model.named_modules() if hasattr(module, "lora_A") and not module.lora_A]:
        raise UserError(
            f"--shard with an adapter on {odd[0]}, which is not a linear layer: leave it out of --lora-targets"
        )
    shard_module(
        policy,
        layers_of(model),
        world,
        device=device,
        copies=copies,
        whole_in_between=whole_in_between,
        learns=learns,
        offload=offload,
    )
    for name in _FORWARD:
        register_fsdp_forward_method(policy, name)
    policy.is_sharded = True
    # A cache hands keys and values past the outputs that FSDP watches: a layer's weights would be gone when their
    # gradient is due.
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
    """As `shard`: each layer is a unit, and what is left belongs to the module itself."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.distributed_c10d import get_world_size
    from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard

    ranks, kind = get_world_size(), torch.device(device).type
    mesh = init_device_mesh(
        kind,
        (ranks,) if copies == 1 else (copies, ranks // copies),
        mesh_dim_names=("parts",) if copies == 1 else ("copies", "parts"),
    )
    place = CPUOffloadPolicy(pin_memory=kind == "cuda") if offload else OffloadPolicy()
    given = [parameter.detach() for parameter in module.parameters()]
    for layer in layers:
        widen(layer.parameters())
        fully_shard(layer, mesh=mesh, reshard_after_forward=not whole_in_between, offload_policy=place)
    widen(parameter for parameter in module.parameters() if not is_part(parameter))
    fully_shard(module, mesh=mesh, reshard_after_forward=learns)
    _take_from_main(module, given, world, device)


@torch.no_grad()
def _take_from_main(module: nn.Module, given: list[Tensor], world: World, device: str) -> None:
    """Has the parts be those of the weights that the main rank was given: each has read its own files."""
    for part, value in zip(module.parameters(), given, strict=True):
        if world.is_main:
            whole = value.to(device, part.dtype, copy=True)
        else:
            whole = torch.empty(part.shape, dtype=part.dtype, device=device)
        world.copy_from_main([whole])
        local(part).copy_(local(like(part, whole)))


def layers_of(model: Any) -> list[nn.Module]:
    """A model's decoder layers. Raises UserError if it does not say what they are."""
    names = set(getattr(model, "_no_split_modules", None) or ())
    # FSDP gives each a class of its own, by this name.
    layers = [module for module in model.modules() if type(module).__name__.removeprefix("FSDP") in names]
    if layers:
        return layers
    raise UserError(f"--shard: {type(model).__name__} does not name its layers, so it can't be held in parts")


def is_part(value: Any) -> bool:
    """True for a tensor of which this rank holds a part."""
    return hasattr(value, "full_tensor")


def local(value: Tensor) -> Tensor:
    """What this rank holds of it."""
    return value.to_local() if is_part(value) else value  # type: ignore[attr-defined]


def holders(value: Tensor) -> int:
    """How many ranks hold the same part of it as this one."""
    if not is_part(value):
        return 1
    given: Any = value
    return math.prod(given.device_mesh.size(place) for place, how in enumerate(given.placements) if how.is_replicate())


def whole(value: Tensor) -> Tensor:
    """All of it; every rank asks for it."""
    return value.full_tensor() if is_part(value) else value  # type: ignore[attr-defined]


def like(part: Tensor, value: Any) -> Tensor:
    """A whole tensor, which every rank has or which lies on a disk, in parts as `part` is; whole if that is no part."""
    if not isinstance(value, Tensor):  # it reads itself
        read: Tensor = value.like(part)
        return read
    if not is_part(part):
        return value
    from torch.distributed.tensor import distribute_tensor

    given: Any = part
    return distribute_tensor(  # without communication
        value.to(given.device), given.device_mesh, given.placements, src_data_rank=None
    )


@torch.no_grad()
def put_into(model: nn.Module, weights: Mapping[str, Any], *, some: bool = False) -> None:
    """Loads whole weights into a model that may be in parts.

    Args:
        weights: every rank has them, or they lie on a disk.
        some: they are not all of the model's.
    """
    own = model.state_dict()
    parts = {name: like(own[name], value) if name in own else value for name, value in weights.items()}
    model.load_state_dict(parts, strict=not some)


def part_like(part: Tensor, value: Tensor) -> Tensor:
    """What this rank holds of a tensor, as the part of a whole that `part` is; as it is if that is no part."""
    if not is_part(part):
        return value
    from torch.distributed.tensor import DTensor

    given: Any = part
    mesh = given.device_mesh
    if value.device.type != mesh.device_type:  # it would be moved there
        mesh = _mesh_of(value.device.type, tuple(mesh.shape))
    return DTensor.from_local(value, mesh, given.placements, run_check=False, shape=given.shape, stride=given.stride())


@functools.cache
def _mesh_of(device: str, shape: tuple[int, ...]) -> Any:
    """The ranks' places, for tensors on another kind of device."""
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(device, shape)


def weights_on_main(
    model: nn.Module, weights: Iterator[tuple[str, Tensor]], world: World, *, folder: Path, dtype: torch.dtype | None
) -> dict[str, Tensor]:
    """The model's weights, whole, on the main rank; others get empty ones. A weight with two names is one tensor again.

    One after the other is put together, and lies on the disk then: the main rank's memory holds one, and what the
    system keeps of the files while there is room.

    Args:
        weights: by name; every rank has the same, in the same order.
        folder: for files without a name, which are gone when the tensors are.
        dtype: of the floating-point tensors that are returned; None: their own.

    Raises:
        OSError: on the main rank: the disk is full.
    """
    numbers = {name: id(parameter) for name, parameter in model.named_parameters(remove_duplicate=False)}
    made: dict[Any, Tensor] = {}
    found: dict[str, Tensor] = {}
    for name, value in weights:
        number = numbers.get(name, name)
        if number not in made:
            held = whole(value)
            if world.is_main:
                made[number] = _in_file(held.to(dtype) if dtype and held.is_floating_point() else held, folder)
            else:
                made[number] = held.new_empty(0)
        found[name] = made[number]
    return found


def _in_file(value: Tensor, folder: Path) -> Tensor:
    """The same on the CPU, as a file that has no name."""
    value = value.detach().cpu().contiguous()
    if value.numel() == 0:
        return value
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(value.flatten().view(torch.uint8).numpy().data)
        file.flush()
        return torch.from_file(file.name, shared=False, size=value.numel(), dtype=value.dtype).view(value.shape)


def whole_weights(weights: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Each weight as a whole, one at a time."""
    for name, value in weights:
        yield name, whole(value)
