"""From rewards to advantages: what each completion, or each of its tokens, is credited with.

Shapes: P prompts, G group, B rows, T completion tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from r1lite.config import RLConfig
from r1lite.grpo.experience import Piece, gathered, spread
from r1lite.grpo.objective import Terms, completion_advantages
from r1lite.rl import losses
from r1lite.rl.advantages import discounted_returns
from r1lite.rl.gae import gae, token_rewards, whiten
from r1lite.rl.kl import kl_estimate
from r1lite.types import Group, Rollout


class Unfit(ValueError):
    """Rewards that the estimator can't work with."""


def takes_part(config: RLConfig, rollout: Rollout) -> bool:
    """True if the completion counts: it was scored, and not cut off where --overlong-filter leaves those out."""
    cut = config.overlong_filter and rollout.completion.finish_reason == "length"
    return rollout.score.reward is not None and not cut


def all_teach(config: RLConfig) -> bool:
    """True if completions of advantage 0 have a gradient too, or others' advantages depend on them."""
    return (
        config.kl_coef > 0
        or config.has_token_advantages
        or config.entropy_coef > 0
        or config.entropy_target is not None
        or config.top_entropy_share < 1
    )


def before_the_policy(config: RLConfig, rewards: Tensor, groups: Sequence[Group], terms: Terms) -> Tensor | None:
    """Advantages [P, G] where rewards alone decide; None where tokens or the KL have a say.

    Raises:
        Unfit: rewards that the estimator can't work with.
    """
    kl_in_reward = config.kl_coef > 0 and config.kl_in == "reward"
    return None if _by_token(config) or kl_in_reward else _of_completions(config, rewards, groups, terms)


def assign(
    config: RLConfig,
    advantages: Tensor | None,
    rewards: Tensor,
    groups: Sequence[Group],
    pieces: Sequence[Piece],
    terms: Terms,
    kl_coef: float,
) -> Tensor:
    """Gives every piece its advantages (and returns, for a critic), and tells each completion's, [P, G].

    Args:
        advantages: of `before_the_policy`.
        rewards: [P, G]; NaN = unscored.
        pieces: with their frozen log-probabilities and values.
        kl_coef: as adapted so far.

    Raises:
        Unfit: as above.
    """
    costs = [_kl_cost(config, piece, kl_coef) for piece in pieces]  # [B, T] each
    if _by_token(config):
        for piece, cost in zip(pieces, costs, strict=True):
            _credit_tokens(config, piece, cost)
    else:
        if advantages is None:
            taken = [torch.where(p.batch.mask, c, 0.0).sum(dim=1) for p, c in zip(pieces, costs, strict=True)]
            advantages = _of_completions(config, rewards - gathered(taken, pieces, rewards), groups, terms)
        for piece in pieces:
            piece.advantages = spread(advantages, piece)
    if config.whiten_advantages or config.advantage.startswith("reinforce_pp"):
        _whiten(pieces)
    if advantages is None or config.has_token_advantages:
        advantages = gathered([_row_means(piece) for piece in pieces], pieces, rewards)
    return advantages


def _by_token(config: RLConfig) -> bool:
    return config.advantage in ("reinforce_pp", "gae")


def _of_completions(config: RLConfig, rewards: Tensor, groups: Sequence[Group], terms: Terms) -> Tensor:
    try:
        return completion_advantages(config, rewards, groups, terms)
    except ValueError as error:
        raise Unfit(str(error)) from error


def _credit_tokens(config: RLConfig, piece: Piece, cost: Tensor) -> None:
    mask = piece.batch.mask
    rewards = token_rewards(piece.rewards, mask, cost)  # [B, T]
    if config.advantage == "reinforce_pp":
        piece.advantages = discounted_returns(rewards, mask, gamma=config.gamma)
    else:
        assert piece.old_values is not None
        piece.advantages, piece.returns = gae(
            rewards, piece.old_values, mask, gamma=config.gamma, gae_lambda=config.gae_lambda
        )


def _kl_cost(config: RLConfig, piece: Piece, kl_coef: float) -> Tensor:
    """What straying from the reference takes off the reward, [B, T]."""
    if piece.ref_logprobs is None or config.kl_in == "loss":
        return torch.zeros_like(piece.engine_logprobs)
    assert piece.old_logprobs is not None
    return kl_coef * kl_estimate(piece.old_logprobs, piece.ref_logprobs, estimator=config.kl_estimator)


def _whiten(pieces: Sequence[Piece]) -> None:
    """Over all tokens of the step, whichever piece they are in."""
    if not pieces:
        return
    masks = [piece.batch.mask for piece in pieces]
    values = torch.cat(
        [losses.by_token(_known(p)).expand(m.shape)[m] for p, m in zip(pieces, masks, strict=True)]
    )  # [N]
    white = whiten(values, torch.ones_like(values, dtype=torch.bool))
    for piece, mask, part in zip(pieces, masks, white.split([int(mask.sum()) for mask in masks]), strict=True):
        piece.advantages = torch.zeros(mask.shape, dtype=part.dtype, device=mask.device).masked_scatter(mask, part)


def _known(piece: Piece) -> Tensor:
    assert piece.advantages is not None
    return piece.advantages


def _row_means(piece: Piece) -> Tensor:
    """[B]: the mean advantage of each row's tokens."""
    mask = piece.batch.mask
    return torch.where(mask, losses.by_token(_known(piece)), 0.0).sum(dim=1) / mask.sum(dim=1)
