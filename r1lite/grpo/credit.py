"""From rewards to advantages of completions, or of their tokens.

Shapes: P prompts, G group, B rows, T completion tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from r1lite.config import PPOConfig, RLConfig
from r1lite.config.rl import WHITENED
from r1lite.errors import RunError
from r1lite.grpo.estimators import EstimatorInputs, estimator
from r1lite.grpo.minibatch import RolloutBatch, to_groups, to_rows
from r1lite.rl import losses
from r1lite.rl.advantages import discounted_returns, normalized
from r1lite.rl.gae import gae, length_adaptive_lambda, token_rewards, whiten
from r1lite.rl.kl import kl_estimate
from r1lite.rl.token_baseline import gradient_energy, optimal_token_advantages
from r1lite.types import Group, Rollout

Terms = Mapping[tuple[str, ...], float]  # a reward formula multiplied out: product of verifiers -> weight


def rewards_of(groups: Sequence[Group]) -> Tensor:
    """[P, G] float32, NaN = unscored.

    Raises:
        RunError: a reward that is not finite in float32; the message names its problem.
    """
    rewards = torch.tensor(
        [[math.nan if r.score.reward is None else r.score.reward for r in group.rollouts] for group in groups],
        dtype=torch.float32,
    )
    for group, row in zip(groups, rewards.tolist(), strict=True):
        for sample, (rollout, reward) in enumerate(zip(group.rollouts, row, strict=True)):
            if rollout.score.reward is not None and not math.isfinite(reward):
                raise RunError(
                    f"problem '{group.problem.id}', completion {sample}: its reward is {rollout.score.reward}"
                )
    return rewards


def counts(config: RLConfig, rollout: Rollout) -> bool:
    """True if the completion counts: it was scored, and --overlong-filter does not leave it out."""
    cut = config.overlong_filter and rollout.completion.finish_reason == "length"
    return rollout.score.reward is not None and not cut


def all_have_gradients(config: RLConfig) -> bool:
    """True if completions with advantage 0 have a gradient too, or if other advantages depend on them."""
    return (
        config.kl_coef > 0
        or config.has_token_advantages
        or config.entropy_coef > 0
        or config.positive_nll_coef > 0
        or config.entropy_target is not None
        or config.top_entropy_share < 1
        or config.loss in ("clip_cov", "kl_cov", "dro", "a_star")  # these depend on other tokens or on the distance
        or ":" in config.loss
    )


def from_rewards(config: RLConfig, rewards: Tensor, groups: Sequence[Group], terms: Terms) -> Tensor | None:
    """Advantages [P, G] if they depend on rewards alone; None if they also depend on tokens or on the KL.

    Raises:
        RunError: rewards that the estimator cannot use.
    """
    kl_in_reward = config.kl_coef > 0 and config.kl_in == "reward"
    return None if _by_token(config) or kl_in_reward else _of_completions(config, rewards, groups, terms)


def assign(
    config: RLConfig,
    advantages: Tensor | None,
    rewards: Tensor,
    groups: Sequence[Group],
    micro_batches: Sequence[RolloutBatch],
    terms: Terms,
    kl_coef: float,
) -> Tensor:
    """Sets the advantages of every micro-batch (and its returns, for a critic); returns each completion's, [P, G].

    Args:
        advantages: result of `from_rewards`.
        rewards: [P, G]; NaN = unscored.
        micro_batches: with their frozen log-probabilities and values.
        kl_coef: the current, adapted coefficient.

    Raises:
        RunError: as for `from_rewards`.
    """
    costs = [_kl_cost(config, micro_batch, kl_coef) for micro_batch in micro_batches]  # [B, T] each
    if config.advantage == "optimal_token":
        kl_costs = _of_rows(costs, micro_batches, rewards)
        _credit_by_energy(rewards - kl_costs, micro_batches)
    elif _by_token(config):
        for micro_batch, cost in zip(micro_batches, costs, strict=True):
            _credit_tokens(config, micro_batch, cost)
    else:
        if advantages is None:
            kl_costs = _of_rows(costs, micro_batches, rewards)
            advantages = _of_completions(config, rewards - kl_costs, groups, terms)
        for micro_batch in micro_batches:
            micro_batch.advantages = to_rows(advantages, micro_batch)
    if config.whiten_advantages or config.advantage in WHITENED:
        _whiten(micro_batches)
    if advantages is None or config.has_token_advantages:
        advantages = to_groups([_row_means(micro_batch) for micro_batch in micro_batches], micro_batches, rewards)
    return advantages


def with_advantages(groups: Sequence[Group], advantages: Tensor) -> list[Group]:
    """The groups, each completion with its advantage ([P, G])."""
    return [
        group.with_each({"advantage": advantage} for advantage in row)
        for group, row in zip(groups, advantages.tolist(), strict=True)
    ]


def _by_token(config: RLConfig) -> bool:
    return config.advantage in ("reinforce_pp", "gae", "optimal_token")


def _of_rows(costs: Sequence[Tensor], micro_batches: Sequence[RolloutBatch], rewards: Tensor) -> Tensor:
    """Sums of the token costs of each completion, [P, G]."""
    sums = [torch.where(p.inputs.loss_mask, c, 0.0).sum(dim=1) for p, c in zip(micro_batches, costs, strict=True)]
    return to_groups(sums, micro_batches, rewards)


def _credit_by_energy(rewards: Tensor, micro_batches: Sequence[RolloutBatch]) -> None:
    """The optimal token baseline: compares a group's completions token by token, across micro-batches."""
    rows: dict[int, list[tuple[RolloutBatch, int]]] = {}
    for micro_batch in micro_batches:
        assert micro_batch.old_logprobs is not None
        micro_batch.advantages = torch.zeros_like(micro_batch.old_logprobs)
        for row, (prompt, _) in enumerate(micro_batch.indices):
            rows.setdefault(prompt, []).append((micro_batch, row))
    for prompt, siblings in rows.items():
        energies, masks = [], []
        for micro_batch, row in siblings:
            assert micro_batch.old_logprobs is not None
            assert micro_batch.old_square_mass is not None
            mask = micro_batch.inputs.loss_mask[row]
            energy = gradient_energy(micro_batch.old_logprobs[row], micro_batch.old_square_mass[row])
            energies.append(energy[mask])
            masks.append(mask[mask])
        mine = torch.stack([rewards[prompt, micro_batch.indices[row][1]] for micro_batch, row in siblings])
        advantages = optimal_token_advantages(
            mine.to(energies[0].device),
            torch.nn.utils.rnn.pad_sequence(energies, batch_first=True),
            torch.nn.utils.rnn.pad_sequence(masks, batch_first=True),
        )
        for (micro_batch, row), energy, of_row in zip(siblings, energies, advantages, strict=True):
            assert micro_batch.advantages is not None
            micro_batch.advantages[row, micro_batch.inputs.loss_mask[row]] = of_row[: len(energy)]


def _of_completions(config: Any, rewards: Tensor, groups: Sequence[Group], terms: Terms) -> Tensor:
    """[P, G] rewards (NaN = unscored) -> [P, G] advantages, by --advantage and --normalize-advantages."""
    lengths = torch.tensor([[r.completion.num_sampled for r in group.rollouts] for group in groups])
    names = [name for name in terms if name]
    parts = torch.tensor([[[_part(r, name) for r in group.rollouts] for group in groups] for name in names])
    weights = [terms[name] for name in names]
    values = [group.optimal_value for group in groups if group.optimal_value is not None]
    known = torch.tensor(values, dtype=rewards.dtype) if values and len(values) == len(groups) else None
    try:
        advantages = estimator(config.advantage)(config, EstimatorInputs(rewards, lengths, parts, weights, known))
        return normalized(advantages, ~rewards.isnan()) if config.normalize_advantages else advantages
    except ValueError as error:
        raise RunError(f"--advantage {config.advantage}: {error}") from error


def _part(rollout: Rollout, names: Sequence[str]) -> float:
    """A term of the reward without its weight; NaN if all its verifiers abstain, or the completion is unscored."""
    verdicts = rollout.score.verdicts
    scores = [verdicts[name].score for name in names if name in verdicts]
    spoken = [score for score in scores if score is not None]
    return math.prod(spoken) if spoken else math.nan


def _credit_tokens(config: RLConfig, micro_batch: RolloutBatch, cost: Tensor) -> None:
    mask = micro_batch.inputs.loss_mask
    rewards = token_rewards(micro_batch.rewards, mask, cost)  # [B, T]
    if config.advantage == "reinforce_pp":
        micro_batch.advantages = discounted_returns(rewards, mask, gamma=config.gamma)
    else:
        assert micro_batch.old_values is not None
        assert isinstance(config, PPOConfig)
        gae_lambda: float | Tensor = config.gae_lambda
        if config.gae_lambda_alpha is not None:
            gae_lambda = length_adaptive_lambda(mask, alpha=config.gae_lambda_alpha).to(rewards)
        inputs = (rewards, micro_batch.old_values, mask)
        micro_batch.advantages, micro_batch.returns = gae(*inputs, gamma=config.gamma, gae_lambda=gae_lambda)
        if config.critic_gae_lambda is not None:
            _, micro_batch.returns = gae(*inputs, gamma=config.gamma, gae_lambda=config.critic_gae_lambda)


def _kl_cost(config: RLConfig, micro_batch: RolloutBatch, kl_coef: float) -> Tensor:
    """The KL penalty to subtract from the reward, [B, T]; 0 if the KL is part of the loss."""
    if micro_batch.ref_logprobs is None or config.kl_in == "loss":
        return torch.zeros_like(micro_batch.engine_logprobs)
    assert micro_batch.old_logprobs is not None
    assert config.kl_estimator != "full"
    kl = kl_estimate(
        micro_batch.old_logprobs, micro_batch.ref_logprobs, estimator=config.kl_estimator, cap=config.kl_cap
    )
    return kl_coef * kl


def _whiten(micro_batches: Sequence[RolloutBatch]) -> None:
    """Whitens over all tokens of the step, across micro-batches."""
    if not micro_batches:
        return
    masks = [micro_batch.inputs.loss_mask for micro_batch in micro_batches]
    values = torch.cat(
        [losses.by_token(_known(p)).expand(m.shape)[m] for p, m in zip(micro_batches, masks, strict=True)]
    )  # [N]
    # In double precision, because the order of the sum depends on the micro-batches and the result must not.
    white = whiten(values.double(), torch.ones_like(values, dtype=torch.bool)).to(values.dtype)
    for micro_batch, mask, part in zip(
        micro_batches, masks, white.split([int(mask.sum()) for mask in masks]), strict=True
    ):
        micro_batch.advantages = torch.zeros(mask.shape, dtype=part.dtype, device=mask.device).masked_scatter(
            mask, part
        )


def _known(micro_batch: RolloutBatch) -> Tensor:
    assert micro_batch.advantages is not None
    return micro_batch.advantages


def _row_means(micro_batch: RolloutBatch) -> Tensor:
    """[B]: the mean advantage of each row's tokens."""
    mask = micro_batch.inputs.loss_mask
    return torch.where(mask, losses.by_token(_known(micro_batch)), 0.0).sum(dim=1) / mask.sum(dim=1)
