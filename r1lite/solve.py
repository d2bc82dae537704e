"""From problems to scored completions: what training and evaluation share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from r1lite import prompts as templates
from r1lite.config import GRPOConfig, ProblemsConfig
from r1lite.errors import UserError
from r1lite.tasks import Problems, Source, Task
from verifiers import VERIFIERS, Completion, Problem, Reward, Score, Verifier, VerifierError, resolve, score_many
from verifiers.formula import Formula
from verifiers.pool import Pool

_SHOWN_BAD_ROWS = 5
_LENGTH_LIMITED = ("overlong", "length")  # verifiers that measure by the longest completion


@dataclass(frozen=True, slots=True)
class Prompt:
    """A problem as the model sees it."""

    problem: Problem
    text: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Judge:
    """The reward, and beside it the task's own idea of right and well-formed, whatever the reward formula says."""

    reward: Reward
    correct: tuple[str, Verifier]
    well_formed: tuple[str, Verifier]
    pool: Pool | None = field(default=None)  # None = scores in this process

    def score(self, pairs: Sequence[tuple[Problem, Completion]]) -> list[Score]:
        """Rewards in order; a check that could not be made leaves its completion unscored."""
        return score_many(self.reward, pairs) if self.pool is None else list(self.pool.map(pairs))

    def close(self) -> None:
        """Ends the worker processes, if there are any."""
        if self.pool is not None:
            self.pool.close()

    def is_correct(self, problem: Problem, completion: Completion, score: Score) -> bool | None:
        """The task's verdict; None where it abstains or could not be reached."""
        return _holds(self.correct, problem, completion, score)

    def is_well_formed(self, problem: Problem, completion: Completion, score: Score) -> bool | None:
        """Likewise for the form."""
        return _holds(self.well_formed, problem, completion, score)


def make_judge(task: Task, config: ProblemsConfig) -> Judge:
    """The judge of a task under the configured reward formula (None = the task's own). Raises UserError."""
    formula, options, workers, timeout_s = task.reward, {}, 0, 0.0
    if isinstance(config, GRPOConfig):
        formula, timeout_s = config.reward or task.reward, config.score_timeout_s
        options = {name: dict(given) for name, given in config.verifiers.items()}
    try:
        targets = {name: options.get(name, {}).get("use", name) for name in Formula(formula).names}
        for name, target in targets.items():
            if target in _LENGTH_LIMITED:  # what is too long is what the sampler cuts off
                options.setdefault(name, {}).setdefault("max_tokens", config.max_completion_tokens)
        reward = Reward(formula, options=options)
        if isinstance(config, GRPOConfig):
            yours = any(target not in VERIFIERS for target in targets.values())
            workers = int(yours) if config.score_workers is None else config.score_workers
        return Judge(
            reward,
            (task.correct, resolve(task.correct)),
            (task.well_formed, resolve(task.well_formed)),
            Pool(reward, workers=workers, timeout_s=timeout_s) if workers else None,
        )
    except ValueError as error:
        raise UserError(f"--reward: {error}") from error


def describe(reward: Reward) -> dict[str, Any]:
    """What a later scoring of the same rollouts needs (`python -m verifiers replay`)."""
    low, high = reward.range
    return {"formula": reward.formula, "options": reward.options, "versions": reward.versions, "range": [low, high]}


def load_problems(task: Task, config: ProblemsConfig, judge: Judge) -> Problems:
    """The task's problems; each gold answer is one that the reward's verifiers can work with. Raises UserError."""
    assert config.source is not None
    problems = task.load(Source(config.source, config.test_source, config.test_split))
    nothing = Completion("")
    every = [*problems.train, *problems.test]
    bad = [score.error for score in judge.score([(problem, nothing) for problem in every]) if score.error]
    for problem in every if not bad else ():
        try:
            judge.correct[1](problem, nothing)
        except VerifierError as error:
            bad.append(str(error))
    if bad:
        shown = "\n".join(f"  {line}" for line in bad[:_SHOWN_BAD_ROWS])
        more = f"\n  ... and {len(bad) - _SHOWN_BAD_ROWS} more" if len(bad) > _SHOWN_BAD_ROWS else ""
        raise UserError(f"--source {config.source}: {len(bad)} problems can't be checked:\n{shown}{more}")
    return problems


def make_prompts(problems: Sequence[Problem], config: ProblemsConfig, model: Any, tokenizer: Any) -> list[Prompt]:
    """Renders and tokenizes. Raises UserError for prompts that are too long."""
    templates.check(config.template)
    texts = [templates.render(config.template, problem.prompt, tokenizer) for problem in problems]
    # A chat template writes its own special tokens.
    encoded = tokenizer(texts, add_special_tokens=config.template != "chat")["input_ids"]
    made = [
        Prompt(problem, text, tuple(token_ids))
        for problem, text, token_ids in zip(problems, texts, encoded, strict=True)
    ]
    longest = max(made, key=lambda prompt: len(prompt.token_ids))
    tokens = len(longest.token_ids)
    name = longest.problem.id or longest.problem.prompt[:60]
    if tokens > config.max_prompt_tokens:
        raise UserError(
            f"the prompt of problem '{name}' has {tokens} tokens; --max-prompt-tokens is {config.max_prompt_tokens}"
        )
    context = getattr(model.config, "max_position_embeddings", None)
    if context is not None and tokens + config.max_completion_tokens > context:
        raise UserError(
            f"the prompt of problem '{name}' has {tokens} tokens and --max-completion-tokens is "
            f"{config.max_completion_tokens}, but the model's context is {context}; leave that problem out, or lower "
            "--max-completion-tokens"
        )
    return made


def _holds(verifier: tuple[str, Verifier], problem: Problem, completion: Completion, score: Score) -> bool | None:
    name, verify = verifier
    verdict = score.verdicts.get(name)
    if verdict is None:
        try:
            verdict = verify(problem, completion)
        except VerifierError:
            return None
    return None if verdict.score is None else verdict.score == 1.0
