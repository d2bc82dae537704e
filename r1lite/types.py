"""The data types of all stages: prompts and scored completions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from verifiers import Completion, Problem, Score


@dataclass(frozen=True, slots=True)
class Prompt:
    """A problem as the model sees it."""

    problem: Problem
    text: str
    token_ids: tuple[int, ...]
    prefill: str = ""  # start of the reply that the prompt contains: see `Completion.prefill`

    def judged(self, completion: Completion) -> tuple[Problem, Completion]:
        """Returns the problem and the completion, including `prefill`, for the verifiers."""
        return self.problem, replace(completion, prefill=self.prefill) if self.prefill else completion


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """The trainer's values at each token of a completion before the update."""

    logprobs: tuple[float, ...]  # nats
    entropy: tuple[float, ...]  # of the distribution of each token, nats
    advantages: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Rollout:
    """A completion with its score and its advantage."""

    completion: Completion
    score: Score
    advantage: float  # mean over its tokens; 0 if unscored, and before the learner has set it
    correct: bool | None  # the task's own verdict, independent of the reward formula; None: unscored
    well_formed: bool | None  # the same for the format
    tokens: TokenRecord | None = None  # with --record-tokens


@dataclass(frozen=True, slots=True)
class Group:
    """The G completions of a problem."""

    problem: Problem
    prompt: str  # rendered with the template
    prompt_ids: tuple[int, ...]
    rollouts: tuple[Rollout, ...]
    optimal_value: float | None = None  # estimated reward of the best policy near the reference, if available
    ticket: int | None = None  # position in the order of requests, if sampling runs ahead of learning

    def with_each(self, changes: Iterable[Mapping[str, Any]]) -> Group:
        """Returns the group with changed fields of each of its rollouts."""
        pairs = zip(self.rollouts, changes, strict=True)
        return replace(self, rollouts=tuple(replace(rollout, **change) for rollout, change in pairs))

    @property
    def has_signal(self) -> bool:
        """True if the rewards differ; otherwise the group gives no gradient."""
        rewards = {rollout.score.reward for rollout in self.rollouts}
        return len(rewards - {None}) > 1
