"""One step of reinforcement learning, from prompts to new weights.

Shapes: P prompts, G group, B = P*G completions.
"""

from __future__ import annotations

import functools
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from r1lite.config import RLConfig
from r1lite.errors import RunError
from r1lite.learner import Learner
from r1lite.metrics import rollout_metrics
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import RolloutEngine, Sampling
from r1lite.signals import StopSignal
from r1lite.solve import Judge, Prompt
from r1lite.trajectory import Group, Rollout
from r1lite.watchdog import Watchdog


@dataclass(slots=True)
class Loop:
    """What a step needs. `step` counts from 0 and is all there is to the position in the data."""

    tokens_are: ClassVar[str] = "generated"

    config: RLConfig
    prompts: Sequence[Prompt]
    judge: Judge
    engine: RolloutEngine
    learner: Learner
    stop: StopSignal
    watchdog: Watchdog

    @property
    def steps(self) -> int:
        """How many there are."""
        return self.config.steps

    def step(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        """Samples, scores, learns, and gives the engine the new weights.

        Returns: the groups, and the step's metrics.

        Raises:
            RunError: too many completions could not be scored, or no finite gradient three times in a row.
            Interrupted: while sampling; nothing has changed then.
        """
        started = time.perf_counter()
        chosen = choose_prompts(self.prompts, step, self.config.prompts_per_step, self.config.seed)
        work = f"step {step + 1}, {len(chosen)} problems: {', '.join(prompt.problem.id for prompt in chosen)}"
        with self.stop.interruptible(), self.watchdog.during("rollout", work):
            sampled = self._sample(chosen, step)
        if not all(math.isfinite(logprob) for row in sampled for c in row for logprob in c.logprobs):
            raise RunError(
                f"step {step + 1}: the model's log-probabilities are not finite. The last checkpoint stands; "
                "try a lower --lr"
            )
        generated = time.perf_counter()
        with self.watchdog.during("score", work):
            groups = self._score(chosen, sampled)
        scored = time.perf_counter()
        with self.watchdog.during("train", work):
            groups, learnt = self.learner.learn(groups, step)
            self.engine.load_weights(self.learner.policy.named_weights(), version=step + 1)
        ended = time.perf_counter()
        metrics = {
            **rollout_metrics(groups),
            **learnt,
            "generate_s": generated - started,
            "score_s": scored - generated,
            "train_s": ended - scored,
            "step_s": ended - started,
        }
        return groups, metrics

    def _sample(self, chosen: Sequence[Prompt], step: int) -> list[list[Any]]:
        config = self.config
        # The place in the step tells a problem's groups apart where a small set comes round twice in one step.
        seeds = [
            [completion_seed(config.seed, f"train-{p}", step, prompt.problem.id, g) for g in range(config.group_size)]
            for p, prompt in enumerate(chosen)
        ]
        sampling = Sampling(config.temperature, config.max_completion_tokens, config.stop_text)
        return self.engine.generate([prompt.token_ids for prompt in chosen], seeds, sampling)  # [P][G]

    def _score(self, chosen: Sequence[Prompt], sampled: list[list[Any]]) -> list[Group]:
        pairs = [(prompt.problem, c) for prompt, row in zip(chosen, sampled, strict=True) for c in row]
        scores = self.judge.score(pairs)
        unscored = [score.error or "every verifier abstained" for score in scores if score.reward is None]
        if len(unscored) > self.config.max_unscored_rate * len(scores):
            raise RunError(
                f"{len(unscored)} of {len(scores)} completions could not be scored, more than --max-unscored-rate "
                f"{self.config.max_unscored_rate}; the first: {unscored[0]}"
            )
        rollouts = [
            Rollout(
                completion,
                score,
                advantage=0.0,  # the learner's to say
                correct=self.judge.is_correct(problem, completion, score),
                well_formed=self.judge.is_well_formed(problem, completion, score),
            )
            for (problem, completion), score in zip(pairs, scores, strict=True)
        ]
        size = self.config.group_size
        return [
            Group(prompt.problem, prompt.text, prompt.token_ids, tuple(rollouts[p * size : (p + 1) * size]))
            for p, prompt in enumerate(chosen)
        ]


def choose_prompts(prompts: Sequence[Prompt], step: int, count: int, seed: int) -> list[Prompt]:
    """The prompts of a step: each epoch goes through all of them in an order of its own."""
    chosen: list[Prompt] = []
    position = step * count
    while len(chosen) < count:
        epoch, offset = divmod(position + len(chosen), len(prompts))
        order = _epoch_order(seed, epoch, len(prompts))
        chosen += [prompts[i] for i in order[offset : offset + count - len(chosen)]]
    return chosen


@functools.lru_cache(maxsize=2)
def _epoch_order(seed: int, epoch: int, count: int) -> list[int]:
    order = list(range(count))
    random.Random(f"{seed}-{epoch}").shuffle(order)
    return order
