"""Weights in parts on the ranks: FSDP2 over the decoder layers, and what has to be whole put together again.

A unit's weights are put together for its forward and its backward pass. Each decoder layer is a unit; what is left, the
embedding and the head, which may be one matrix, belongs to the policy itself, whose forward pass needs both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from r1lite.distributed.world import World
from r1lite.errors import UserError

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


def shard(policy: Any, *, whole_in_between: bool = False, learns: bool = True) -> None:
    """Leaves each rank its part of the policy's weights. Every rank calls this, with the same weights.

    Args:
        policy: a `Policy`.
        whole_in_between: a layer's weights stay together from its forward to its backward pass.
        learns: False: of a reference the embedding and the head stay together after a forward pass, since another
            model's pass reads the head; `reshard()` takes them apart.

    Raises:
        UserError: the model does not say what its layers are.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.distributed_c10d import get_world_size
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    if policy.above is not None:  # the model is the policy's, in parts already
        policy.shares_prompts = False
        return
    model = policy.model
    layers = layers_of(model)
    if isinstance(policy.parts, str):
        raise UserError(f"--shard: {policy.parts}")
    if odd := [name for name, module in model.named_modules() if hasattr(module, "lora_A") and not module.lora_A]:
        raise UserError(
            f"--shard with an adapter on {odd[0]}, which is not a linear layer: leave it out of --lora-targets"
        )
    mesh = init_device_mesh(model.device.type, (get_world_size(),))
    for layer in layers:
        fully_shard(layer, mesh=mesh, reshard_after_forward=not whole_in_between)
    fully_shard(policy, mesh=mesh, reshard_after_forward=learns)
    for name in _FORWARD:
        register_fsdp_forward_method(policy, name)
    policy.is_sharded = True
    # A cache hands keys and values past the outputs that FSDP watches: a layer's weights would be gone when their
    # gradient is due.
    policy.shares_prompts = False


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


def whole(value: Tensor) -> Tensor:
    """All of it; every rank asks for it."""
    return value.full_tensor() if is_part(value) else value  # type: ignore[attr-defined]


def like(part: Tensor, value: Tensor) -> Tensor:
    """A whole tensor, which every rank has, in parts as `part` is; as it is if that is no part."""
    if not is_part(part):
        return value
    from torch.distributed.tensor import distribute_tensor

    given: Any = part
    return distribute_tensor(  # without communication
        value.to(given.device), given.device_mesh, given.placements, src_data_rank=None
    )


@torch.no_grad()
def put_into(model: nn.Module, weights: Mapping[str, Tensor], *, some: bool = False) -> None:
    """Loads whole weights, which every rank has, into a model that may be in parts; `some`: not all of its weights."""
    own = model.state_dict()
    parts = {name: like(own[name], value) if name in own else value for name, value in weights.items()}
    model.load_state_dict(parts, strict=not some)


def part_like(part: Tensor, value: Tensor) -> Tensor:
    """What this rank holds of a tensor, as the part of a whole that `part` is; as it is if that is no part."""
    if not is_part(part):
        return value
    from torch.distributed.tensor import DTensor

    given: Any = part
    return DTensor.from_local(
        value, given.device_mesh, given.placements, run_check=False, shape=given.shape, stride=given.stride()
    )


def weights_on_main(model: nn.Module, weights: Iterator[tuple[str, Any]], world: World) -> dict[str, Tensor]:
    """`whole_on_main` of the model's weights, as they come; a weight with two names is one tensor again."""
    numbers = {name: id(parameter) for name, parameter in model.named_parameters(remove_duplicate=False)}
    made: dict[Any, Tensor] = {}
    found: dict[str, Tensor] = {}
    for name, value in weights:
        number = numbers.get(name, name)
        if number not in made:
            made[number] = whole_on_main(value, world)
            if isinstance(made[number], Tensor) and not is_part(value):  # merged, it came whole to every rank
                made[number] = value.cpu() if world.is_main else value.new_empty(0)
        found[name] = made[number]
    return found


def whole_on_main(value: Any, world: World) -> Any:
    """The same dictionaries and lists with whole tensors, on the CPU, on the main rank; others get empty ones.

    One tensor at a time is put together, so no rank but the main one ever holds all of them.
    """
    if isinstance(value, dict):
        return {name: whole_on_main(one, world) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(whole_on_main(one, world) for one in value)
    if is_part(value):
        found = whole(value)
        return found.cpu() if world.is_main else found.new_empty(0)
    return value


def whole_weights(weights: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Each weight as a whole, one at a time."""
    for name, value in weights:
        yield name, whole(value)
