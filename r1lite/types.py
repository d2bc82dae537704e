"""What flows through every stage: a problem as the model sees it, and its scored completions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from verifiers import Completion, Problem, Score


@dataclass(frozen=True, slots=True)
class Prompt:
    """A problem as the model sees it."""

    problem: Problem
    text: str
    token_ids: tuple[int, ...]
    prefill: str = ""  # what it wrote of the reply: see `Completion.prefill`

    def judged(self, completion: Completion) -> tuple[Problem, Completion]:
        """What verifiers judge: the problem, and the completion with what the prompt wrote of it."""
        return self.problem, replace(completion, prefill=self.prefill) if self.prefill else completion


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What the trainer saw at each token of a completion before it learnt from it."""

    logprobs: tuple[float, ...]  # nats
    entropy: tuple[float, ...]  # of the distribution that the token was drawn from, nats
    advantages: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Rollout:
    """One completion, what it earned, and how that compares with its siblings."""

    completion: Completion
    score: Score
    advantage: float  # the mean of its tokens'; 0 when unscored, and before the learner has seen it
    correct: bool | None  # the task's own verdict, whatever the reward formula says; None = unscored
    well_formed: bool | None  # likewise for the format
    tokens: TokenRecord | None = None  # with --record-tokens


@dataclass(frozen=True, slots=True)
class Group:
    """The G completions of one problem."""

    problem: Problem
    prompt: str  # after the template
    prompt_ids: tuple[int, ...]
    rollouts: tuple[Rollout, ...]
    optimal_value: float | None = None  # what the best policy near the reference earns, where that was estimated
    ticket: int | None = None  # its number in the order of asking, where sampling runs ahead of learning

    @property
    def has_signal(self) -> bool:
        """True if some completion is better than another: otherwise there is nothing to learn."""
        rewards = {rollout.score.reward for rollout in self.rollouts}
        return len(rewards - {None}) > 1
