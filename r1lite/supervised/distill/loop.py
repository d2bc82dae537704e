"""Steps of on-policy distillation: the student samples, and learns the teacher's distribution at each token."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from r1lite.config.distill import DistillConfig
from r1lite.distributed.together import shared_out
from r1lite.grpo.choice import by_epochs
from r1lite.grpo.metrics import rollout_metrics
from r1lite.model.batch import Row, cost, micro_batches
from r1lite.model.policy import Policy
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import Sampling
from r1lite.run.signals import StopSignal
from r1lite.supervised.distill.divergence import divergence
from r1lite.supervised.loop import Piece, RowOrder, SupervisedLearner
from r1lite.supervised.sft.tokens import TokenRows
from r1lite.training.setup import Setup
from r1lite.types import Group, Prompt, Rollout


@dataclass(slots=True)
class Distilling:
    """Trains on rows that the student samples and on rows of the set, with the same loss."""

    tokens_are: ClassVar[str] = "trained_on"

    config: DistillConfig
    setup: Setup
    learner: SupervisedLearner
    teacher: Policy
    prompts: Sequence[Prompt]  # prompts for the student
    rows: TokenRows | None  # None if the student samples all rows
    order: RowOrder
    stop: StopSignal

    @property
    def steps(self) -> int:
        """Number of training steps."""
        return self.order.steps

    def step(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        """Samples the student's rows, then moves the student towards the teacher on all rows."""
        started = time.perf_counter()
        config, policy = self.config, self.learner.policy
        own = own_rows(config)
        with self.setup.watchdog.during("rollout", f"step {step + 1}"):
            groups = self._sample(step, own) if own else []
        sampled = time.perf_counter()
        rows = [Row(group.prompt_ids, r.completion.token_ids) for group in groups for r in group.rollouts]
        rows += [self.rows[number] for number in self.order(step)] if self.rows is not None else []
        rows = [row for row in rows if row.token_ids]
        tokens = sum(len(row.token_ids) for row in rows)
        self.setup.engine.sleep()
        learnt = self.learner.update(functools.partial(self._pieces, rows), rows, step)
        self.setup.engine.offer(policy.named_weights, version=step + 1)
        ended = time.perf_counter()
        return groups, {
            **(rollout_metrics(groups) if groups else {}),
            **learnt,
            "rows": len(rows),
            "rows_of_the_student": len(groups),
            "tokens": tokens,
            "generate_s": sampled - started,
            "train_s": ended - sampled,
            "step_s": ended - started,
        }

    def _pieces(self, rows: Sequence[Row], max_tokens: int) -> list[Piece]:
        config, policy = self.config, self.learner.policy
        return [
            Piece(
                functools.partial(
                    divergence,
                    policy,
                    self.teacher,
                    batch,
                    vocabulary=len(self.setup.tokenizer),
                    beta=config.beta,
                    temperature=config.temperature,
                    chunk_tokens=config.chunk_tokens,
                ),
                len(batch.rows),
                cost(batch),
            )
            for batch in micro_batches(rows, max_tokens, policy.pad_id, policy.model.device, policy.layout)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Returns nothing: a step follows from its number."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""

    def _sample(self, step: int, count: int) -> list[Group]:
        """Samples one completion of the student per problem, and scores it for the metrics."""
        config, setup = self.config, self.setup
        chosen = by_epochs(self.prompts, step, count, config.seed)
        sampling = Sampling(config.temperature, config.max_completion_tokens, config.stop_text)

        def share(mine: range) -> list[Rollout]:
            asked = [chosen[place] for place in mine]
            seeds = [
                [completion_seed(config.seed, f"distill-{place}", step, chosen[place].problem.id, 0)] for place in mine
            ]
            with self.stop.interruptible(together=setup.engine.together), torch.no_grad():
                found = setup.engine.generate([prompt.token_ids for prompt in asked], seeds, sampling)
                return setup.scorer.rollouts(
                    [prompt.judged(group[0]) for prompt, group in zip(asked, found, strict=True)]
                )

        return [
            Group(prompt.problem, prompt.text, prompt.token_ids, (rollout,))
            for prompt, rollout in zip(chosen, shared_out(setup.world, count, share), strict=True)
        ]


def own_rows(config: DistillConfig) -> int:
    """Returns the number of rows per step that the student samples."""
    return round(config.on_policy_share * config.rows_per_step)
