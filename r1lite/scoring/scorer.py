"""Scores completions: the reward, and beside it the task's own verdict. Training, evaluation and curation share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from r1lite.config import EvalConfig, ProblemsConfig, RLConfig
from r1lite.errors import UserError
from r1lite.scoring.voting import Same, same_by, same_text
from r1lite.tasks import Task
from verifiers import VERIFIERS, Completion, Problem, Reward, Score, score_many
from verifiers.formula import Formula
from verifiers.pool import Pool
from verifiers.registry import LEARNED

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


@dataclass(frozen=True, slots=True)
class Scorer:
    """The reward, and beside it the task's own idea of right and well-formed, whatever the reward formula says."""

    reward: Reward
    correct: Reward
    well_formed: Reward
    pool: Pool | None = field(default=None)  # None = scores in this process
    vote: str = "verifier"  # what makes two answers the same, see Task.vote

    def score(self, pairs: Sequence[tuple[Problem, Completion]]) -> list[Score]:
        """Rewards in order; a check that could not be made leaves its completion unscored."""
        return score_many(self.reward, pairs) if self.pool is None else list(self.pool.map(pairs))

    def close(self) -> None:
        """Ends the worker processes, if there are any, the verifiers' own too."""
        if self.pool is not None:
            self.pool.close()
        for verify in {**self.reward.verifiers, **self.correct.verifiers}.values():
            close = getattr(verify, "close", None)
            if close is not None:
                close()

    def is_correct(self, problem: Problem, completion: Completion, score: Score) -> bool | None:
        """The task's verdict; None where it abstains or could not be reached."""
        return _holds(self.correct, problem, completion, score)

    def mark(self, problem: Problem, completion: Completion) -> Mark:
        """What an evaluation keeps: right means that the formula of `correct` is at its highest."""
        (score,) = score_many(self.correct, [(problem, completion)])
        verdicts = list(score.verdicts.values())
        answered = next((verdict for verdict in verdicts if verdict.answer is not None), None)
        return Mark(
            correct=None if score.reward is None else score.reward >= self.correct.range[1] - 1e-9,
            well_formed=self.is_well_formed(problem, completion, score),
            answer=None if answered is None else answered.answer,
            reason=score.error or (verdicts[0].reason if verdicts else "no verdict"),
            detail=verdicts[0].detail if verdicts else "",
            span=None if answered is None else answered.span,
        )

    def same_answer(self, problem: Problem) -> Same | None:
        """Whether two answers to this problem say the same, for maj@k; None where answers can't vote."""
        if self.vote == "none":
            return None
        if self.vote == "text":
            return same_text
        return same_by(next(iter(self.correct.verifiers.values())), problem)

    def is_well_formed(self, problem: Problem, completion: Completion, score: Score) -> bool | None:
        """Likewise for the form."""
        return _holds(self.well_formed, problem, completion, score)


def make_scorer(task: Task, config: ProblemsConfig) -> Scorer:
    """The scorer of a task under the configured reward formula (None = the task's own). Raises UserError."""
    formula, workers, timeout_s = task.reward, 0, 0.0
    options: dict[str, dict[str, Any]] = {}
    if isinstance(config, RLConfig):
        formula = task.reward if config.reward is None else config.reward
        if config.overlong_penalty and "overlong" not in _names(formula):  # a kept formula has it already
            formula = f"{formula} - {config.overlong_penalty:g}*overlong"
        timeout_s = config.score_timeout_s
        options = {name: dict(given) for name, given in config.verifiers.items()}
    try:
        targets = {name: options.get(name, {}).get("use", name) for name in Formula(formula).names}
        for name, target in targets.items():
            if target in _LENGTH_LIMITED:  # what is too long is what the sampler cuts off
                options.setdefault(name, {}).setdefault("max_tokens", config.max_completion_tokens)
            elif target.startswith(LEARNED):
                options.setdefault(name, {}).setdefault("device", config.device)
        reward = Reward(formula, options=options)
        if isinstance(config, RLConfig):
            yours = any(target not in VERIFIERS and not target.startswith(LEARNED) for target in targets.values())
            workers = int(yours) if config.score_workers is None else config.score_workers
        return Scorer(
            reward,
            _right(task, config),
            Reward(task.well_formed),
            Pool(reward, workers=workers, timeout_s=timeout_s) if workers else None,
            task.vote,
        )
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


def _holds(asked: Reward, problem: Problem, completion: Completion, score: Score) -> bool | None:
    (name,) = asked.verifiers
    verdict = score.verdicts.get(name)
    if verdict is None:
        (found,) = score_many(asked, [(problem, completion)])
        verdict = found.verdicts.get(name)
    return None if verdict is None or verdict.score is None else verdict.score == 1.0
