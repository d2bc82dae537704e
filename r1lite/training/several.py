"""What several ranks can do, and what is refused."""

from __future__ import annotations

from r1lite.config import DistillConfig, EvalConfig, ProblemsConfig, RewardModelConfig, TrainConfig, WatchdogConfig
from r1lite.config.engines import find_engine
from r1lite.distributed.world import World
from r1lite.errors import UserError

STAGES = ("grpo", "ppo", "sft", "dpo", "distill", "reward-model", "eval")


def in_parts(config: TrainConfig, world: World) -> bool:
    """True if the ranks hold models in parts."""
    return world.size > 1 and config.shard != "none"


def refuse_command(name: str, size: int) -> None:
    """Refuses a command that several ranks would only do several times. Raises UserError."""
    if size > 1 and name not in STAGES:
        raise UserError(
            f"r1lite {name} runs in one process, and the launcher has started {size}: start it without torchrun (or "
            f"srun); several ranks train with r1lite {', '.join(STAGES)}"
        )


def refuse(config: TrainConfig | RewardModelConfig | EvalConfig, size: int) -> None:
    """Refuses what would not be the same run on so many ranks. Raises UserError."""
    if size == 1:
        return
    refuse_command(config.stage, size)
    if isinstance(config, ProblemsConfig) and not (spec := find_engine(config.engine)).shares_weights:
        if not spec.runs_aside:
            raise UserError(
                f"--engine {config.engine} works with one rank so far, and there are {size}: say --engine "
                "transformers, with which each rank samples for itself, or an engine of servers, as vllm-server"
            )
        if getattr(config, "max_staleness", 0):
            raise UserError(
                f"--max-staleness {getattr(config, 'max_staleness', 0)} works with one rank so far, and there are "
                f"{size}: say --max-staleness 0, with which servers sample and ranks learn in turns"
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
    if isinstance(config, TrainConfig) and config.shard != "none" and config.base_quantization != "none":
        raise UserError(
            f"--shard {config.shard} with --base-quantization {config.base_quantization}: weights in 4 bits are not "
            "held in parts so far; say --shard none, or --base-quantization none"
        )


def longest_wait_s(config: WatchdogConfig) -> float:
    """How long a rank that is alive may let the others wait: its own watchdog ends it before. 0: for ever."""
    limits = [getattr(config, name) for name in WatchdogConfig.model_fields if name != "stall_rank_s"]
    return 0.0 if 0 in limits else 2 * sum(limits)
