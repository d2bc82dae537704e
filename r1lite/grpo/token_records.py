"""The trainer's log-probability, entropy and advantage of each token, for the rollouts (--record-tokens)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from r1lite.distributed.world import World
from r1lite.grpo.minibatch import Index, Minibatch, RolloutBatch, every_completion
from r1lite.model.out_of_memory import MicroBatchBudget
from r1lite.model.policy import Policy
from r1lite.rl.losses import by_token
from r1lite.types import Group, TokenRecord


@torch.no_grad()
def measure(
    groups: Sequence[Group], policy: Policy, budget: MicroBatchBudget, step: int, world: World
) -> tuple[dict[Index, tuple[list[float], list[float]]], int]:
    """(log-probabilities, entropies) of each completion's tokens, in nats, under the weights before the update; and how
    often memory ran out. Makes one pass of the model over all completions, and changes nothing."""
    every = every_completion(groups, max_tokens=budget.tokens, cut=policy.micro_batches)

    def measure_one(micro_batch: RolloutBatch) -> None:
        if micro_batch.old_logprobs is None:
            micro_batch.old_logprobs, micro_batch.old_entropy = policy(micro_batch.inputs, entropy=True)

    out_of_memory = every.measure(measure_one, budget, world, step)
    records: dict[Index, tuple[list[float], list[float]]] = {}
    for one in every.micro_batches:
        assert one.old_logprobs is not None
        assert one.old_entropy is not None
        for row, index in enumerate(one.indices):
            valid = one.inputs.valid_mask[row]
            records[index] = (one.old_logprobs[row][valid].tolist(), one.old_entropy[row][valid].tolist())
    return records, out_of_memory


def token_advantages(minibatches: Sequence[Minibatch]) -> dict[Index, list[float]]:
    """The advantage of each token of the completions in the update; 0 for tokens that the loss leaves out."""
    by_index: dict[Index, list[float]] = {}
    for minibatch in minibatches:
        for one in minibatch.micro_batches:
            assert one.advantages is not None
            advantages: Tensor = by_token(one.advantages).expand(one.inputs.loss_mask.shape)
            for row, index in enumerate(one.indices):
                masked = torch.where(one.inputs.loss_mask[row], advantages[row], 0.0)
                by_index[index] = masked[one.inputs.valid_mask[row]].tolist()
    return by_index


def with_records(
    groups: Sequence[Group],
    seen: dict[Index, tuple[list[float], list[float]]],
    advantages: dict[Index, list[float]],
) -> list[Group]:
    """The groups with a record of each completion's tokens; advantages are 0 for completions outside the update."""

    def record(index: Index) -> TokenRecord | None:
        if index not in seen:
            return None  # it has no token
        logprobs, entropy = seen[index]
        return TokenRecord(tuple(logprobs), tuple(entropy), tuple(advantages.get(index, [0.0] * len(logprobs))))

    return [
        group.with_each({"tokens": record((p, g))} for g in range(len(group.rollouts)))
        for p, group in enumerate(groups)
    ]
