"""What a step learns from its groups: a policy-gradient update, with a critic or without.

Shapes: P prompts, G group, B rows, T completion tokens.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from r1lite.config import RLConfig
from r1lite.errors import RunError
from r1lite.grpo import credit
from r1lite.grpo.experience import Part, Piece, halves, make_parts
from r1lite.grpo.objective import Terms, clip_bounds, correction, policy_loss, rewards_of
from r1lite.grpo.totals import Totals
from r1lite.model.batch import MicroBatch, cost
from r1lite.model.out_of_memory import free_what_is_unused, is_out_of_memory
from r1lite.model.policy import Policy, Trainer
from r1lite.rl import losses
from r1lite.rl.aggregate import aggregate, masked_sum
from r1lite.rl.entropy import adapted_entropy_coef, entropy_threshold, top_entropy
from r1lite.rl.gae import adapted_kl_coef
from r1lite.rl.importance import mismatch
from r1lite.rl.kl import kl_estimate
from r1lite.run.bad_batches import BadBatches
from r1lite.types import Group

_MAX_MISMATCH = 0.02  # nats, in float32, where decoding and training differ by rounding alone (1e-5 is usual)


class Learner(Protocol):
    """Turns scored groups into new weights. Everything it must remember is in its state."""

    policy: Policy

    def learn(self, groups: Sequence[Group], step: int) -> tuple[list[Group], dict[str, Any]]:
        """Changes the policy. Returns the groups with their advantages, and the update's metrics."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the policy's weights."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The reverse."""


class Critic(Protocol):
    """Estimates what a completion will earn, at each of its tokens."""

    def begin(self, step: int) -> bool:
        """Tells it the step. Returns True while it learns alone: the policy is held."""

    def values(self, batch: MicroBatch) -> Tensor:
        """[B, T], before each token is chosen."""

    def accumulate(self, piece: Piece, num_tokens: int) -> None:
        """Adds the gradient of this micro-batch's share of the value loss: a mean over num_tokens, to its `returns`."""

    def update(self, step: int) -> None:
        """Applies the accumulated gradient."""

    def discard(self) -> None:
        """Forgets it."""

    def restart(self) -> None:
        """Forgets the update that is being prepared, as if it had not begun."""

    def metrics(self) -> dict[str, Any]:
        """Of the updates since the last call."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps, weights included."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The reverse."""


@dataclass(slots=True)
class PolicyLearner:
    """Policy gradients: GRPO (arXiv:2402.03300), PPO (arXiv:1707.06347) and their relatives, as configured."""

    config: RLConfig
    policy: Policy
    trainer: Trainer
    reference: Policy | None  # for the KL
    critic: Critic | None = None  # for --advantage gae
    reward_terms: Terms = field(default_factory=dict)  # of the reward formula; for --advantage gdpo
    bad: BadBatches = field(kw_only=True)  # updates without a finite gradient
    kl_coef: float = -1.0  # as adapted so far
    entropy_coef: float = -1.0
    micro_batch_tokens: int = -1  # as memory has allowed so far

    def __post_init__(self) -> None:
        self.micro_batch_tokens = self.config.micro_batch_tokens
        self.kl_coef, self.entropy_coef = self.config.kl_coef, self.config.entropy_coef

    def state_dict(self) -> dict[str, Any]:
        """Optimizer moments, adapted coefficients, the count of bad updates, and the critic."""
        return {
            "optimizer": self.trainer.optimizer.state_dict(),
            "bad_in_a_row": self.bad.in_a_row,
            "kl_coef": self.kl_coef,
            "entropy_coef": self.entropy_coef,
            "micro_batch_tokens": self.micro_batch_tokens,
            "critic": None if self.critic is None else self.critic.state_dict(),
            "reference": self.reference.model.state_dict() if self.reference and self._reference_moves else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The reverse."""
        self.trainer.optimizer.load_state_dict(state["optimizer"])
        self.bad.in_a_row = state["bad_in_a_row"]
        self.kl_coef, self.entropy_coef = state["kl_coef"], state["entropy_coef"]
        self.micro_batch_tokens = min(state["micro_batch_tokens"], self.config.micro_batch_tokens)
        if self.critic is not None:
            self.critic.load_state_dict(state["critic"])
        if self.reference is not None and state["reference"] is not None:
            self.reference.model.load_state_dict(state["reference"])

    def learn(self, groups: Sequence[Group], step: int) -> tuple[list[Group], dict[str, Any]]:
        """Updates the policy on the groups: `updates_per_rollout` passes over `minibatches` parts.

        Returns: the groups with their advantages, and the update's metrics.

        Raises:
            RunError: no finite gradient three times in a row, or the sampler's weights aren't the trainer's.
        """
        config = self.config
        lr = config.lr_at(step, config.steps)
        self._refuse_unknown_sampler(groups, step)
        totals = Totals()
        advantages, parts = self._credit(groups, step, totals)
        entropy, bonus = self._entropy_bonus(parts)
        held = self.critic is not None and self.critic.begin(step)
        updates = parts * config.updates_per_rollout
        for n, part in enumerate(updates):
            self._accumulate(step, part, bonus, totals, held=held)
            drift = totals.end_part()
            if config.stop_kl is not None and drift > config.stop_kl:
                self._discard()
                totals.stopped = len(updates) - n
                break
            self._update(step, lr, part, totals, held=held)
        exact = self.policy.dtype == torch.float32 and not config.biased_sampling and config.max_staleness == 0
        if exact and totals.mismatch.logprob_max > _MAX_MISMATCH:
            raise RunError(
                f"step {step + 1}: the sampler's log-probabilities differ from the trainer's by "
                f"{totals.mismatch.logprob_max:.3g} nats, more than {_MAX_MISMATCH}: it does not sample from the "
                "trainer's weights"
            )
        metrics = {
            "lr": lr,
            "micro_batch_tokens": self.micro_batch_tokens,
            **totals.metrics(),
            **self._adapted(totals, entropy, sum(len(g.rollouts) for g in groups)),
        }
        if self.critic is not None:
            metrics |= self.critic.metrics()
        self._move_reference(step)
        return _with_advantages(groups, advantages), metrics

    def _refuse_unknown_sampler(self, groups: Sequence[Group], step: int) -> None:
        """Raises RunError if a correction needs probabilities that the engine doesn't give."""
        config = self.config
        needed = f"--importance {config.importance}" if config.importance in ("token", "sequence", "geometric") else ""
        if config.off_policy_threshold is not None:
            needed = needed or "--off-policy-threshold"
        if needed and any(
            len(r.completion.logprobs) != len(r.completion.token_ids) for g in groups for r in g.rollouts
        ):
            raise RunError(
                f"step {step + 1}: {needed} compares the policy with the probabilities it was sampled with, but the "
                "engine gives none; leave it off, or use another --engine"
            )

    # --- from rewards to advantages ----------------------------------------------------------------------------------

    def _credit(self, groups: Sequence[Group], step: int, totals: Totals) -> tuple[Tensor, list[Part]]:
        """Advantages [P, G] of the completions, and the parts to learn from, whose pieces hold them by token too."""
        if not groups:  # dynamic sampling found none with a signal
            return torch.zeros(0, 0), []
        config = self.config
        try:
            rewards = rewards_of(groups)  # [P, G]
        except ValueError as error:
            raise RunError(str(error)) from error
        try:
            advantages = credit.before_the_policy(config, rewards, groups, self.reward_terms)
            parts = make_parts(
                groups,
                config.minibatches,
                takes_part=lambda rollout: credit.takes_part(config, rollout),
                # Every policy loss is 0, and so is its gradient, where the advantage is: unless more than it teaches.
                teaches=lambda place: advantages is None or credit.all_teach(config) or bool(advantages[place] != 0),
                max_tokens=min(config.micro_batch_tokens, self.micro_batch_tokens),
                pad_id=self.policy.pad_id,
                device=self.policy.model.device,
            )
            self._freeze(parts, step, totals)
            pieces = [piece for part in parts for piece in part.pieces]
            return credit.assign(config, advantages, rewards, groups, pieces, self.reward_terms, self.kl_coef), parts
        except credit.Unfit as error:
            raise RunError(f"--advantage {config.advantage}: {error}") from error

    @torch.no_grad()
    def _freeze(self, parts: Sequence[Part], step: int, totals: Totals) -> None:
        """What has to be known of the weights before they change."""
        config = self.config
        needs_entropy = config.entropy_target is not None or config.top_entropy_share < 1
        # With one update a rollout, the policy that is updated is the policy before the update.
        needs_old = config.updates_per_rollout * len(parts) > 1 or (
            self.reference is not None and config.kl_in == "reward"
        )
        for part in parts:
            waiting, part.pieces = part.pieces, []
            while waiting:
                piece = waiting[0]
                try:
                    if needs_entropy:
                        piece.old_logprobs, piece.old_entropy = self.policy.logprobs_and_entropy(piece.batch)
                    elif needs_old:
                        piece.old_logprobs = self.policy.logprobs(piece.batch)
                    if self.reference is not None:
                        piece.ref_logprobs = self.reference.logprobs(piece.batch)
                    if self.critic is not None:
                        piece.old_values = self.critic.values(piece.batch)
                    part.pieces.append(waiting.pop(0))
                    continue
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error):
                        raise
                self._ran_out(step, [piece], totals)
                waiting = [small for piece in waiting for small in self._within_budget(piece)]

    # --- from advantages to a gradient -------------------------------------------------------------------------------

    def _loss(self, piece: Piece, part: Part, threshold: float | None, entropy_bonus: float, totals: Totals) -> Tensor:
        """This micro-batch's share of the loss over the whole part."""
        config, batch, advantages = self.config, piece.batch, piece.advantages
        assert advantages is not None
        if entropy_bonus:
            logprobs, entropy = self.policy.logprobs_and_entropy(batch)  # [B, T]
        else:
            logprobs, entropy = self.policy.logprobs(batch), None
        old = logprobs.detach() if piece.old_logprobs is None else piece.old_logprobs
        per_token, ratio = policy_loss(config, logprobs, old, advantages, batch.mask)
        weights, num_bounded = correction(config, logprobs.detach(), old, piece.engine_logprobs, advantages, batch.mask)
        if weights is not None:
            per_token = per_token * weights
        if threshold is not None:
            assert piece.old_entropy is not None
            chosen = top_entropy(piece.old_entropy, batch.mask, threshold=threshold)
            per_token = torch.where(chosen, per_token, 0.0)
        if piece.ref_logprobs is not None:
            at = logprobs if config.kl_in == "loss" else old
            token_ratio = losses.policy_ratio(logprobs, old) if config.kl_estimator == "k3_corrected" else None
            kl = kl_estimate(at, piece.ref_logprobs, estimator=config.kl_estimator, ratio=token_ratio)
            if config.kl_in == "loss":
                per_token = per_token + self.kl_coef * kl
            totals.kl += float(masked_sum(kl.detach(), batch.mask))
        loss = aggregate(
            per_token,
            batch.mask,
            method=config.aggregation,
            num_tokens=part.num_tokens,
            num_rows=part.num_rows,
            max_tokens=config.max_completion_tokens,
        )
        if entropy is not None:
            loss = loss - entropy_bonus * masked_sum(entropy, batch.mask) / part.num_tokens
        totals.add(loss, ratio, advantages, batch.mask, clip_bounds(config))
        totals.add_drift(losses.policy_ratio(logprobs.detach(), old), batch.mask)
        totals.bounded += num_bounded
        if not totals.updates:  # the weights are still those that sampled
            totals.mismatch.add(mismatch(old, piece.engine_logprobs, batch.mask))
        return loss

    def _accumulate(self, step: int, part: Part, bonus: float, totals: Totals, *, held: bool) -> None:
        """Adds up the part's gradient. Where memory runs out it begins again, with micro-batches of half the size."""
        while True:
            before = copy.deepcopy(totals)
            try:
                self._pass(part, bonus, totals, held=held)
                return
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
            # Out of the except clause: the error held on to the graph. What was added so far is part of a micro-batch's
            # gradient, which nobody could tell from the rest.
            self.trainer.discard()
            if self.critic is not None:
                self.critic.restart()
            totals.__dict__.update(before.__dict__)
            self._ran_out(step, part.pieces, totals)
            part.pieces = [small for piece in part.pieces for small in self._within_budget(piece)]

    def _pass(self, part: Part, bonus: float, totals: Totals, *, held: bool) -> None:
        threshold = self._entropy_threshold(part)
        totals.begin_part()
        for piece in part.pieces:
            with torch.set_grad_enabled(not held):
                loss = self._loss(piece, part, threshold, bonus, totals)
            if not held:
                loss.backward()  # type: ignore[no-untyped-call]
            if self.critic is not None:
                self.critic.accumulate(piece, part.num_tokens)

    def _ran_out(self, step: int, pieces: Sequence[Piece], totals: Totals) -> None:
        """Halves the micro-batches from here on. Raises RunError if they hold a completion each already."""
        free_what_is_unused()
        totals.out_of_memory += 1
        shared = [piece.batch for piece in pieces if len(piece.places) > 1]
        if not shared:
            longest = max(piece.batch.token_ids.shape[1] for piece in pieces)
            raise RunError(
                f"step {step + 1}: out of memory with a single completion, of up to {longest} tokens. Try "
                "--gradient-checkpointing, --lora-rank 16, a smaller --max-completion-tokens or a smaller model"
            )
        largest = max(map(cost, shared))
        self.micro_batch_tokens = max(1, min(self.micro_batch_tokens, largest) // 2)

    def _within_budget(self, piece: Piece) -> list[Piece]:
        if cost(piece.batch) <= self.micro_batch_tokens or len(piece.places) == 1:
            return [piece]
        return [small for half in halves(piece) for small in self._within_budget(half)]

    def _entropy_threshold(self, part: Part) -> float | None:
        """Below which a token isn't taught; None = all are."""
        if self.config.top_entropy_share == 1:
            return None
        entropies = [p.old_entropy[p.batch.mask] for p in part.pieces if p.old_entropy is not None]
        return entropy_threshold(torch.cat(entropies), self.config.top_entropy_share)

    def _update(self, step: int, lr: float, part: Part, totals: Totals, *, held: bool) -> None:
        if held:
            self.trainer.discard()
        elif math.isfinite(totals.part_loss):
            totals.add_update(norm := self.trainer.step(lr))
            if norm is None:
                self._keep_bad(step, part, totals)
            else:
                self.bad.fine()
        else:
            self.trainer.discard()
            totals.add_update(None)
            self._keep_bad(step, part, totals)
        if self.critic is not None:
            self.critic.update(step)

    def _keep_bad(self, step: int, part: Part, totals: Totals) -> None:
        batches = [piece.as_dict() for piece in part.pieces]
        self.bad.skipped(step + 1, batches, loss=totals.part_loss, parameters=self.trainer.nonfinite)

    def _discard(self) -> None:
        self.trainer.discard()
        if self.critic is not None:
            self.critic.discard()

    # --- what moves between steps ------------------------------------------------------------------------------------

    @property
    def _reference_moves(self) -> bool:
        return self.config.reference_refresh_steps > 0 or self.config.reference_decay < 1

    @torch.no_grad()
    def _move_reference(self, step: int) -> None:
        """The policy becomes the reference every N steps (R1-Zero), or draws it after itself."""
        every, decay = self.config.reference_refresh_steps, self.config.reference_decay
        if self.reference is None:
            return
        if every and (step + 1) % every == 0:
            self.reference.model.load_state_dict(self.policy.model.state_dict())
        if decay < 1:
            theirs, ours = self.reference.model.parameters(), self.policy.model.parameters()
            for follows, leads in zip(theirs, ours, strict=True):
                follows.lerp_(leads, 1 - decay)

    def _entropy_bonus(self, parts: Sequence[Part]) -> tuple[float | None, float]:
        """The policy's mean entropy where it was asked for, and the weight of the bonus in this step."""
        known = [p.old_entropy[p.batch.mask] for part in parts for p in part.pieces if p.old_entropy is not None]
        entropy = float(torch.cat(known).mean()) if known else None
        target = self.config.entropy_target
        rests = target is not None and (entropy is None or entropy > target)
        return entropy, 0.0 if rests else self.entropy_coef

    def _adapted(self, totals: Totals, entropy: float | None, num_samples: int) -> dict[str, Any]:
        """Moves the coefficients for the next step. Returns those that this one used."""
        config = self.config
        used: dict[str, Any] = {}
        if self.reference is not None:
            used["kl_coef"] = self.kl_coef
            if config.kl_target is not None and totals.tokens and math.isfinite(totals.kl):
                kl = totals.kl / totals.tokens
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


def _with_advantages(groups: Sequence[Group], advantages: Tensor) -> list[Group]:
    """The groups, each completion with its advantage ([P, G])."""
    return [
        dataclasses.replace(
            group,
            rollouts=tuple(
                dataclasses.replace(rollout, advantage=advantage)
                for rollout, advantage in zip(group.rollouts, row, strict=True)
            ),
        )
        for group, row in zip(groups, advantages.tolist(), strict=True)
    ]
