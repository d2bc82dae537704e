"""`r1lite grpo`: reinforcement learning from rewards that rules can check."""

from __future__ import annotations

from typing import Any

from r1lite.config import GRPOConfig
from r1lite.learner import PolicyLearner
from r1lite.policy import Policy, Trainer
from r1lite.setup import Setup, forward_dtype
from r1lite.training import train
from verifiers.formula import Formula


def run(config: GRPOConfig) -> dict[str, Any]:
    """Trains, and measures before and after; everything lies in the run directory. See `training.train`."""
    return train(config, _learner)


def _learner(config: GRPOConfig, setup: Setup) -> PolicyLearner:
    policy = Policy(
        setup.model,
        pad_id=setup.engine.pad_id,
        temperature=config.temperature,
        dtype=forward_dtype(config),
        gradient_checkpointing=config.gradient_checkpointing,
    )
    trainer = Trainer(
        policy,
        betas=(config.adam_beta1, config.adam_beta2),
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
    )
    return PolicyLearner(
        config,
        policy,
        trainer,
        reference=policy.frozen_copy() if config.kl_coef > 0 else None,
        reward_terms=Formula(setup.judge.reward.formula).terms,
    )
