"""Loads the problems of a task, checks them with the verifiers, and renders and tokenizes their prompts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from r1lite.config import EvalConfig, ProblemsConfig, RLConfig
from r1lite.errors import BadRowsError, UserError, listing
from r1lite.model import vocabulary_size
from r1lite.scoring.scorer import Scorer
from r1lite.tasks import Problems, Source, Task, find, load, tagged_gold
from r1lite.tasks import prompts as templates
from r1lite.types import Prompt
from verifiers import VERIFIERS, Completion, Problem, VerifierError
from verifiers.golds import gold_text
from verifiers.pool import LATE

_SHOWN = 60  # characters of a question in a message


def load_problems(task: Task, config: ProblemsConfig, scorer: Scorer) -> Problems:
    """Loads the task's problems. Raises UserError if the verifiers can't use a gold answer, or problems are missing.

    With --bad-problems drop, problems that can't be used are left out, and `dropped` lists them.
    """
    assert config.source is not None
    source = Source(config.source, config.test_source, config.test_split, config.bad_problems)
    try:
        problems = load(task, source)
    except BadRowsError as error:
        try:
            problems = load(task, replace(source, bad="drop"))  # to list these rows with all others, below
        except UserError:
            raise UserError(f"{error}{_hint(config)}") from error
    if isinstance(config, RLConfig) and not problems.train and problems.test:
        raise UserError(
            f"--task {task.name} only has test problems: train on another task, and measure with r1lite eval"
        )
    if not problems.test or (isinstance(config, RLConfig) and not problems.train):
        raise UserError(
            f"--source {config.source}: {len(problems.train)} problems to train on, {len(problems.test)} to test"
        )
    for verify in {**scorer.correct.verifiers, **scorer.reward.verifiers}.values():
        try:
            getattr(verify, "level", None)  # a verifier that runs programs checks its sandbox here
        except VerifierError as error:
            raise UserError(f"--task {task.name}: {error}") from error
    # Our verifiers check the gold first, also for an empty completion; other verifiers may do anything.
    ours = {name: verify for name, verify in scorer.reward.verifiers.items() if name in VERIFIERS}
    nothing = Completion("")

    def why_bad(problem: Problem) -> str | None:
        try:
            if problem.answer and scorer.correct.reads_gold:
                gold_text(problem.answer, f"the gold of problem {problem.id!r}")
            for verify in {**scorer.correct.verifiers, **ours}.values():
                verify(problem, nothing)
        except VerifierError as error:
            return str(error)
        return None

    return _without_bad(problems, config, why_bad)


def _without_bad(problems: Problems, config: ProblemsConfig, why_bad: Callable[[Problem], str | None]) -> Problems:
    """Returns the problems for which `why_bad` returns None.

    Raises:
        UserError: without --bad-problems drop, some are bad or were dropped when they were loaded; the message lists
            them. With it, none is left to train on or to test.
    """
    checked = problems.test if isinstance(config, EvalConfig) else [*problems.train, *problems.test]
    bad = {
        id(problem): problems.location(problem) + why for problem in checked if (why := why_bad(problem)) is not None
    }
    every = [*problems.dropped, *bad.values()]
    if not bad and (config.bad_problems == "drop" or not every):
        return problems
    train, test = ([one for one in part if id(one) not in bad] for part in (problems.train, problems.test))
    if config.bad_problems == "error" or not test or (problems.train and not train):
        raise UserError(
            f"--source {config.source}: {len(every):,} problem{'s' * (len(every) > 1)} can't be used:\n"
            f"{listing(every)}{_hint(config)}"
        )
    return replace(problems, train=train, test=test, dropped=tuple(every))


def _hint(config: ProblemsConfig) -> str:
    return "" if config.bad_problems == "drop" else "\ncorrect them, or leave them out with --bad-problems drop"


def without_long(problems: Problems, config: ProblemsConfig, model: Any, tokenizer: Any) -> Problems:
    """Returns the problems whose prompts are short enough, with --bad-problems drop; else all. Raises UserError."""
    if config.bad_problems == "error":
        return problems
    checked = problems.test if isinstance(config, EvalConfig) else [*problems.train, *problems.test]
    lengths = {id(prompt.problem): len(prompt.token_ids) for prompt in _tokenized(checked, config, tokenizer)}
    context = getattr(model.config, "max_position_embeddings", None)
    room = (
        config.max_prompt_tokens
        if context is None
        else min(config.max_prompt_tokens, context - config.max_completion_tokens)
    )

    def why_bad(problem: Problem) -> str | None:
        tokens = lengths[id(problem)]
        return (
            f"the prompt of problem {_named(problem)} has {tokens} tokens, more than {room}" if tokens > room else None
        )

    return _without_bad(problems, config, why_bad)


def try_scorer(task: Task, config: ProblemsConfig, scorer: Scorer, problems: Problems) -> list[str]:
    """Scores one completion of the first problem, before anything large is loaded.

    Returns: remarks for the user: why a verifier could not check this completion.

    Raises:
        UserError: a verifier crashes, hangs, or returns no verdict.
    """
    problem = (problems.train or problems.test)[0]
    text = tagged_gold(problem)
    # With token ids, like every completion of an engine; verifiers don't interpret them.
    completion = Completion(text, token_ids=tuple(range(len(text.split()))), finish_reason="stop")
    errors = scorer.tried(problem, completion, reward=not isinstance(config, EvalConfig))
    refused = f"{VerifierError.__name__}: "
    if broken := [error for error in errors if LATE in error or not error.startswith(refused)]:
        if any(LATE in error for error in broken):
            broken.append(f"--score-timeout-s {config.score_timeout_s:g} is the limit; raise it if the reward is slow")
        raise UserError(
            f"--task {task.name}: scoring a trial completion, before the model is loaded, failed:\n{listing(broken)}"
        )
    return [f"a trial completion could not be checked: {error}" for error in errors]


def told_apart(problems: Sequence[Problem]) -> list[Problem]:
    """Returns the problems; different ones with one id get a number, as in "7#2", since training knows them by their id
    (pass rates, optimal values, groups that are sampled ahead)."""
    names: dict[tuple[str, str, str | None, str], str] = {}
    used: dict[str, int] = {}  # id -> number of the last problem that got it
    for problem in problems:
        key, name = (problem.id, problem.prompt, problem.answer, str(problem.tests)), problem.id
        if key in names:
            continue
        while name in used:
            used[problem.id] += 1
            name = f"{problem.id}#{used[problem.id]}"
        names[key], used[name] = name, 1
    of_problems = (names[one.id, one.prompt, one.answer, str(one.tests)] for one in problems)
    return [replace(problem, id=name) for problem, name in zip(problems, of_problems, strict=True)]


def make_prompts(problems: Sequence[Problem], config: ProblemsConfig, model: Any, tokenizer: Any) -> list[Prompt]:
    """Renders and tokenizes the prompts. Raises UserError if one is too long or the tokenizer does not fit."""
    made = _tokenized(problems, config, tokenizer)
    _check_prompts(made, config, model)
    return made


def _tokenized(problems: Sequence[Problem], config: ProblemsConfig, tokenizer: Any) -> list[Prompt]:
    templates.check(config.template)
    around = find(config.task).template
    texts = [templates.render_problem(config.template, around, problem.prompt, tokenizer) for problem in problems]
    encoded = templates.encode(texts, config.template, tokenizer)
    prefill = templates.prefill(config.template, around, tokenizer)
    return [
        Prompt(problem, text, tuple(token_ids), prefill)
        for problem, text, token_ids in zip(problems, texts, encoded, strict=True)
    ]


def _check_prompts(made: Sequence[Prompt], config: ProblemsConfig, model: Any) -> None:
    vocabulary = vocabulary_size(model)
    for prompt in made:
        name = _named(prompt.problem)
        if not prompt.token_ids:
            raise UserError(f"the prompt of problem {name} has no tokens: does the tokenizer belong to the model?")
        if max(prompt.token_ids) >= vocabulary:
            raise UserError(
                f"the prompt of problem {name} has token id {max(prompt.token_ids)}, but the model has only "
                f"{vocabulary} tokens: the tokenizer does not belong to the model"
            )
    longest = max(made, key=lambda prompt: len(prompt.token_ids))
    tokens = len(longest.token_ids)
    name = _named(longest.problem)
    if tokens > config.max_prompt_tokens:
        raise UserError(
            f"the prompt of problem {name} has {tokens} tokens; --max-prompt-tokens is {config.max_prompt_tokens}"
            " (--bad-problems drop leaves such problems out)"
        )
    context = getattr(model.config, "max_position_embeddings", None)
    if context is not None and tokens + config.max_completion_tokens > context:
        largest = context - tokens
        helps = (
            f"the largest that fits all prompts is --max-completion-tokens {largest}" if largest > 0 else "remove it"
        )
        raise UserError(
            f"the prompt of problem {name} has {tokens} tokens and --max-completion-tokens is "
            f"{config.max_completion_tokens}, but the model's context is {context}: {helps}"
        )


def _named(problem: Problem) -> str:
    """Returns the problem's id and the start of its question, for messages."""
    whole = " ".join(problem.prompt[: 4 * _SHOWN].split())
    start = whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}..."
    return f"'{problem.id}' ({start})" if problem.id and start else f"'{problem.id or start}'"


def fingerprint(problems: Problems) -> str:
    """Returns a digest of all problems, in order: of their texts and, after a dot, of what else they hold."""
    texts, others = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
    for problem in (*problems.train, *problems.test):
        texts.update(f"{problem.id}\x1f{problem.prompt}\x1f{problem.answer}\x1e".encode("utf-8", "backslashreplace"))
        held = [problem.tests, problem.language, problem.meta]
        others.update(json.dumps(held, skipkeys=True, default=lambda value: type(value).__name__).encode())
    return f"{texts.hexdigest()}.{others.hexdigest()}"
