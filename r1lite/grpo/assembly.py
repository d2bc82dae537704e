"""Builds the learner and the loop of `r1lite grpo` and `r1lite ppo` from a configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from r1lite.config import GRPOConfig, PPOConfig, RLConfig
from r1lite.config.rollout import THINKING_END
from r1lite.errors import UserError
from r1lite.grpo.choice import Curriculum, Retired
from r1lite.grpo.critic import LearningCritic, make_value_model
from r1lite.grpo.estimators import ESTIMATORS, estimator
from r1lite.grpo.learner import Learner, PolicyLearner
from r1lite.grpo.loop import Loop
from r1lite.grpo.losses import loss_function
from r1lite.grpo.optimal_values import optimal_values
from r1lite.model.offload import check_offload, stream_layers
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.model.sharding import shard
from r1lite.rollout.interruption import Interruption, make_interruption
from r1lite.run.arrivals import ARRIVALS
from r1lite.run.bad_batches import BadBatches
from r1lite.run.signals import StopSignal
from r1lite.training.loading import forward_dtype
from r1lite.training.on_problems import run_training
from r1lite.training.setup import Setup, adapt
from verifiers.formula import Formula

R = TypeVar("R", bound=RLConfig)


def make_learner(config: RLConfig, setup: Setup) -> PolicyLearner:
    """Builds the learner of a run, with a critic if its stage has one. Raises UserError."""
    loss_function(config.loss)  # imports functions of the user early, so that an error costs no time
    if config.advantage not in (*ESTIMATORS, "reinforce_pp", "gae", "optimal_token"):
        estimator(config.advantage)
    adapt(setup, config)
    policy = Policy(
        setup.model,
        pad_id=setup.engine.pad_id,
        temperature=config.temperature,
        dtype=forward_dtype(config),
        gradient_checkpointing=config.gradient_checkpointing,
        fp32_head=config.fp32_head,
        padding_free=config.padding_free,
    )
    parts = config.in_parts(setup.world.size)
    if not parts:
        setup.world.copy_from_main(list(policy.model.parameters()))  # each rank has read its own files
    reference, critic, value_model = _reference(config, policy, sharing=parts), None, None
    check_offload(config, reference)
    if isinstance(config, PPOConfig):
        value_model = make_value_model(config, policy, setup.tokenizer, sharing=parts)
    if parts:
        held: Any = {"device": config.device, "copies": config.shard_copies}
        options = {**held, "whole_in_between": config.shard == "grad"}
        shard(policy, setup.world, **options)
        setup.engine.measured_by(policy)
        if reference is not None:
            shard(reference, setup.world, learns=False, offload=config.offload_reference, **held)
        if value_model is not None:
            value_model.head.to(config.device)
            if not value_model.shared:
                shard(value_model.backbone, setup.world, **options)
    elif config.offload_reference and reference is not None:
        stream_layers(reference.model)
    optimizer = Optimizer.configured(policy.model, config, setup.world, offload=config.offload_optimizer)
    if isinstance(config, PPOConfig):
        assert value_model is not None
        critic = LearningCritic(config, value_model, BadBatches(setup.run_dir.bad_batches), setup.world)
    return PolicyLearner(
        config,
        policy,
        optimizer,
        reference=reference,
        critic=critic,
        reward_terms=Formula(setup.scorer.reward.formula).terms,
        bad=BadBatches(setup.run_dir.bad_batches),
        world=setup.world,
    )


def _reference(config: RLConfig, policy: Policy, *, sharing: bool) -> Policy | None:
    if not config.has_reference:
        return None
    alone = config.lora_rank and not config.moves_reference
    return policy.before_adapter() if alone else policy.frozen_copy(sharing=sharing)


def _interruption(config: RLConfig, setup: Setup) -> Interruption | None:
    after = config.interrupt_thinking_after
    if after is None:
        return None
    if setup.train and THINKING_END in setup.train[0].prefill:
        raise UserError(
            f"--interrupt-thinking-after {after}: --template {config.template} ends the thinking in the prompt, "
            "so there is nothing to interrupt; leave the flag out"
        )
    return make_interruption(after, config.interruption_phrase, config.max_completion_tokens, setup.tokenizer)


def train(config: R, make_learner: Callable[[R, Setup], Learner]) -> dict[str, Any]:
    """Runs reinforcement learning: sampling, scoring, learning. See `run_training`."""

    def make_loop(config: R, setup: Setup, stop: StopSignal) -> Loop:
        learner, interruption = make_learner(config, setup), _interruption(config, setup)
        values = {}
        if isinstance(config, GRPOConfig) and config.value_samples:
            values = optimal_values(config, setup, stop, interruption)
        return Loop(
            config=config,
            prompts=setup.train,
            scorer=setup.scorer,
            engine=setup.engine,
            learner=learner,
            stop=stop,
            watchdog=setup.watchdog,
            world=setup.world,
            curriculum=Curriculum() if config.curriculum else None,
            retired=Retired(config.retire_solved) if config.retire_solved is not None else None,
            interruption=interruption,
            optimal_values=values,
            told=setup.display.scored,
            arrivals=setup.run_dir.path / ARRIVALS,
        )

    return run_training(config, make_loop)
