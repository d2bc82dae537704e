"""Groups of completions, scored while the rest is still being sampled; on request for the next step, behind its back.

Shapes: P prompts, G group.
"""

from __future__ import annotations

import itertools
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from r1lite.config import RLConfig
from r1lite.distributed.together import everyone
from r1lite.distributed.world import ALONE, World
from r1lite.errors import RunError
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import EngineError, Sampling
from r1lite.rollout.interruption import Interruption
from r1lite.rollout.trust import TrustedEngine
from r1lite.run.watchdog import Watchdog
from r1lite.scoring.scorer import Scorer
from r1lite.types import Group, Prompt, Rollout
from verifiers import Completion


@dataclass(frozen=True, slots=True)
class Sampled:
    """Scored groups, and the seconds that sampling took and that scoring took beyond it."""

    groups: list[Group]
    generate_s: float
    score_s: float


@dataclass(slots=True)
class Sampler:
    """Samples with the engine's present weights, and scores in a thread of its own as groups are finished."""

    config: RLConfig
    engine: TrustedEngine
    scorer: Scorer
    interruption: Interruption | None = None
    optimal_values: Mapping[str, float] = field(default_factory=dict)  # by problem
    world: World = ALONE
    _scoring: _ScoringThread | None = field(default=None)

    def run(
        self,
        chosen: Sequence[Prompt],
        step: int,
        purpose: str,
        beat: Callable[[], None],
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Sampled:
        """A group for each prompt. Each rank samples and scores its share of them; all get all groups.

        Args:
            purpose: what tells this step's samplings apart: their seeds differ by it.
            beat: called for each finished group: a sign of life.
            waiting: entered while waiting only for scores.
            around: entered for this rank's share.

        Raises:
            RunError: too many completions could not be scored, or the model's log-probabilities are not finite.
            EngineError: the engine can't go on.
        """

        def share() -> tuple[list[tuple[Rollout, ...]], float, float]:
            with around():
                return self._share(chosen, step, purpose, beat, waiting)

        shares = everyone(self.world, share)
        groups = [
            Group(
                prompt.problem,
                prompt.text,
                prompt.token_ids,
                shares[place % len(shares)][0][place // len(shares)],
                self.optimal_values.get(prompt.problem.id),
            )
            for place, prompt in enumerate(chosen)
        ]
        self._check_scored(groups)
        return Sampled(groups, max(seconds for _, seconds, _ in shares), max(seconds for _, _, seconds in shares))

    def _share(
        self,
        chosen: Sequence[Prompt],
        step: int,
        purpose: str,
        beat: Callable[[], None],
        waiting: Callable[[], AbstractContextManager[None]],
    ) -> tuple[list[tuple[Rollout, ...]], float, float]:
        """The rollouts of this rank's prompts: every so many from its own number on, so whole groups. And seconds."""
        scoring, config, started = self._scores(), self.config, time.perf_counter()
        mine = range(self.world.rank, len(chosen), self.world.size)
        # The place in the step tells a problem's groups apart where a small set comes round twice in one step.
        seeds = [
            [
                completion_seed(config.seed, f"{purpose}-{p}", step, chosen[p].problem.id, g)
                for g in range(config.group_size)
            ]
            for p in mine
        ]
        scored: dict[int, Future[list[Rollout]]] = {}
        token_ids = [chosen[p].token_ids for p in mine]
        for place, completions in self.engine.stream(token_ids, seeds, sampling_of(config), self.interruption):
            _check_finite(completions, step)
            scored[place] = scoring.give(chosen[mine[place]], completions)
            beat()
        generated = time.perf_counter()
        with waiting():
            rollouts = [tuple(scored[place].result()) for place in range(len(mine))]
        return rollouts, generated - started, time.perf_counter() - generated

    def score(self, chosen: Sequence[Prompt], completions: Sequence[Sequence[Completion]]) -> list[Group]:
        """Scores what was sampled before."""
        scoring = self._scores()
        pairs = zip(chosen, completions, strict=True)
        scored = [scoring.give(prompt, list(group)) for prompt, group in pairs]
        groups = [
            Group(
                prompt.problem,
                prompt.text,
                prompt.token_ids,
                tuple(future.result()),
                self.optimal_values.get(prompt.problem.id),
            )
            for prompt, future in zip(chosen, scored, strict=True)
        ]
        self._check_scored(groups)
        return groups

    def _scores(self) -> _ScoringThread:
        if self._scoring is None:
            self._scoring = _ScoringThread(self.scorer)
        return self._scoring

    def _check_scored(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        unscored = [r.score.error or "every verifier abstained" for r in rollouts if r.score.reward is None]
        if len(unscored) > self.config.max_unscored_rate * len(rollouts):
            raise RunError(
                f"{len(unscored)} of {len(rollouts)} completions could not be scored, more than --max-unscored-rate "
                f"{self.config.max_unscored_rate}; the first: {unscored[0]}"
            )


def sampling_of(config: RLConfig) -> Sampling:
    """How training's completions are drawn."""
    return Sampling(
        config.temperature,
        config.max_completion_tokens,
        config.stop_text,
        top_p=config.top_p,
        top_k=config.top_k,
        min_p=config.min_p,
    )


class Ahead:
    """The next step's groups, sampled while this one trains."""

    def __init__(self, sampler: Sampler, chosen: Sequence[Prompt], step: int, watchdog: Watchdog) -> None:
        self.chosen, self.step = list(chosen), step
        self._result: Future[Sampled] = Future()
        # The engine gets its weights here: its check is a forward pass of the model that is about to change.
        sampler.engine.push([prompt.token_ids for prompt in chosen])

        def work() -> None:
            try:
                note = f"step {step + 1}, ahead of it"
                with watchdog.during("rollout", note):
                    sampled = sampler.run(
                        self.chosen, step, "train", watchdog.beat, lambda: watchdog.during("score", note)
                    )
                self._result.set_result(sampled)
            except BaseException as error:
                self._result.set_exception(error)

        threading.Thread(target=work, name="rollout-ahead", daemon=True).start()

    def result(self) -> list[Group] | None:
        """The groups, once they are there; None if the engine failed: the step samples for itself, and may then say so.

        Raises:
            RunError: as `Sampler.run`, but for the engine.
        """
        try:
            return self._result.result().groups
        except EngineError:
            return None


class _ScoringThread:
    """One thread that scores groups, all that wait at once, so that a pool of workers is kept busy."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._waiting: queue.SimpleQueue[tuple[Prompt, list[Completion], Future[list[Rollout]]]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="scorer", daemon=True).start()

    def give(self, prompt: Prompt, completions: list[Completion]) -> Future[list[Rollout]]:
        """Hands in a group."""
        future: Future[list[Rollout]] = Future()
        self._waiting.put((prompt, completions, future))
        return future

    def _work(self) -> None:
        while True:
            batch = [self._waiting.get()]
            while not self._waiting.empty():
                batch.append(self._waiting.get())
            try:
                scored = self._scored([(prompt, completions) for prompt, completions, _ in batch])
            except BaseException as error:  # whoever waits for the result gets it
                for *_, future in batch:
                    future.set_exception(error)
                continue
            for (*_, future), rollouts in zip(batch, scored, strict=True):
                future.set_result(rollouts)

    def _scored(self, batch: Sequence[tuple[Prompt, list[Completion]]]) -> list[list[Rollout]]:
        rollouts = iter(self._scorer.rollouts([prompt.judged(c) for prompt, group in batch for c in group]))
        return [list(itertools.islice(rollouts, len(group))) for _, group in batch]


def pack(groups: Sequence[Group]) -> list[list[list[Any]]]:
    """Completions as plain values, for a checkpoint."""
    return [
        [
            [c.text, list(c.token_ids), list(c.logprobs), c.finish_reason, c.policy_version, list(c.inserted)]
            for c in (rollout.completion for rollout in group.rollouts)
        ]
        for group in groups
    ]


def unpack(packed: Sequence[Sequence[Sequence[Any]]]) -> list[list[Completion]]:
    """Restores what `state_dict()` returned."""
    return [
        [
            Completion(text, tuple(ids), tuple(logprobs), reason, version, inserted=(start, end))
            # A checkpoint of 0.1.0 has no place of a phrase.
            for text, ids, logprobs, reason, version, (start, end) in (
                row if len(row) > 5 else [*row, (0, 0)] for row in group
            )
        ]
        for group in packed
    ]


def _check_finite(completions: Sequence[Completion], step: int) -> None:
    if not all(math.isfinite(logprob) for completion in completions for logprob in completion.logprobs):
        raise RunError(
            f"step {step + 1}: the model's log-probabilities are not finite. The last checkpoint stands; "
            "try a lower --lr"
        )
