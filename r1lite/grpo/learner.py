"""The update of one step: advantages, then the gradient of each minibatch, then optimizer steps.

Shapes: P prompts, G group.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from r1lite.config import RLConfig
from r1lite.distributed.world import ALONE, World
from r1lite.errors import RunError
from r1lite.grpo import credit
from r1lite.grpo.critic import LearningCritic
from r1lite.grpo.losses import choose, needs_choice
from r1lite.grpo.minibatch import Minibatch, RolloutBatch, make_minibatches, reshuffled
from r1lite.grpo.objective import Objective
from r1lite.grpo.sums import UpdateSums
from r1lite.grpo.token_records import measure, token_advantages, with_records
from r1lite.model.optimizer import Optimizer
from r1lite.model.out_of_memory import MicroBatchBudget
from r1lite.model.policy import Policy
from r1lite.model.sharding import local, put_into
from r1lite.rl.entropy import adapted_entropy_coef
from r1lite.rl.gae import adapted_kl_coef
from r1lite.rl.sampling import completion_seed
from r1lite.run.bad_batches import BadBatches
from r1lite.types import Group

_MAX_MISMATCH = 0.02  # nats, in float32, where decoding and training differ only by rounding (1e-5 is usual)
_SMALLER = "--gradient-checkpointing, --lora-rank 16, a smaller --max-completion-tokens or a smaller model"


class Learner(Protocol):
    """Turns scored groups into new weights. All its memory is in its state."""

    policy: Policy

    def learn(self, groups: Sequence[Group], step: int) -> tuple[list[Group], dict[str, Any]]:
        """Updates the policy. Returns the groups with their advantages, and the update's metrics."""

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, beside the policy's weights."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""


@dataclass(slots=True)
class PolicyLearner:
    """Policy gradients: GRPO (arXiv:2402.03300), PPO (arXiv:1707.06347) and related methods, as configured."""

    config: RLConfig
    policy: Policy
    optimizer: Optimizer
    reference: Policy | None  # for the KL
    critic: LearningCritic | None = None  # for --advantage gae
    reward_terms: credit.Terms = field(default_factory=dict)  # of the reward formula; for --advantage gdpo
    bad: BadBatches = field(kw_only=True)  # records updates without a finite gradient
    world: World = ALONE
    kl_coef: float = field(init=False)  # the current, adapted coefficient
    entropy_coef: float = field(init=False)
    budget: MicroBatchBudget = field(init=False)
    _out_of_memory: int = field(init=False, default=0)  # number of times, since the step began

    def __post_init__(self) -> None:
        self.kl_coef, self.entropy_coef = self.config.kl_coef, self.config.entropy_coef
        self.budget = MicroBatchBudget(
            self.config.micro_batch_tokens,
            row="completion",
            advice=_SMALLER,
            world=self.world,
            in_step=self.policy.is_sharded,
        )

    def learn(self, groups: Sequence[Group], step: int) -> tuple[list[Group], dict[str, Any]]:
        """Updates the policy on the groups: `updates_per_rollout` passes over `minibatches` minibatches.

        Returns: the groups with their advantages, and the update's metrics.

        Raises:
            RunError: no finite gradient three times in a row, or the sampler's weights aren't the trainer's.
        """
        config = self.config
        lr = config.policy_lr_at(step)
        self._refuse_unknown_sampler(groups, step)
        self._out_of_memory = 0
        advantages, minibatches = self._credit(groups, step)
        recorded = self._recorded(groups, minibatches, step) if config.record_tokens else groups
        entropy = _mean_entropy(minibatches)
        frozen = self.critic is not None and self.critic.begin(step)
        objective = Objective(config, self.policy, self.reference, self.kl_coef, self._entropy_bonus(entropy))
        total, policy_kl, stopped = UpdateSums(), None, 0
        planned = len(minibatches) * config.updates_per_rollout
        for n, minibatch in enumerate(self._passes(minibatches, step)):
            sums = self._gradient(minibatch, objective, step, frozen=frozen, first=total.updates == 0)
            policy_kl = sums.policy_kl
            if self._is_too_far(sums, first=n == 0):
                self.optimizer.discard()
                if self.critic is not None:
                    self.critic.discard()
                total, stopped = total + sums, planned - n
                break
            self._apply(minibatch, sums, step, lr, frozen=frozen)
            total += sums
        self._check_mismatch(total, step)
        metrics = {
            "lr": lr,
            "micro_batch_tokens": self.budget.tokens,
            **total.metrics(),
            "policy_kl": policy_kl if policy_kl is not None and math.isfinite(policy_kl) else None,
            "stopped_updates": stopped,
            "out_of_memory": self._out_of_memory,
            **self._adapted(total, entropy, sum(len(group.rollouts) for group in groups)),
        }
        if self.critic is not None:
            metrics |= self.critic.metrics()
        self._move_reference(step)
        return credit.with_advantages(recorded, advantages), metrics

    def _recorded(self, groups: Sequence[Group], minibatches: Sequence[Minibatch], step: int) -> Sequence[Group]:
        """The groups with the policy's log-probability and entropy of each token, measured before the update."""
        seen, out_of_memory = measure(groups, self.policy, self.budget, step, self.world)
        self._out_of_memory += out_of_memory
        return with_records(groups, seen, token_advantages(minibatches))

    def state_dict(self) -> dict[str, Any]:
        """Optimizer moments, adapted coefficients, the count of bad updates, the critic, and a moving reference."""
        if self.reference is not None:
            self.reference.take_apart()
        return {
            "optimizer": self.optimizer.state_dict(),
            "bad_in_a_row": self.bad.in_a_row,
            "kl_coef": self.kl_coef,
            "entropy_coef": self.entropy_coef,
            **self.budget.state_dict(),
            "critic": None if self.critic is None else self.critic.state_dict(),
            "reference": self.reference.model.state_dict() if self.reference and self.config.moves_reference else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.bad.in_a_row = state["bad_in_a_row"]
        self.kl_coef, self.entropy_coef = state["kl_coef"], state["entropy_coef"]
        self.budget.load_state_dict(state)
        if self.critic is not None:
            self.critic.load_state_dict(state["critic"])
        if self.reference is not None and state["reference"] is not None:
            put_into(self.reference.model, state["reference"])

    def _passes(self, minibatches: list[Minibatch], step: int) -> Iterator[Minibatch]:
        """Yields the minibatches of every pass; later passes combine other prompts if there are several minibatches."""
        config = self.config
        for turn in range(config.updates_per_rollout):
            if turn > 0 and len(minibatches) > 1:
                generator = random.Random(f"{config.seed}-pass-{step}-{turn}")
                minibatches = reshuffled(
                    minibatches, generator, max_tokens=self.budget.tokens, cut=self.policy.micro_batches
                )
            for n, minibatch in enumerate(minibatches):
                if needs_choice(config):
                    seed = completion_seed(config.seed, "covariance", step, f"{turn}", n)
                    drawn = torch.Generator().manual_seed(seed)
                    minibatch.choose_tokens(functools.partial(choose, config, generator=drawn))
                yield minibatch

    def _is_too_far(self, sums: UpdateSums, *, first: bool) -> bool:
        """True if --stop-kl ends the step's updates. With `--stop-kl-to reference` the first update is always made."""
        config = self.config
        if config.stop_kl is None:
            return False
        if config.stop_kl_to == "reference":
            return not first and sums.reference_kl > config.stop_kl
        return sums.policy_kl > config.stop_kl

    def _refuse_unknown_sampler(self, groups: Sequence[Group], step: int) -> None:
        """Raises RunError if a correction needs probabilities that the engine does not return."""
        config = self.config
        needed = f"--importance {config.importance}" if config.importance in ("token", "sequence", "geometric") else ""
        if config.ratio_to == "engine":
            needed = "--ratio-to engine"
        if config.off_policy_threshold is not None:
            needed = needed or "--off-policy-threshold"
        if needed and any(
            len(r.completion.logprobs) != len(r.completion.token_ids) for g in groups for r in g.rollouts
        ):
            raise RunError(
                f"step {step + 1}: {needed} compares the policy with the probabilities at sampling, but the "
                "engine returns none; leave the flag out, or use another --engine"
            )

    def _check_mismatch(self, total: UpdateSums, step: int) -> None:
        """Raises RunError if only rounding may differ, but the engine sampled from other weights."""
        config = self.config
        exact = self.policy.dtype == torch.float32 and not config.biased_sampling and config.max_staleness == 0
        if exact and total.mismatch.logprob_max > _MAX_MISMATCH:
            raise RunError(
                f"step {step + 1}: the sampler's log-probabilities differ from the trainer's by "
                f"{total.mismatch.logprob_max:.3g} nats, more than {_MAX_MISMATCH}: it does not sample from the "
                "trainer's weights"
            )

    # --- from rewards to minibatches with advantages -----------------------------------------------------------------

    def _credit(self, groups: Sequence[Group], step: int) -> tuple[Tensor, list[Minibatch]]:
        """Advantages [P, G] of the completions, and minibatches whose micro-batches hold the advantages as well."""
        if not groups:  # dynamic sampling found none with a signal
            return torch.zeros(0, 0), []
        config, rewards = self.config, credit.rewards_of(groups)  # [P, G]
        advantages = credit.from_rewards(config, rewards, groups, self.reward_terms)
        every = advantages is None or credit.all_have_gradients(config)
        minibatches = make_minibatches(
            groups,
            config.minibatches,
            counts=lambda rollout: credit.counts(config, rollout),
            # If the advantage is 0, so are every policy loss and its gradient.
            has_gradient=lambda index: every or bool(advantages[index] != 0),  # type: ignore[index]
            max_tokens=min(config.micro_batch_tokens, self.budget.tokens),
            cut=self.policy.micro_batches,
        )
        self._measure_before(minibatches, step)
        micro_batches = [one for minibatch in minibatches for one in minibatch.micro_batches]
        advantages = credit.assign(config, advantages, rewards, groups, micro_batches, self.reward_terms, self.kl_coef)
        return advantages, minibatches

    @torch.no_grad()
    def _measure_before(self, minibatches: Sequence[Minibatch], step: int) -> None:
        """Measures log-probabilities, entropies and values that are needed from the weights before they change.

        Each rank measures its micro-batches and shares the results, so that all compute the same advantages.
        """
        config = self.config
        needs_entropy = config.entropy_target is not None or config.top_entropy_share < 1
        # With one update per rollout, the updated policy is still the policy before the update.
        needs_old = (
            config.updates_per_rollout * len(minibatches) > 1
            or (self.reference is not None and config.kl_in == "reward")
            or needs_choice(config)
        )
        needs_masses = config.advantage == "optimal_token"

        def measure(micro_batch: RolloutBatch) -> None:
            inputs = micro_batch.inputs
            if needs_masses and micro_batch.old_square_mass is None:
                micro_batch.old_logprobs, micro_batch.old_square_mass = self.policy.with_square_mass(inputs)
            if needs_entropy and micro_batch.old_entropy is None:
                micro_batch.old_logprobs = None  # both at once
            if (needs_entropy or needs_old) and micro_batch.old_logprobs is None:
                micro_batch.old_logprobs, micro_batch.old_entropy = self.policy(inputs, entropy=needs_entropy)
            if self.reference is not None and micro_batch.ref_logprobs is None:
                micro_batch.ref_logprobs = self.reference.logprobs(inputs)
            if self.critic is not None and micro_batch.old_values is None:
                micro_batch.old_values = self.critic.values(inputs)

        for minibatch in minibatches:
            self._out_of_memory += minibatch.measure(measure, self.budget, self.world, step)

    # --- from minibatches to new weights -----------------------------------------------------------------------------

    def _gradient(
        self, minibatch: Minibatch, objective: Objective, step: int, *, frozen: bool, first: bool
    ) -> UpdateSums:
        """Accumulates the gradient of this rank's part of the minibatch in the parameters of policy and critic.

        Args:
            frozen: only the critic learns.
            first: as for `Objective.loss`.

        Returns: sums over the whole minibatch, the same on all ranks.

        Raises:
            RunError: no memory for a single completion.
        """
        threshold = objective.entropy_below(minibatch)
        sums: dict[int, UpdateSums] = {}  # by micro-batch

        def passes(micro_batch: RolloutBatch, *, counts: bool) -> UpdateSums:
            with torch.set_grad_enabled(not frozen):
                loss, added = objective.loss(micro_batch, minibatch, threshold, first=first)
            if not frozen:
                (loss if counts else 0.0 * loss).backward()
            if self.critic is not None:
                self.critic.accumulate(micro_batch, minibatch.num_tokens, counts=counts)
            return added

        def add(number: int, micro_batch: RolloutBatch) -> None:
            sums[number] = passes(micro_batch, counts=True)

        def idle(micro_batch: RolloutBatch) -> None:
            passes(micro_batch, counts=False)

        def restart() -> None:
            sums.clear()
            self.optimizer.discard()
            if self.critic is not None:
                self.critic.restart()

        self._out_of_memory += self.budget.go_through(minibatch.within, add, restart, step=step, idle=idle)
        if self.critic is not None:
            self.critic.saw(minibatch.micro_batches)
        every = {number: one for part in self.world.all_gather_object(sums) for number, one in part.items()}
        total = UpdateSums(passes=1)
        for number in sorted(every):  # a fixed order, whichever rank computed them
            total += every[number]
        return total

    def _apply(self, minibatch: Minibatch, sums: UpdateSums, step: int, lr: float, *, frozen: bool) -> None:
        """Takes the optimizer step and counts it in `sums`; a non-finite gradient is skipped, its batches saved.

        Raises:
            RunError: no finite gradient three times in a row.
        """
        if frozen:
            self.optimizer.discard()
        else:
            norm = self.optimizer.step(lr) if math.isfinite(sums.loss) else None
            sums.add_step(norm)
            if norm is None:
                self.optimizer.discard()
                batches = [micro_batch.as_dict() for micro_batch in minibatch.micro_batches]
                self.bad.skipped(step + 1, batches, loss=sums.loss, parameters=self.optimizer.nonfinite)
            else:
                self.bad.fine()
        if self.critic is not None:
            self.critic.update(step)

    # --- state that changes between steps ----------------------------------------------------------------------------

    @torch.no_grad()
    def _move_reference(self, step: int) -> None:
        """Copies the policy to the reference every N steps (R1-Zero), or moves the reference towards the policy."""
        every, decay = self.config.reference_refresh_steps, self.config.reference_decay
        if self.reference is None:
            return
        self.reference.take_apart()
        if every and (step + 1) % every == 0:
            for follows, leads in self._both():
                follows.copy_(leads)
        if decay < 1:
            for follows, leads in self._both():
                follows.lerp_(leads.to(follows.device), 1 - decay)

    def _both(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Pairs of reference and trained policy weights; with sharding, this rank's parts of them."""
        assert self.reference is not None
        theirs, ours = self.reference.model.parameters(), self.policy.model.parameters()
        for follows, leads in zip(theirs, ours, strict=True):
            if leads.requires_grad:  # the weights under an adapter are the same in both, and may be packed in 4 bits
                yield local(follows), local(leads)

    def _entropy_bonus(self, entropy: float | None) -> float:
        """The weight of the entropy bonus in this step: 0 while the policy's mean entropy is above its target."""
        target = self.config.entropy_target
        return 0.0 if target is not None and (entropy is None or entropy > target) else self.entropy_coef

    def _adapted(self, total: UpdateSums, entropy: float | None, num_samples: int) -> dict[str, Any]:
        """Adapts the coefficients for the next step. Returns those used in this step."""
        config = self.config
        used: dict[str, Any] = {}
        if self.reference is not None:
            used["kl_coef"] = self.kl_coef
            if config.kl_target is not None and total.tokens and math.isfinite(total.kl):
                kl = total.kl / total.tokens
                self.kl_coef = adapted_kl_coef(
                    self.kl_coef, kl, target=config.kl_target, num_samples=num_samples, horizon=config.kl_horizon
                )
        if config.entropy_coef > 0 or config.entropy_target is not None:
            used["entropy_coef"] = self.entropy_coef
        if config.entropy_target is not None and entropy is not None:
            self.entropy_coef = adapted_entropy_coef(
                self.entropy_coef, entropy, target=config.entropy_target, change=config.entropy_coef_step
            )
        return used


def _mean_entropy(minibatches: Sequence[Minibatch]) -> float | None:
    """Mean entropy of the policy's distributions over all tokens; None if it was not measured."""
    known = [
        one.old_entropy[one.inputs.loss_mask]
        for minibatch in minibatches
        for one in minibatch.micro_batches
        if one.old_entropy is not None
    ]
    return float(torch.cat(known).mean()) if known else None
