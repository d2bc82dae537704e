"""One step of reinforcement learning, from prompts to new weights.

Shapes: P prompts, G group, B = P*G completions.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from r1lite.config import RLConfig
from r1lite.distributed.together import from_main, together
from r1lite.distributed.world import ALONE, World
from r1lite.grpo import choice
from r1lite.grpo.ahead import Ahead
from r1lite.grpo.choice import Curriculum, Retired
from r1lite.grpo.learner import Learner
from r1lite.grpo.metrics import rollout_metrics
from r1lite.grpo.recorded_order import RecordedOrder
from r1lite.grpo.sampler import Sampler
from r1lite.rollout.interruption import Interruption
from r1lite.rollout.trust import TrustedEngine
from r1lite.run.arrivals import Arrivals
from r1lite.run.signals import StopSignal
from r1lite.run.watchdog import Watchdog
from r1lite.scoring.scorer import Scorer
from r1lite.types import Group, Prompt


@dataclass(slots=True)
class Loop:
    """The training loop. `step` counts from 0; with the seed and the curriculum it determines the problems."""

    tokens_are: ClassVar[str] = "generated"

    config: RLConfig
    prompts: Sequence[Prompt]
    scorer: Scorer
    engine: TrustedEngine
    learner: Learner
    stop: StopSignal
    watchdog: Watchdog
    world: World = ALONE
    curriculum: Curriculum | None = None
    retired: Retired | None = None
    interruption: Interruption | None = None
    optimal_values: Mapping[str, float] = field(default_factory=dict)
    told: Callable[[int, int], None] = lambda scored, total: None  # see `Sampler`
    arrivals: Path = Path("arrivals.jsonl")  # the file that records the order of groups sampled ahead
    _clock: dict[str, float] = field(default_factory=dict)
    _ahead: Ahead | RecordedOrder | None = field(init=False)  # of the main rank
    sampler: Sampler = field(init=False)

    def __post_init__(self) -> None:
        self.sampler = Sampler(
            self.config, self.engine, self.scorer, self.interruption, self.optimal_values, self.world, self.told
        )
        self._ahead = together(self.world, self._order)

    @property
    def steps(self) -> int:
        """Number of training steps."""
        return self.config.steps

    def step(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        """Sends the newest weights to the engine, samples, scores and learns.

        Returns: the groups (those that were not learnt from come last), and the step's metrics.

        Raises:
            RunError: too many completions could not be scored, or no finite gradient three times in a row.
            Interrupted: a signal arrived during sampling; nothing has changed then.
        """
        started = time.perf_counter()
        self._clock = {"generate_s": 0.0, "score_s": 0.0}
        passed_over: list[Group] = []
        sampled: dict[str, Any] = {}
        if self.config.max_staleness:
            groups, sampled = self._taken(step)
        else:
            groups = self._rollout(self._first_choice(step), step, "train")
        if self.config.dynamic_sampling:
            groups, passed_over, sampled = self._refilled(groups, step)
        rolled_out = time.perf_counter()
        with self.watchdog.during("train", f"step {step + 1}, {len(groups)} groups"):
            self.engine.sleep()
            groups, learnt = self.learner.learn(groups, step)
        if self._ahead is not None:
            self._ahead.learnt()  # only now, so that a run stopped earlier can repeat this step
        self.engine.offer(self.learner.policy.named_weights, version=step + 1)
        ended = time.perf_counter()
        groups += passed_over
        for observer in (self.curriculum, self.retired):
            if observer is not None:
                observer.observe(groups)
        metrics = {
            **rollout_metrics(groups),
            **sampled,
            **learnt,
            **self.engine.take_metrics(),
            **self._clock,
            "train_s": ended - rolled_out,
            "staleness": _staleness(groups, step),
            "step_s": ended - started,
        }
        return groups, metrics

    def _order(self) -> Ahead | RecordedOrder | None:
        """The object that samples ahead for all ranks; None on other ranks, and without --max-staleness."""
        config = self.config
        if not config.max_staleness or not self.world.is_main:
            return None
        inputs = config, self.prompts, self.sampler
        if config.replay_order is not None:
            return RecordedOrder(*inputs, Path(config.replay_order), self.watchdog)
        return Ahead(*inputs, Arrivals(self.arrivals), self.watchdog)

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, beside the learner's."""
        state: dict[str, Any] = {} if self.curriculum is None else {"curriculum": self.curriculum.state_dict()}
        if self.retired is not None:
            state["retired"] = self.retired.state_dict()
        if self._ahead is not None:
            state["sampled_ahead"] = self._ahead.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict()` returned."""
        if self.curriculum is not None:
            self.curriculum.load_state_dict(state["curriculum"])
        if self.retired is not None:
            self.retired.load_state_dict(state["retired"])
        if self._ahead is not None:
            self._ahead.load_state_dict(state["sampled_ahead"])

    def _first_choice(self, step: int) -> list[Prompt]:
        count, seed = self.config.prompts_per_step, self.config.seed
        if self.curriculum is not None:
            return self.curriculum.choose(self.prompts, "train", step, count, seed)
        if self.retired is not None:
            return self.retired.choose(self.prompts, step, count, seed)
        return choice.by_epochs(self.prompts, step, count, seed)

    def _refilled(self, groups: list[Group], step: int) -> tuple[list[Group], list[Group], dict[str, Any]]:
        """DAPO's dynamic sampling (arXiv:2503.14476 eq. 11): replaces groups without a signal by further problems.

        Returns: up to prompts_per_step groups with a signal (fewer if --max-refills is reached), the other sampled
            groups, and metrics.
        """
        config = self.config
        kept = [group for group in groups if group.has_signal]
        passed_over = [group for group in groups if not group.has_signal]
        turns = 0
        while len(kept) < config.prompts_per_step and turns < config.max_refills:
            turns += 1
            missing = config.prompts_per_step - len(kept)
            # As many as the rate so far requires, so that few refills are needed and few completions are wasted.
            rate = max(len(kept) / (len(kept) + len(passed_over)), 0.25)
            count = min(config.prompts_per_step, math.ceil(missing / rate))
            used = {group.problem.id for group in (*kept, *passed_over)}
            used |= self.retired.solved if self.retired is not None else set()
            further = choice.refill(self.prompts, used, step, turns, count, config.seed)
            sampled = self._rollout(further, step, f"refill-{turns}")
            kept += [group for group in sampled if group.has_signal]
            passed_over += [group for group in sampled if not group.has_signal]
        passed_over += kept[config.prompts_per_step :]
        kept = kept[: config.prompts_per_step]
        return kept, passed_over, {"refills": turns, "groups_missing": config.prompts_per_step - len(kept)}

    def _rollout(self, chosen: Sequence[Prompt], step: int, purpose: str) -> list[Group]:
        """Samples and scores a group for each prompt."""
        work = f"step {step + 1}, {len(chosen)} problems: {', '.join(prompt.problem.id for prompt in chosen)}"
        with self.watchdog.during("rollout", work):
            with self.stop.interruptible(together=True):
                self.engine.push([prompt.token_ids for prompt in chosen])
            sampled = self.sampler.run(
                chosen,
                step,
                purpose,
                self.watchdog.beat,
                lambda: self.watchdog.during("score", work),
                functools.partial(self.stop.interruptible, together=self.engine.together),
            )
        self._clock["generate_s"] += sampled.generate_s
        self._clock["score_s"] += sampled.score_s
        return sampled.groups

    def _taken(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        """The groups of a step, from those sampled ahead. The main rank takes them for all ranks."""
        with self.watchdog.during("rollout", f"new weights before step {step + 1}"):
            with self.stop.interruptible(together=True):
                self.engine.push([prompt.token_ids for prompt in self._first_choice(step)])
            return from_main(self.world, functools.partial(self._take, step))

    def _take(self, step: int) -> tuple[list[Group], dict[str, Any]]:
        assert self._ahead is not None  # on the main rank
        return self._ahead.take(step, self.stop.interruptible)


def _staleness(groups: Sequence[Group], step: int) -> float:
    """Mean age in steps of the weights that sampled the completions."""
    versions = [rollout.completion.policy_version for group in groups for rollout in group.rollouts]
    return step - sum(versions) / max(1, len(versions))
