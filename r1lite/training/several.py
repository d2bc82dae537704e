"""Checks of settings for several ranks, and that the ranks are alike."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from r1lite.config import (
    DistillConfig,
    EvalConfig,
    ProblemsConfig,
    RewardModelConfig,
    RunConfig,
    ShardConfig,
    TrainConfig,
    WatchdogConfig,
)
from r1lite.config.engines import find_engine
from r1lite.distributed.launcher import rank_info
from r1lite.distributed.together import everyone
from r1lite.distributed.world import World
from r1lite.errors import UserError
from r1lite.run.environment import software
from r1lite.run.model_digests import changed_model, model_digests

STAGES = ("grpo", "ppo", "sft", "dpo", "distill", "reward-model", "eval")


def loads_for_parts(config: RunConfig) -> bool:
    """Returns True if this rank's models will be sharded."""
    from torch import distributed

    several = distributed.is_available() and distributed.is_initialized()
    return several and isinstance(config, ShardConfig) and config.in_parts(distributed.get_world_size())


def refuse_command(name: str, size: int) -> None:
    """Raises UserError for a command that does not support several ranks."""
    if size > 1 and name not in STAGES:
        raise UserError(
            f"r1lite {name} runs in one process, but the launcher has started {size}: start it without torchrun (or "
            f"srun); these commands support several ranks: {', '.join(STAGES)}"
        )


def refuse(config: TrainConfig | RewardModelConfig | EvalConfig, size: int) -> None:
    """Raises UserError for settings that `size` ranks don't support; the stage itself resolves `--engine auto`."""
    if size == 1:
        return
    refuse_command(config.stage, size)
    if isinstance(config, EvalConfig) and config.on != "local":
        raise UserError(f"--on {config.on} uses actors instead of ranks: start r1lite eval without torchrun")
    if isinstance(config, ProblemsConfig) and config.engine != "auto":
        spec = find_engine(config.engine)
        if not spec.shares_weights and not spec.runs_aside:
            raise UserError(
                f"--engine {config.engine} only works with one rank so far, but there are {size}: use --engine "
                "transformers, with which each rank samples itself, or an engine of servers such as vllm-server"
            )
    if isinstance(config, ProblemsConfig) and config.scoring != "local" and config.score_workers is None:
        raise UserError(
            f"--scoring {config.scoring} with {size} ranks needs --score-workers: the number of actors of each "
            "rank, one CPU each"
        )
    if isinstance(config, DistillConfig) and config.needs_set and config.data is None:
        raise UserError(
            "--data is missing: several ranks can't sample the teacher's set. Make it first, with r1lite reject in one "
            "process, and pass its folder"
        )
    if (
        isinstance(config, ShardConfig)
        and config.shard_copies > 1
        and (size % config.shard_copies or size == config.shard_copies)
    ):
        raise UserError(
            f"--shard-copies {config.shard_copies} with {size} ranks: each copy needs the same number of "
            "ranks, at least two"
        )
    if isinstance(config, TrainConfig) and config.shard != "none" and config.base_quantization != "none":
        raise UserError(
            f"--shard {config.shard} with --base-quantization {config.base_quantization}: 4-bit weights can't be "
            "sharded so far; use --shard none or --base-quantization none"
        )


def refuse_differences(
    world: World, config: RunConfig, data: Mapping[str, str], verifiers: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raises UserError if a rank has other data, models, verifiers or software than the main rank.

    Args:
        data: what the run learns from -> its digest.
        verifiers: verifier -> its version.
    """
    if world.size == 1:
        return
    versions = {**software(), **{f"verifier '{name}'": version for name, version in verifiers.items()}}
    here = rank_info()
    first = here is None or here.local_rank == 0  # the ranks of a machine read the same files
    held = everyone(world, lambda: (data, model_digests(config) if first else {}, versions))
    main_data, main_models, main_versions = held[0]
    for rank, (theirs, models, others) in enumerate(held):
        what = next((name for name in main_data if theirs[name] != main_data[name]), "")
        if what or (what := changed_model(main_models, models).removeprefix("the ")):
            raise UserError(f"ranks 0 and {rank} have different {what}: copy the same files to each machine")
        for name in {**main_versions, **others}:
            if others.get(name) != main_versions.get(name):
                raise UserError(
                    f"ranks 0 and {rank} have different versions of {name} ({main_versions.get(name)} and "
                    f"{others.get(name)}): they would decide or compute differently; install the same on each machine"
                )


def longest_wait_s(config: WatchdogConfig) -> float:
    """Returns how long a live rank may let the others wait (s); its own watchdog ends it earlier. 0: no limit."""
    limits = [getattr(config, name) for name in WatchdogConfig.model_fields if name != "stall_rank_s"]
    return 0.0 if 0 in limits else 2 * sum(limits)
