"""Puts a learner together from a configuration and what was loaded: what grpo and ppo share."""

from __future__ import annotations

from r1lite.config import PPOConfig, RLConfig
from r1lite.model.policy import Policy, Trainer
from r1lite.run.bad_batches import BadBatches
from r1lite.setup import Setup, adapt, forward_dtype
from r1lite.trainer.critic import LearningCritic, make_value_model
from r1lite.trainer.learner import PolicyLearner
from verifiers.formula import Formula


def make_learner(config: RLConfig, setup: Setup) -> PolicyLearner:
    """The learner of a run, with a critic if its stage has one. Raises UserError."""
    adapt(setup, config)
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
    critic = None
    if isinstance(config, PPOConfig):
        value_model = make_value_model(config, policy, setup.tokenizer)
        critic = LearningCritic(config, value_model, BadBatches(setup.run_dir.bad_batches))
    return PolicyLearner(
        config,
        policy,
        trainer,
        reference=_reference(config, policy),
        critic=critic,
        reward_terms=Formula(setup.judge.reward.formula).terms,
        bad=BadBatches(setup.run_dir.bad_batches),
    )


def _reference(config: RLConfig, policy: Policy) -> Policy | None:
    if config.kl_coef == 0:
        return None
    moves = config.reference_refresh_steps > 0 or config.reference_decay < 1
    return policy.before_adapter() if config.lora_rank and not moves else policy.frozen_copy()
