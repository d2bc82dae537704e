"""What flows through every stage: a problem as the model sees it, and its scored completions."""

from __future__ import annotations

from dataclasses import dataclass

from verifiers import Completion, Problem, Score


@dataclass(frozen=True, slots=True)
class Prompt:
    """A problem as the model sees it."""

    problem: Problem
    text: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rollout:
    """One completion, what it earned, and how that compares with its siblings."""

    completion: Completion
    score: Score
    advantage: float  # the mean of its tokens'; 0 when unscored, and before the learner has seen it
    correct: bool | None  # the task's own verdict, whatever the reward formula says; None = unscored
    well_formed: bool | None  # likewise for the format


@dataclass(frozen=True, slots=True)
class Group:
    """The G completions of one problem."""

    problem: Problem
    prompt: str  # after the template
    prompt_ids: tuple[int, ...]
    rollouts: tuple[Rollout, ...]

    @property
    def has_signal(self) -> bool:
        """True if some completion is better than another: otherwise there is nothing to learn."""
        rewards = {rollout.score.reward for rollout in self.rollouts}
        return len(rewards - {None}) > 1
