"""What several ranks can do, and what is refused."""

from __future__ import annotations

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
from r1lite.errors import UserError

STAGES = ("grpo", "ppo", "sft", "dpo", "distill", "reward-model", "eval")


def loads_for_parts(config: RunConfig) -> bool:
    """True in a rank whose models are held in parts once they are loaded."""
    from torch import distributed

    several = distributed.is_available() and distributed.is_initialized()
    return several and isinstance(config, ShardConfig) and config.in_parts(distributed.get_world_size())


def refuse_command(name: str, size: int) -> None:
    """Refuses a command that several ranks would only do several times. Raises UserError."""
    if size > 1 and name not in STAGES:
        raise UserError(
            f"r1lite {name} runs in one process, and the launcher has started {size}: start it without torchrun (or "
            f"srun); several ranks train with r1lite {', '.join(STAGES)}"
        )


def refuse(config: TrainConfig | RewardModelConfig | EvalConfig, size: int) -> None:
    """Refuses what would not be the same run on so many ranks; what `--engine auto` will be is the stage's to say.

    Raises: UserError.
    """
    if size == 1:
        return
    refuse_command(config.stage, size)
    if isinstance(config, EvalConfig) and config.on != "local":
        raise UserError(f"--on {config.on} takes actors where there were ranks: start r1lite eval without torchrun")
    if isinstance(config, ProblemsConfig) and config.engine != "auto":
        spec = find_engine(config.engine)
        if not spec.shares_weights and not spec.runs_aside:
            raise UserError(
                f"--engine {config.engine} works with one rank so far, and there are {size}: say --engine "
                "transformers, with which each rank samples for itself, or an engine of servers, as vllm-server"
            )
    if isinstance(config, ProblemsConfig) and config.scoring != "local" and config.score_workers is None:
        raise UserError(
            f"--scoring {config.scoring} with {size} ranks needs --score-workers: how many actors, of one CPU "
            "each, a rank has"
        )
    if isinstance(config, DistillConfig) and config.needs_set and config.data is None:
        raise UserError(
            "--data is missing: several ranks don't sample the teacher's set. Make it before, by r1lite reject in one "
            "process, and name its folder"
        )
    if (
        isinstance(config, ShardConfig)
        and config.shard_copies > 1
        and (size % config.shard_copies or size == config.shard_copies)
    ):
        raise UserError(
            f"--shard-copies {config.shard_copies} with {size} ranks: each copy is held by as many ranks, two at least"
        )
    if isinstance(config, TrainConfig) and config.shard != "none" and config.base_quantization != "none":
        raise UserError(
            f"--shard {config.shard} with --base-quantization {config.base_quantization}: weights in 4 bits are not "
            "held in parts so far; say --shard none, or --base-quantization none"
        )


def longest_wait_s(config: WatchdogConfig) -> float:
    """How long a rank that is alive may let the others wait: its own watchdog ends it before. 0: for ever."""
    limits = [getattr(config, name) for name in WatchdogConfig.model_fields if name != "stall_rank_s"]
    return 0.0 if 0 in limits else 2 * sum(limits)
