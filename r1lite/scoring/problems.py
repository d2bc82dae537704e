"""The problems of a task: loaded, checked against the verifiers, rendered and tokenized."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from r1lite.config import EvalConfig, ProblemsConfig, RLConfig
from r1lite.errors import UserError
from r1lite.scoring.scorer import Scorer
from r1lite.tasks import Problems, Source, Task, find, tagged_gold
from r1lite.tasks import prompts as templates
from r1lite.types import Prompt
from verifiers import VERIFIERS, Completion, Problem, VerifierError
from verifiers.golds import gold_text

_SHOWN_BAD_ROWS = 5


def load_problems(task: Task, config: ProblemsConfig, scorer: Scorer) -> Problems:
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
    for verify in {**scorer.correct.verifiers, **scorer.reward.verifiers}.values():
        try:
            getattr(verify, "level", None)  # one that runs programs looks for isolation here
        except VerifierError as error:
            raise UserError(f"--task {task.name}: {error}") from error
    # Ours say of an empty completion at once whether they can use the gold; what others do with it is unknown.
    ours = {name: verify for name, verify in scorer.reward.verifiers.items() if name in VERIFIERS}
    nothing, bad = Completion(""), []
    for problem in problems.test if isinstance(config, EvalConfig) else (*problems.train, *problems.test):
        try:
            if problem.answer and scorer.correct.reads_gold:
                gold_text(problem.answer, f"the gold of problem {problem.id!r}")
            for verify in {**scorer.correct.verifiers, **ours}.values():
                verify(problem, nothing)
        except VerifierError as error:
            bad.append(str(error))
    if bad:
        shown = "\n".join(f"  {line}" for line in bad[:_SHOWN_BAD_ROWS])
        more = f"\n  ... and {len(bad) - _SHOWN_BAD_ROWS} more" if len(bad) > _SHOWN_BAD_ROWS else ""
        raise UserError(f"--source {config.source}: {len(bad)} problems can't be checked:\n{shown}{more}")
    return problems


def try_scorer(task: Task, config: ProblemsConfig, scorer: Scorer, problems: Problems) -> list[str]:
    """Scores one completion of the first problem, before anything large is loaded.

    Returns: what the reader should know: why a verifier could not check this one.

    Raises: UserError if a verifier crashes, hangs, or returns no verdict.
    """
    problem = (problems.train or problems.test)[0]
    text = tagged_gold(problem)
    # With ids, as every completion of an engine has them; no verifier knows what they mean.
    completion = Completion(text, token_ids=tuple(range(len(text.split()))), finish_reason="stop")
    errors = scorer.tried(problem, completion, reward=not isinstance(config, EvalConfig))
    if broken := [error for error in errors if not error.startswith(f"{VerifierError.__name__}: ")]:
        shown = "\n".join(f"  {error}" for error in broken)
        raise UserError(f"--task {task.name}: a first completion, tried before anything is loaded, failed:\n{shown}")
    return [f"a first completion could not be checked: {error}" for error in errors]


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
    prefill = templates.prefill(config.template, around, tokenizer)
    made = [
        Prompt(problem, text, tuple(token_ids), prefill)
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
