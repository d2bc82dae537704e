"""One step of reinforcement learning, from prompts to new weights.

Shapes: P prompts, G group, B = P*G completions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from r1lite import choice
from r1lite.choice import Curriculum
from r1lite.config import RLConfig
from r1lite.errors import RunError
from r1lite.learner import Learner
from r1lite.metrics import rollout_metrics
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import Sampling
from r1lite.signals import StopSignal
from r1lite.solve import Judge, Prompt
from r1lite.trajectory import Group, Rollout
from r1lite.trust import TrustedEngine
from r1lite.watchdog import Watchdog


@dataclass(slots=True)
class Loop:
    """What a step needs. `step` counts from 0; with the seed and the curriculum it decides on the problems."""

    tokens_are: ClassVar[str] = "generated"

    config: RLConfig
    prompts: Sequence[Prompt]
    judge: Judge
    engine: TrustedEngine
    learner: Learner
    stop: StopSignal
    watchdog: Watchdog
    curriculum: Curriculum | None = None
    _clock: dict[str, float] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """How many there are."""
        return self.config.steps

    def step(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        """Samples, scores, learns, and gives the engine the new weights.

        Returns: the groups, those that were not learnt from last, and the step's metrics.

        Raises:
            RunError: too many completions could not be scored, or no finite gradient three times in a row.
            Interrupted: while sampling; nothing has changed then.
        """
        started = time.perf_counter()
        self._clock = {"generate_s": 0.0, "score_s": 0.0}
        groups = self._rollout(self._first_choice(step), step, "train")
        passed_over: list[Group] = []
        refilled: dict[str, Any] = {}
        if self.config.dynamic_sampling:
            groups, passed_over, refilled = self._refilled(groups, step)
        rolled_out = time.perf_counter()
        with self.watchdog.during("train", f"step {step + 1}, {len(groups)} groups"):
            self.engine.sleep()
            groups, learnt = self.learner.learn(groups, step)
            self.engine.load_weights(self.learner.policy.named_weights(), version=step + 1)
        ended = time.perf_counter()
        groups += passed_over
        if self.curriculum is not None:
            self.curriculum.observe(groups)
        metrics = {
            **rollout_metrics(groups),
            **refilled,
            **learnt,
            **self.engine.take_metrics(),
            **self._clock,
            "train_s": ended - rolled_out,
            "step_s": ended - started,
        }
        return groups, metrics

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the learner's state."""
        return {} if self.curriculum is None else {"curriculum": self.curriculum.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The reverse."""
        if self.curriculum is not None:
            self.curriculum.load_state_dict(state["curriculum"])

    def _first_choice(self, step: int) -> list[Prompt]:
        count, seed = self.config.prompts_per_step, self.config.seed
        if self.curriculum is not None:
            return self.curriculum.choose(self.prompts, "train", step, count, seed)
        return choice.by_epochs(self.prompts, step, count, seed)

    def _refilled(self, groups: list[Group], step: int) -> tuple[list[Group], list[Group], dict[str, Any]]:
        """DAPO's dynamic sampling (arXiv:2503.14476 eq. 11): further problems in place of groups without a signal.

        Returns: up to prompts_per_step groups with a signal; the others that were sampled; what to log. Where
            --max-refills is reached there are fewer of the first.
        """
        config = self.config
        kept = [group for group in groups if group.has_signal]
        passed_over = [group for group in groups if not group.has_signal]
        turns = 0
        while len(kept) < config.prompts_per_step and turns < config.max_refills:
            turns += 1
            missing = config.prompts_per_step - len(kept)
            # As many as should do at the rate so far, so that few turns are needed and little is sampled in vain.
            rate = max(len(kept) / (len(kept) + len(passed_over)), 0.25)
            count = min(config.prompts_per_step, math.ceil(missing / rate))
            used = {group.problem.id for group in (*kept, *passed_over)}
            further = choice.refill(self.prompts, used, step, turns, count, config.seed)
            sampled = self._rollout(further, step, f"refill-{turns}")
            kept += [group for group in sampled if group.has_signal]
            passed_over += [group for group in sampled if not group.has_signal]
        passed_over += kept[config.prompts_per_step :]
        kept = kept[: config.prompts_per_step]
        return kept, passed_over, {"refills": turns, "groups_missing": config.prompts_per_step - len(kept)}

    def _rollout(self, chosen: Sequence[Prompt], step: int, purpose: str) -> list[Group]:
        """Samples and scores a group for each prompt."""
        started = time.perf_counter()
        work = f"step {step + 1}, {len(chosen)} problems: {', '.join(prompt.problem.id for prompt in chosen)}"
        with self.stop.interruptible(), self.watchdog.during("rollout", work):
            sampled = self._sample(chosen, step, purpose)
        if not all(math.isfinite(logprob) for row in sampled for c in row for logprob in c.logprobs):
            raise RunError(
                f"step {step + 1}: the model's log-probabilities are not finite. The last checkpoint stands; "
                "try a lower --lr"
            )
        generated = time.perf_counter()
        with self.watchdog.during("score", work):
            groups = self._score(chosen, sampled)
        self._clock["generate_s"] += generated - started
        self._clock["score_s"] += time.perf_counter() - generated
        return groups

    def _sample(self, chosen: Sequence[Prompt], step: int, purpose: str = "train") -> list[list[Any]]:
        config = self.config
        # The place in the step tells a problem's groups apart where a small set comes round twice in one step.
        seeds = [
            [
                completion_seed(config.seed, f"{purpose}-{p}", step, prompt.problem.id, g)
                for g in range(config.group_size)
            ]
            for p, prompt in enumerate(chosen)
        ]
        sampling = Sampling(
            config.temperature,
            config.max_completion_tokens,
            config.stop_text,
            top_p=config.top_p,
            top_k=config.top_k,
            min_p=config.min_p,
        )
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
