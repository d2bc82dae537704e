"""One frozen configuration class per stage; its field docstrings are the help texts of the command line."""

from r1lite.config.base import RunConfig, Section
from r1lite.config.distill import DistillConfig
from r1lite.config.engine import OF_ONE_ENGINE, EngineConfig
from r1lite.config.evaluate import EvalConfig
from r1lite.config.loading import (
    OF_THE_COMMAND,
    dump,
    load,
    read_recipe,
    read_saved,
    refuse_changes,
    validated,
    without_open,
)
from r1lite.config.objective import ObjectiveConfig
from r1lite.config.on_ray import OnRayConfig
from r1lite.config.optimizer import OptimizerConfig
from r1lite.config.ppo import PPOConfig
from r1lite.config.problems import ProblemsConfig
from r1lite.config.reject import ColdStartConfig, CurationConfig, RejectConfig
from r1lite.config.reward_model import RewardModelConfig
from r1lite.config.rl import GRPOConfig, RLConfig
from r1lite.config.rollout import RolloutConfig
from r1lite.config.supervised import DPOConfig, SFTConfig, SupervisedConfig
from r1lite.config.train import ShardConfig, TrainConfig, WatchdogConfig

__all__ = [
    "OF_ONE_ENGINE",
    "OF_THE_COMMAND",
    "ColdStartConfig",
    "CurationConfig",
    "DPOConfig",
    "DistillConfig",
    "EngineConfig",
    "EvalConfig",
    "GRPOConfig",
    "ObjectiveConfig",
    "OnRayConfig",
    "OptimizerConfig",
    "PPOConfig",
    "ProblemsConfig",
    "RLConfig",
    "RejectConfig",
    "RewardModelConfig",
    "RolloutConfig",
    "RunConfig",
    "SFTConfig",
    "Section",
    "ShardConfig",
    "SupervisedConfig",
    "TrainConfig",
    "WatchdogConfig",
    "dump",
    "load",
    "read_recipe",
    "read_saved",
    "refuse_changes",
    "validated",
    "without_open",
]
