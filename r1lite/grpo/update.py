"""One update: the gradient of a minibatch, and the optimizer step.

Shapes: B rows, T completion tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from r1lite.config import RLConfig
from r1lite.distributed.world import ALONE, World
from r1lite.grpo.losses import LossInputs, policy_loss, takes_correction
from r1lite.grpo.minibatch import Minibatch, RolloutBatch
from r1lite.grpo.objective import correction
from r1lite.grpo.sums import Mismatch, UpdateSums
from r1lite.model.batch import MicroBatch
from r1lite.model.optimizer import Optimizer
from r1lite.model.out_of_memory import MicroBatchBudget
from r1lite.model.policy import Policy
from r1lite.rl import losses
from r1lite.rl.aggregate import aggregate, masked_sum
from r1lite.rl.entropy import entropy_threshold, top_entropy
from r1lite.rl.importance import mismatch
from r1lite.rl.kl import kl_estimate, kl_k3
from r1lite.run.bad_batches import BadBatches


class Critic(Protocol):
    """Estimates the reward of a completion at each of its tokens."""

    def begin(self, step: int) -> bool:
        """Starts a step. Returns True while only the critic learns and the policy is frozen."""

    def values(self, batch: MicroBatch) -> Tensor:
        """[B, T], before each token is chosen."""

    def accumulate(self, micro_batch: RolloutBatch, num_tokens: int, *, counts: bool = True) -> None:
        """Adds the gradient of this micro-batch's value loss (to its `returns`), divided by num_tokens.

        Args:
            counts: False: the passes are made, but add nothing.
        """

    def saw(self, micro_batches: Sequence[RolloutBatch]) -> None:
        """Records all micro-batches that the ranks have accumulated for the update in preparation."""

    def update(self, step: int) -> None:
        """Applies the accumulated gradient."""

    def discard(self) -> None:
        """Clears the accumulated gradient."""

    def restart(self) -> None:
        """Discards the update in preparation, as if it had not begun."""

    def metrics(self) -> dict[str, Any]:
        """Metrics of the updates since the last call."""

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, weights included."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Current weights of the loss's terms, and whether the policy is frozen while the critic learns."""

    kl: float
    entropy: float
    policy_is_held: bool


@dataclass(slots=True)
class Update:
    """Computes the gradient of a minibatch and applies it. Halves the micro-batches if memory runs out."""

    config: RLConfig
    policy: Policy
    optimizer: Optimizer
    critic: Critic | None
    budget: MicroBatchBudget
    bad: BadBatches
    reference: Policy | None = None  # for --kl-estimator full
    world: World = ALONE
    out_of_memory: int = 0  # number of times, since the step began

    def gradient(self, minibatch: Minibatch, coefficients: Coefficients, step: int, *, first: bool) -> UpdateSums:
        """Accumulates the gradient of this rank's part of the minibatch in the parameters of policy and critic.

        Args:
            first: the weights are still those that sampled, so they are compared with the engine's.

        Returns: sums over the whole minibatch, the same on all ranks.

        Raises:
            RunError: no memory for a single completion.
        """
        threshold = self._entropy_threshold(minibatch)
        sums: dict[int, UpdateSums] = {}  # by micro-batch

        def add(number: int, micro_batch: RolloutBatch) -> None:
            with torch.set_grad_enabled(not coefficients.policy_is_held):
                loss, added = self._loss(micro_batch, minibatch, threshold, coefficients, first)
            if not coefficients.policy_is_held:
                loss.backward()
            if self.critic is not None:
                self.critic.accumulate(micro_batch, minibatch.num_tokens)
            sums[number] = added

        def idle(micro_batch: RolloutBatch) -> None:
            with torch.set_grad_enabled(not coefficients.policy_is_held):
                loss, _ = self._loss(micro_batch, minibatch, threshold, coefficients, first)
            if not coefficients.policy_is_held:
                (0.0 * loss).backward()
            if self.critic is not None:
                self.critic.accumulate(micro_batch, minibatch.num_tokens, counts=False)

        def restart() -> None:
            sums.clear()
            self.optimizer.discard()
            if self.critic is not None:
                self.critic.restart()

        self.out_of_memory += self.budget.go_through(minibatch.within, add, restart, step=step, idle=idle)
        if self.critic is not None:
            self.critic.saw(minibatch.micro_batches)
        every = {number: one for part in self.world.all_gather_object(sums) for number, one in part.items()}
        total = UpdateSums()
        for number in sorted(every):  # a fixed order, whichever rank computed them
            total += every[number]
        return total

    def apply(self, minibatch: Minibatch, sums: UpdateSums, step: int, lr: float, *, policy_is_held: bool) -> None:
        """Takes the optimizer step and counts it in `sums`; a non-finite gradient is skipped, its batches saved.

        Raises:
            RunError: no finite gradient three times in a row.
        """
        if policy_is_held:
            self.optimizer.discard()
        else:
            norm = None
            if math.isfinite(sums.loss):
                norm = self.optimizer.step(lr)
            else:
                self.optimizer.discard()
            sums.add_step(norm)
            if norm is None:
                batches = [micro_batch.as_dict() for micro_batch in minibatch.micro_batches]
                self.bad.skipped(step + 1, batches, loss=sums.loss, parameters=self.optimizer.nonfinite)
            else:
                self.bad.fine()
        if self.critic is not None:
            self.critic.update(step)

    def discard(self) -> None:
        """Clears the accumulated gradients."""
        self.optimizer.discard()
        if self.critic is not None:
            self.critic.discard()

    def _loss(
        self,
        micro_batch: RolloutBatch,
        minibatch: Minibatch,
        threshold: float | None,
        coefficients: Coefficients,
        first: bool,
    ) -> tuple[Tensor, UpdateSums]:
        """This micro-batch's part of the loss over the whole minibatch."""
        config, inputs, advantages = self.config, micro_batch.inputs, micro_batch.advantages
        assert advantages is not None
        mask, sums = inputs.loss_mask, UpdateSums()
        wants_entropy, exact_kl = coefficients.entropy != 0, None  # [B, T] all
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
                per_token = per_token + coefficients.kl * kl
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
            loss = loss - coefficients.entropy * masked_sum(entropy, mask) / minibatch.num_tokens
        sums.add(loss, token_loss, mask)
        sums.add_drift(losses.policy_ratio(logprobs.detach(), old), mask)
        if first:
            sums.mismatch = Mismatch.of(mismatch(old, micro_batch.engine_logprobs, mask))
        return loss, sums

    def _entropy_threshold(self, minibatch: Minibatch) -> float | None:
        """The entropy below which a token's loss is left out; None = no token is left out."""
        if self.config.top_entropy_share == 1:
            return None
        entropies = [
            one.old_entropy[one.inputs.loss_mask] for one in minibatch.micro_batches if one.old_entropy is not None
        ]
        return entropy_threshold(torch.cat(entropies), self.config.top_entropy_share)
