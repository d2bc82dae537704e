"""The loss of a micro-batch, as configured.

Shapes: B rows, T completion tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from r1lite.config import RLConfig
from r1lite.grpo.losses import LossInputs, policy_loss, takes_correction
from r1lite.grpo.minibatch import Minibatch, RolloutBatch
from r1lite.grpo.sums import Mismatch, UpdateSums
from r1lite.model.policy import Policy
from r1lite.rl import losses
from r1lite.rl.aggregate import aggregate, masked_sum
from r1lite.rl.entropy import entropy_threshold, top_entropy
from r1lite.rl.importance import importance_ratio, importance_weights, mismatch, off_policy_mask
from r1lite.rl.kl import kl_estimate, kl_k3


@dataclass(frozen=True, slots=True)
class Objective:
    """The loss that the policy minimizes in one step."""

    config: RLConfig
    policy: Policy
    reference: Policy | None  # for --kl-estimator full
    kl_coef: float  # of this step
    entropy_coef: float  # of this step

    def loss(
        self, micro_batch: RolloutBatch, minibatch: Minibatch, threshold: float | None, *, first: bool
    ) -> tuple[Tensor, UpdateSums]:
        """This micro-batch's part of the loss over the whole minibatch, and its sums.

        Args:
            threshold: result of `entropy_below`.
            first: the weights are still those that sampled, so they are compared with the engine's.
        """
        config, inputs, advantages = self.config, micro_batch.inputs, micro_batch.advantages
        assert advantages is not None
        mask, sums = inputs.loss_mask, UpdateSums()
        wants_entropy, exact_kl = self.entropy_coef != 0, None  # [B, T] all
        if self.reference is not None and config.kl_estimator == "full" and config.kl_coef > 0:
            logprobs, entropy, exact_kl = self.policy.with_kl(inputs, self.reference, entropy=wants_entropy)
        else:
            logprobs, entropy = self.policy(inputs, entropy=wants_entropy)
        old = logprobs.detach() if micro_batch.old_logprobs is None else micro_batch.old_logprobs
        weights, sums.bounded = correction(
            config, logprobs.detach(), old, micro_batch.engine_logprobs, advantages, mask
        )
        ref, inside, before = micro_batch.ref_logprobs, takes_correction(config), old
        if config.ratio_to == "engine":
            engine = micro_batch.engine_logprobs
            before = torch.where(torch.isnan(engine), old, engine)
        token_loss = policy_loss(
            config,
            LossInputs(logprobs, before, advantages, mask, ref, micro_batch.chosen, weights if inside else None),
        )
        per_token = token_loss.values
        if weights is not None and not inside:
            per_token = per_token * weights
        if threshold is not None:
            assert micro_batch.old_entropy is not None
            per_token = torch.where(top_entropy(micro_batch.old_entropy, mask, threshold=threshold), per_token, 0.0)
        if ref is not None:
            at = logprobs if config.kl_in == "loss" else old
            token_ratio = losses.policy_ratio(logprobs, old) if config.kl_estimator == "k3_corrected" else None
            if exact_kl is not None:
                kl = exact_kl
            elif config.kl_estimator == "full":  # only for the metric: an estimate is enough
                kl = kl_k3(at, ref)
            else:
                kl = kl_estimate(at, ref, estimator=config.kl_estimator, ratio=token_ratio, cap=config.kl_cap)
            sums.reference_drift = float(masked_sum(kl_k3(logprobs.detach(), ref), mask))
            if config.kl_in == "loss":
                per_token = per_token + self.kl_coef * kl
            sums.kl = float(masked_sum(kl.detach(), mask))
        loss = aggregate(
            per_token,
            mask,
            method=config.aggregation,
            num_tokens=minibatch.num_tokens,
            num_rows=minibatch.num_rows,
            max_tokens=config.max_completion_tokens,
            prompt_tokens=minibatch.prompt_tokens(micro_batch),
            num_prompts=minibatch.num_prompts,
        )
        if config.positive_nll_coef > 0:
            nll = losses.positive_nll(logprobs, mask, micro_batch.right, num_tokens=minibatch.num_right_tokens)
            loss = loss + config.positive_nll_coef * nll
        if entropy is not None:
            loss = loss - self.entropy_coef * masked_sum(entropy, mask) / minibatch.num_tokens
        sums.add(loss, token_loss, mask)
        sums.add_drift(losses.policy_ratio(logprobs.detach(), old), mask)
        if first:
            sums.mismatch = Mismatch.of(mismatch(old, micro_batch.engine_logprobs, mask))
        return loss, sums

    def entropy_below(self, minibatch: Minibatch) -> float | None:
        """The entropy below which a token's loss is left out; None = no token is left out."""
        if self.config.top_entropy_share == 1:
            return None
        entropies = [
            one.old_entropy[one.inputs.loss_mask] for one in minibatch.micro_batches if one.old_entropy is not None
        ]
        return entropy_threshold(torch.cat(entropies), self.config.top_entropy_share)


def correction(
    config: RLConfig, logprobs: Tensor, old_logprobs: Tensor, engine_logprobs: Tensor, advantages: Tensor, mask: Tensor
) -> tuple[Tensor | None, int]:
    """Weights of the policy loss that correct off-policy samples, without gradient; None = 1 everywhere.

    Args:
        engine_logprobs: [B, T]; NaN if the engine returned none.

    Returns: [B, T] or [B, 1], and the number of tokens whose --importance ratio was outside its bounds.
    """
    weights, num_bounded = None, 0
    if config.importance in ("token", "sequence", "geometric"):
        ratio = importance_ratio(old_logprobs, engine_logprobs, mask, level=config.importance)
        low, high = config.importance_low, config.importance_high
        weights = importance_weights(ratio, mode=config.importance_mode, low=low, high=high)
        num_bounded = int((((ratio < low) | (ratio > high)) & mask).sum())
    if config.off_policy_threshold is not None:
        sampled = torch.where(torch.isnan(engine_logprobs), old_logprobs, engine_logprobs)
        keep = off_policy_mask(logprobs, sampled, advantages, mask, threshold=config.off_policy_threshold)
        weights = keep.to(logprobs) if weights is None else weights * keep
    return weights, num_bounded
