"""Scores completions: the reward, and beside it the task's own verdict. Training, evaluation and curation share it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from r1lite.config import EvalConfig, ProblemsConfig, RLConfig
from r1lite.errors import UserError
from r1lite.scoring.voting import Same, same_by, same_text
from r1lite.tasks import Task
from r1lite.types import Rollout
from verifiers import Completion, Problem, Reward, Score, VerifierError
from verifiers.formula import Formula
from verifiers.on_ray import Actors, RayScorer, address_of
from verifiers.registry import LEARNED
from verifiers.scoring import BatchScorer, workers_for

Pairs = Sequence[tuple[Problem, Completion]]

_LENGTH_LIMITED = ("overlong", "length")  # verifiers that measure by the longest completion


@dataclass(frozen=True, slots=True)
class Mark:
    """A judged completion."""

    correct: bool | None  # None = it could not be judged
    well_formed: bool | None
    answer: str | None  # what was taken for the final answer
    reason: str
    detail: str
    span: tuple[int, int] | None  # where the answer stands in the text


class Scorer:
    """The reward, and beside it the task's own idea of right and well-formed, whatever the reward formula says.

    Every verifier is asked once for a completion, in batches where it can, and each formula has worker processes of its
    own if verifiers in it may hang: `verifiers.scoring.BatchScorer`.

    Args:
        vote: what makes two answers the same, see Task.vote.
        workers: processes for each formula's verifiers that are not isolated; None = 1 for a formula that names a
            verifier which is not ours, otherwise 0.
        timeout_s: deadline of one completion in a worker.
        on: a Ray cluster to score on (`verifiers.on_ray.address_of`), with `workers` actors that the reward and
            `correct` share; None: this machine. Well-formed is told here anyway.
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

    def start(self) -> None:
        """Starts the reward's worker processes, if it has any. Raises ValueError."""
        self._reward.start()

    def close(self) -> None:
        """Ends the worker processes, if there are any, the verifiers' own too."""
        for batches in self._batches:
            batches.close()
            for verify in batches.reward.verifiers.values():
                close = getattr(verify, "close", None)
                if close is not None:
                    close()

    def score(self, pairs: Pairs) -> list[Score]:
        """Rewards in order; a check that could not be made leaves its completion unscored."""
        return list(self._reward.map(pairs))

    def rollouts(self, pairs: Pairs) -> list[Rollout]:
        """Completions with their scores and the task's verdicts: None where it abstains or could not be reached."""
        scores = self.score(pairs)
        correct = _held(self._correct, pairs, scores, self.reward)
        well_formed = _held(self._well_formed, pairs, scores, self.reward)
        advantage = 0.0  # the learner's to say
        return [
            Rollout(completion, score, advantage, right, formed)
            for (_, completion), score, right, formed in zip(pairs, scores, correct, well_formed, strict=True)
        ]

    def marks(self, pairs: Pairs) -> list[Mark]:
        """What an evaluation keeps: right means that the formula of `correct` is at its highest."""
        scores = list(self._correct.map(pairs))
        well_formed = _held(self._well_formed, pairs, scores, self.correct)
        best = self.correct.range[1] - 1e-9
        return [_mark(score, formed, best) for score, formed in zip(scores, well_formed, strict=True)]

    def tried(self, problem: Problem, completion: Completion, *, reward: bool) -> list[str]:
        """Why a completion can't be scored, by each formula that a run asks; nothing where all of them can.

        Args:
            reward: whether the reward is asked too: an evaluation has no use for it.
        """
        asked = self._batches if reward else self._batches[1:]
        found = [batches.map([(problem, completion)]) for batches in asked]
        return list(dict.fromkeys(score.error for scores in found for score in scores if score.error))

    def same_answer(self, problem: Problem) -> Same | None:
        """Whether two answers to this problem say the same, for maj@k; None where answers can't vote."""
        if self.vote == "none":
            return None
        if self.vote == "text":
            return same_text
        return same_by(next(iter(self.correct.verifiers.values())), problem)


def _say(line: str) -> None:
    print(f"scoring on {line}", file=sys.stderr)


def make_scorer(task: Task, config: ProblemsConfig) -> Scorer:
    """The scorer of a task under the configured reward formula (None = the task's own). Raises UserError."""
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


def rewards_of(task: Task, config: ProblemsConfig) -> tuple[Reward, Reward, Reward]:
    """The formulas of a scorer: the reward, what is right, what is well-formed. Raises UserError."""
    formula = task.reward
    options: dict[str, dict[str, Any]] = {}
    if isinstance(config, RLConfig):
        formula = task.reward if config.reward is None else config.reward
        if config.overlong_penalty and "overlong" not in _names(formula):  # a kept formula has it already
            formula = f"{formula} - {config.overlong_penalty:g}*overlong"
        options = {name: dict(given) for name, given in config.verifiers.items()}
    try:
        targets = {name: options.get(name, {}).get("use", name) for name in Formula(formula).names}
        for name, target in targets.items():
            if target in _LENGTH_LIMITED:  # what is too long is what the sampler cuts off
                options.setdefault(name, {}).setdefault("max_tokens", config.max_completion_tokens)
            elif target.startswith(LEARNED):
                options.setdefault(name, {}).setdefault("device", config.device)
        return Reward(formula, options=options), _right(task, config), Reward(task.well_formed)
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"--reward: {error}") from error


def _names(formula: str) -> list[str]:
    try:
        return Formula(formula).names
    except ValueError as error:
        raise UserError(f"--reward: {error}") from error


def _right(task: Task, config: ProblemsConfig) -> Reward:
    """The formula of correctness: the task's verifier, or what an evaluation asks for. Raises UserError."""
    if not isinstance(config, EvalConfig) or config.verifier is None:
        return Reward(task.correct)
    try:
        return Reward(config.verifier, options=config.verifiers)
    except ValueError as error:
        raise UserError(f"--verifier: {error}") from error


def describe(reward: Reward) -> dict[str, Any]:
    """What a later scoring of the same rollouts needs (`python -m verifiers replay`)."""
    low, high = reward.range
    return {"formula": reward.formula, "options": reward.options, "versions": reward.versions, "range": [low, high]}


def _held(batches: BatchScorer | RayScorer, pairs: Pairs, scores: Sequence[Score], asked: Reward) -> list[bool | None]:
    """Whether the one verifier of `batches` gives 1. The scores have its verdicts if `asked`, their formula, names it:
    where a score lacks them, the verifier could not tell, and is not asked again."""
    (name,) = batches.reward.verifiers
    found = scores if name in asked.verifiers else batches.map(pairs)
    verdicts = (score.verdicts.get(name) for score in found)
    return [None if verdict is None or verdict.score is None else verdict.score == 1.0 for verdict in verdicts]


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
