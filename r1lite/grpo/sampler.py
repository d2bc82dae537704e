"""Samples groups of completions, and scores each group while others are still being sampled.

Shapes: P prompts, G group.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from r1lite.config import RLConfig
from r1lite.distributed.together import everyone
from r1lite.distributed.world import ALONE, World
from r1lite.errors import RunError, UnscoredError
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import Sampling
from r1lite.rollout.interruption import Interruption
from r1lite.rollout.trust import TrustedEngine
from r1lite.scoring.scorer import Scorer
from r1lite.types import Group, Prompt, Rollout
from verifiers import Completion

_TOLD_S = 1.0  # between two reports of how far scoring is
_THREADS = 4  # so many slow verdicts at the same time hold up the groups that come later


@dataclass(frozen=True, slots=True)
class Sampled:
    """Scored groups, the seconds of sampling, and the seconds of scoring after sampling ended."""

    groups: list[Group]
    generate_s: float
    score_s: float


@dataclass(slots=True)
class Sampler:
    """Samples with the engine's current weights, and scores finished groups in separate threads."""

    config: RLConfig
    engine: TrustedEngine
    scorer: Scorer
    interruption: Interruption | None = None
    optimal_values: Mapping[str, float] = field(default_factory=dict)  # by problem
    world: World = ALONE
    told: Callable[[int, int], None] = lambda scored, total: None  # called while completions wait for their scores
    _scoring: ScoringThreads | None = field(default=None)

    def run(
        self,
        chosen: Sequence[Prompt],
        step: int,
        purpose: str,
        beat: Callable[[], None],
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Sampled:
        """A group for each prompt. Each rank samples and scores its share; all ranks get all groups.

        Args:
            purpose: distinguishes the samplings of a step; it is part of their seeds.
            beat: called for each finished group, as a sign of life.
            waiting: entered while only scoring is left.
            around: entered for this rank's share.

        Raises:
            RunError: too many completions could not be scored (UnscoredError), or a log-probability is not finite.
            EngineError: the engine can't go on.
        """

        def share() -> tuple[list[tuple[Rollout, ...]], float, float]:
            """The rollouts of this rank's prompts (every `size`-th, from its rank on), and the seconds."""
            scoring, config, started = self.scoring, self.config, time.perf_counter()
            mine = range(self.world.rank, len(chosen), self.world.size)
            # The position in the step distinguishes groups of a problem that a small dataset repeats within one step.
            seeds = [
                [
                    completion_seed(config.seed, f"{purpose}-{p}", step, chosen[p].problem.id, g)
                    for g in range(config.group_size)
                ]
                for p in mine
            ]
            given: dict[int, Scoring] = {}
            token_ids = [chosen[p].token_ids for p in mine]
            with around():
                for i, completions in self.engine.stream(token_ids, seeds, sampling_of(config), self.interruption):
                    check_finite(completions, f"step {step + 1}")
                    given[i] = scoring.give(chosen[mine[i]], completions)
                    beat()
                generated = time.perf_counter()
                with waiting():
                    rollouts = [tuple(group) for group in self.scored([given[i] for i in range(len(mine))], beat)]
            return rollouts, generated - started, time.perf_counter() - generated

        shares = everyone(self.world, share)
        groups = [self.group(prompt, shares[i % len(shares)][0][i // len(shares)]) for i, prompt in enumerate(chosen)]
        self.check_scored(groups)
        return Sampled(groups, max(seconds for _, seconds, _ in shares), max(seconds for _, _, seconds in shares))

    @property
    def scoring(self) -> ScoringThreads:
        """The scoring threads, started by the first call."""
        if self._scoring is None:
            self._scoring = ScoringThreads(self.scorer)
        return self._scoring

    def scored(self, given: Sequence[Scoring], beat: Callable[[], None]) -> list[list[Rollout]]:
        """Waits for the scores of these groups, and tells how many of their completions have theirs.

        Args:
            beat: called if there are more of them.
        """
        found: list[list[Rollout]] = []
        total, before = sum(one.size for one in given), 0
        for one in given:
            while not wait([one], _TOLD_S).done:
                now = sum(other.scored for other in given)
                if now > before:
                    beat()
                before = now
                self.told(now, total)
            found.append(one.result())
        return found

    def group(self, prompt: Prompt, rollouts: Sequence[Rollout], ticket: int | None = None) -> Group:
        """The group of a prompt."""
        value = self.optimal_values.get(prompt.problem.id)
        return Group(prompt.problem, prompt.text, prompt.token_ids, tuple(rollouts), value, ticket)

    def check_scored(self, groups: Sequence[Group]) -> None:
        """Raises UnscoredError if too many completions could not be scored."""
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        unscored = [r.score.error or "every verifier abstained" for r in rollouts if r.score.reward is None]
        if len(unscored) > self.config.max_unscored_rate * len(rollouts):
            raise UnscoredError(
                f"{len(unscored)} of {len(rollouts)} completions could not be scored, more than --max-unscored-rate "
                f"{self.config.max_unscored_rate}; mend the reward and continue with --resume. The first: {unscored[0]}"
            )


def sampling_of(config: RLConfig) -> Sampling:
    """The sampling settings of training."""
    return Sampling(
        config.temperature,
        config.max_completion_tokens,
        config.stop_text,
        top_p=config.top_p,
        top_k=config.top_k,
        min_p=config.min_p,
    )


class Scoring(Future[list[Rollout]]):
    """The rollouts of a group, once they are scored."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.scored = size, 0  # completions; those that have their score

    def one_more(self) -> None:
        """Counts a completion that has its score."""
        self.scored += 1


class ScoringThreads:
    """Threads that score groups, each all groups that wait when it is free, to keep a pool of workers busy.

    While a thread waits for a slow verdict, the others score the groups that come later. It is one thread if verifiers
    run in this process, which may not expect several. A score does not depend on what is scored beside it.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._waiting: queue.SimpleQueue[tuple[Prompt, list[Completion], Scoring]] = queue.SimpleQueue()
        for _ in range(_THREADS if scorer.overlaps else 1):
            threading.Thread(target=self._work, name="scorer", daemon=True).start()

    def give(self, prompt: Prompt, completions: list[Completion]) -> Scoring:
        """Queues a group for scoring."""
        future = Scoring(len(completions))
        self._waiting.put((prompt, completions, future))
        return future

    def _work(self) -> None:
        while True:
            batch = [self._waiting.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    batch.append(self._waiting.get_nowait())
            try:
                scored = self._scored(batch)
            except BaseException as error:  # raised again by future.result()
                for *_, future in batch:
                    future.set_exception(error)
                continue
            for (*_, future), rollouts in zip(batch, scored, strict=True):
                future.set_result(rollouts)

    def _scored(self, batch: Sequence[tuple[Prompt, list[Completion], Scoring]]) -> list[list[Rollout]]:
        pairs = [prompt.judged(c) for prompt, group, _ in batch for c in group]
        counts = (future.one_more for _, group, future in batch for _ in group)
        rollouts = iter(self._scorer.rollouts(pairs, lambda: next(counts)()))
        return [list(itertools.islice(rollouts, len(group))) for _, group, _ in batch]


def check_finite(completions: Sequence[Completion], what: str) -> None:
    """Raises RunError if a log-probability is not finite; `what` names the completions in the message."""
    if not all(math.isfinite(logprob) for completion in completions for logprob in completion.logprobs):
        raise RunError(
            f"{what}: the model's log-probabilities are not finite. The last checkpoint is intact; try a lower --lr"
        )
