"""Scores completions by the reward and by the task's own verdict, for training, evaluation and curation."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from r1lite.config import EvalConfig, ProblemsConfig, RLConfig
from r1lite.errors import RunError, UserError
from r1lite.scoring.voting import Same, same_by, same_text
from r1lite.tasks import Task
from r1lite.types import Rollout
from verifiers import Completion, Problem, Reward, Score, VerifierError
from verifiers.formula import Formula
from verifiers.on_ray import Actors, RayScorer, address_of
from verifiers.registry import LEARNED
from verifiers.scoring import BatchScorer, workers_for

Pairs = Sequence[tuple[Problem, Completion]]

_LENGTH_LIMITED = ("overlong", "length")  # verifiers that need the maximum completion length


@dataclass(frozen=True, slots=True)
class Mark:
    """The verdict on a completion of an evaluation."""

    correct: bool | None  # None: the check failed
    well_formed: bool | None
    answer: str | None  # the extracted final answer
    reason: str
    detail: str
    span: tuple[int, int] | None  # position of the answer in the text


class Scorer:
    """Computes the reward and, independent of the reward formula, the task's verdicts "correct" and "well-formed".

    Each verifier is called once per completion, in batches if it supports them. Each formula has its own worker
    processes if its verifiers may hang: see `verifiers.scoring.BatchScorer`.

    Args:
        vote: how maj@k compares two answers, see Task.vote.
        workers: number of processes for each formula's verifiers that are not isolated; None: 1 for a formula with
            a verifier from outside of r1lite, otherwise 0.
        timeout_s: time limit of one completion in a worker, in seconds.
        on: a Ray cluster to score on (`verifiers.on_ray.address_of`), with `workers` actors that the reward and
            `correct` share; None: this machine. `well_formed` always runs on this machine.
    """

    def __init__(
        self,
        reward: Reward,
        correct: Reward,
        well_formed: Reward,
        *,
        vote: str = "verifier",
        workers: int | None = 0,
        timeout_s: float = 30.0,
        on: str | None = None,
    ) -> None:
        self.reward, self.correct, self.well_formed, self.vote = reward, correct, well_formed, vote
        made: list[BatchScorer | RayScorer] = []
        if on is not None:
            actors = Actors([reward, correct], address=address_of(on), count=workers, timeout_s=timeout_s, say=_say)
            made = [actors.scorer(0), actors.scorer(1)]
            workers = None
        for asked in (reward, correct, well_formed)[len(made) :]:
            here = workers_for(asked) if workers is None else workers
            made.append(BatchScorer(asked, workers=here, timeout_s=timeout_s))
        self._reward, self._correct, self._well_formed = self._batches = made
        self._one_call = threading.Lock()  # for verifiers in this process

    @property
    def overlaps(self) -> bool:
        """True if calls of `rollouts` from several threads compute rewards at the same time."""
        return self._reward.overlaps

    def start(self) -> None:
        """Starts the reward's worker processes, if it has any. Raises ValueError."""
        self._reward.start()

    def close(self) -> None:
        """Stops all worker processes, including those of the verifiers."""
        for batches in self._batches:
            batches.close()
            for verify in batches.reward.verifiers.values():
                close = getattr(verify, "close", None)
                if close is not None:
                    close()

    def score(self, pairs: Pairs) -> list[Score]:
        """Returns the scores in order; a completion whose check failed is unscored."""
        return self._mapped(self._reward, pairs)

    def rollouts(self, pairs: Pairs, scored: Callable[[], object] | None = None) -> list[Rollout]:
        """Returns completions with scores and the task's verdicts; a verdict is None if the check abstains or fails.

        Args:
            scored: called for one completion after the other, as soon as it has its score.
        """
        scores = self._mapped(self._reward, pairs, scored)
        correct = self._held(self._correct, pairs, scores, self.reward)
        well_formed = self._held(self._well_formed, pairs, scores, self.reward)
        advantage = 0.0  # set later, by the learner
        return [
            Rollout(completion, score, advantage, right, formed)
            for (_, completion), score, right, formed in zip(pairs, scores, correct, well_formed, strict=True)
        ]

    def marks(self, pairs: Pairs, scored: Callable[[], object] | None = None) -> list[Mark]:
        """Returns the verdicts of an evaluation; a completion is correct if the formula `correct` has its maximum.

        Args:
            scored: as for `rollouts`.
        """
        scores = self._mapped(self._correct, pairs, scored)
        well_formed = self._held(self._well_formed, pairs, scores, self.correct)
        best = self.correct.range[1] - 1e-9
        return [_mark(score, formed, best) for score, formed in zip(scores, well_formed, strict=True)]

    def tried(self, problem: Problem, completion: Completion, *, reward: bool) -> list[str]:
        """Returns the errors of scoring a completion with each formula; empty if there are none.

        Args:
            reward: include the reward formula, which an evaluation does not use.
        """
        asked = self._batches if reward else self._batches[1:]
        found = [self._mapped(batches, [(problem, completion)]) for batches in asked]
        return list(dict.fromkeys(score.error for scores in found for score in scores if score.error))

    def same_answer(self, problem: Problem) -> Same | None:
        """Returns the comparison of two answers to this problem, for maj@k; None if the task has no votes."""
        if self.vote == "none":
            return None
        if self.vote == "text":
            return same_text
        return same_by(next(iter(self.correct.verifiers.values())), problem)

    def _mapped(
        self, batches: BatchScorer | RayScorer, pairs: Pairs, scored: Callable[[], object] | None = None
    ) -> list[Score]:
        """Returns the scores in order. Raises RunError if the worker processes can't score."""
        found = []
        try:
            with contextlib.nullcontext() if batches.overlaps else self._one_call:
                for score in batches.map(pairs):
                    found.append(score)
                    if scored is not None:
                        scored()
        except (ValueError, VerifierError) as error:  # the reward can't be set up in them, or they die at once
            raise RunError(str(error)) from error
        return found

    def _held(
        self, batches: BatchScorer | RayScorer, pairs: Pairs, scores: Sequence[Score], asked: Reward
    ) -> list[bool | None]:
        """Returns for each pair whether the only verifier of `batches` gives 1.

        If `asked`, the formula of `scores`, includes this verifier, its verdicts are taken from `scores`. A score
        without that verdict means that the check failed; it is not repeated.
        """
        (name,) = batches.reward.verifiers
        found = scores if name in asked.verifiers else self._mapped(batches, pairs)
        verdicts = (score.verdicts.get(name) for score in found)
        return [None if verdict is None or verdict.score is None else verdict.score == 1.0 for verdict in verdicts]


def _say(line: str) -> None:
    print(f"scoring on {line}", file=sys.stderr)


def make_scorer(task: Task, config: ProblemsConfig) -> Scorer:
    """Returns the scorer of a task with the configured reward formula (None: the task's). Raises UserError."""
    reward, correct, well_formed = rewards_of(task, config)
    try:
        scorer = Scorer(
            reward,
            correct,
            well_formed,
            vote=task.vote,
            workers=config.score_workers,
            timeout_s=config.score_timeout_s,
            on=None if config.scoring == "local" else config.scoring,
        )
        if isinstance(config, RLConfig):
            scorer.start()
        return scorer
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"--{'reward' if config.scoring == 'local' else 'scoring'}: {error}") from error
    except VerifierError as error:
        raise UserError(f"--scoring: {error}") from error


def penalized(formula: str, overlong_penalty: float) -> str:
    """Returns the formula minus the penalty, which the formula of a run that has begun includes already.

    Raises:
        ValueError: the formula can't be parsed.
    """
    if overlong_penalty and "overlong" not in Formula(formula).names:
        return f"{formula} - {overlong_penalty:g}*overlong"
    return formula


def rewards_of(task: Task, config: ProblemsConfig) -> tuple[Reward, Reward, Reward]:
    """Returns the formulas of a scorer: reward, correct, well-formed. Raises UserError."""
    formula = task.reward
    options: dict[str, dict[str, Any]] = {}
    right = _right(task, config)
    try:
        if isinstance(config, RLConfig):
            formula = penalized(task.reward if config.reward is None else config.reward, config.overlong_penalty)
            options = {name: dict(given) for name, given in config.verifiers.items()}
        targets = {name: options.get(name, {}).get("use", name) for name in Formula(formula).names}
        for name, target in targets.items():
            if target in _LENGTH_LIMITED:  # the limit at which sampling stops
                options.setdefault(name, {}).setdefault("max_tokens", config.max_completion_tokens)
            elif target.startswith(LEARNED):
                options.setdefault(name, {}).setdefault("device", config.device)
        return Reward(formula, options=options), right, Reward(task.well_formed)
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"--reward: {error}") from error


def _right(task: Task, config: ProblemsConfig) -> Reward:
    """Returns the formula `correct`: the task's verifier, or that of --verifier. Raises UserError."""
    if not isinstance(config, EvalConfig) or config.verifier is None:
        return Reward(task.correct)
    try:
        return Reward(config.verifier, options=config.verifiers)
    except ValueError as error:
        raise UserError(f"--verifier: {error}") from error


def describe(reward: Reward) -> dict[str, Any]:
    """Returns what `python -m verifiers replay` needs to score the rollouts again."""
    low, high = reward.range
    return {"formula": reward.formula, "options": reward.options, "versions": reward.versions, "range": [low, high]}


def _mark(score: Score, well_formed: bool | None, best: float) -> Mark:
    verdicts = list(score.verdicts.values())
    answered = next((verdict for verdict in verdicts if verdict.answer is not None), None)
    return Mark(
        correct=None if score.reward is None else score.reward >= best,
        well_formed=well_formed,
        answer=None if answered is None else answered.answer,
        reason=score.error or (verdicts[0].reason if verdicts else "no verdict"),
        detail=verdicts[0].detail if verdicts else "",
        span=None if answered is None else answered.span,
    )
