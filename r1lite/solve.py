"""From problems to scored completions: what training and evaluation share."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from r1lite import prompts as templates
from r1lite.config import EvalConfig, ProblemsConfig, RLConfig
from r1lite.errors import UserError
from r1lite.evaluation.voting import Same, same_by, same_text
from r1lite.tasks import Problems, Source, Task, find
from verifiers import VERIFIERS, Completion, Problem, Reward, Score, VerifierError, score_many
from verifiers.formula import Formula
from verifiers.golds import gold_text
from verifiers.pool import Pool
from verifiers.registry import LEARNED

_SHOWN_BAD_ROWS = 5
_LENGTH_LIMITED = ("overlong", "length")  # verifiers that measure by the longest completion


@dataclass(frozen=True, slots=True)
class Prompt:
    """A problem as the model sees it."""

    problem: Problem
    text: str
    token_ids: tuple[int, ...]


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
class Judge:
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


def make_judge(task: Task, config: ProblemsConfig) -> Judge:
    """The judge of a task under the configured reward formula (None = the task's own). Raises UserError."""
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
        return Judge(
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


def load_problems(task: Task, config: ProblemsConfig, judge: Judge) -> Problems:
    """The task's problems; each gold answer is one that the reward's verifiers can work with. Raises UserError."""
    assert config.source is not None
    try:
        problems = task.load(Source(config.source, config.test_source, config.test_split))
    except UserError:
        raise
    except (OSError, ValueError) as error:
        raise UserError(f"--task {task.name}, --source {config.source}: {error}") from error
    if isinstance(config, RLConfig) and not problems.train and problems.test:
        raise UserError(f"--task {task.name} is for testing only: train on another, and measure with r1lite eval")
    if not problems.test or (isinstance(config, RLConfig) and not problems.train):
        raise UserError(
            f"--source {config.source}: {len(problems.train)} problems to train on, {len(problems.test)} to test"
        )
    for verify in {**judge.correct.verifiers, **judge.reward.verifiers}.values():
        try:
            getattr(verify, "level", None)  # one that runs programs looks for isolation here
        except VerifierError as error:
            raise UserError(f"--task {task.name}: {error}") from error
    # Ours say of an empty completion at once whether they can use the gold; what others do with it is unknown.
    ours = {name: verify for name, verify in judge.reward.verifiers.items() if name in VERIFIERS}
    nothing, bad = Completion(""), []
    for problem in problems.test if isinstance(config, EvalConfig) else (*problems.train, *problems.test):
        try:
            if problem.answer and judge.correct.reads_gold:
                gold_text(problem.answer, f"the gold of problem {problem.id!r}")
            for verify in {**judge.correct.verifiers, **ours}.values():
                verify(problem, nothing)
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
    around = find(config.task).template
    texts = [
        templates.render(config.template, around.replace("{question}", problem.prompt), tokenizer)
        for problem in problems
    ]
    # A chat template writes its own special tokens.
    encoded = tokenizer(texts, add_special_tokens=config.template != "chat")["input_ids"]
    made = [
        Prompt(problem, text, tuple(token_ids))
        for problem, text, token_ids in zip(problems, texts, encoded, strict=True)
    ]
    vocabulary = model.get_input_embeddings().num_embeddings
    for prompt in made:
        name = prompt.problem.id or prompt.problem.prompt[:60]
        if not prompt.token_ids:
            raise UserError(f"the prompt of problem '{name}' has no tokens: is this the model's tokenizer?")
        if max(prompt.token_ids) >= vocabulary:
            raise UserError(
                f"the tokenizer gives problem '{name}' the token {max(prompt.token_ids)}, but the model has only "
                f"{vocabulary}: they don't belong together"
            )
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


def fingerprint(problems: Problems) -> str:
    """Changes when any problem does."""
    digest = hashlib.blake2b(digest_size=16)
    for problem in (*problems.train, *problems.test):
        digest.update(f"{problem.id}\x1f{problem.prompt}\x1f{problem.answer}\x1e".encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def _holds(asked: Reward, problem: Problem, completion: Completion, score: Score) -> bool | None:
    (name,) = asked.verifiers
    verdict = score.verdicts.get(name)
    if verdict is None:
        (found,) = score_many(asked, [(problem, completion)])
        verdict = found.verdicts.get(name)
    return None if verdict is None or verdict.score is None else verdict.score == 1.0
