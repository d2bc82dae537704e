"""The model under test, loaded as in a run, with prompts of bundled problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from r1lite.config import GRPOConfig, load
from r1lite.scoring.problems import load_problems, make_prompts, without_long
from r1lite.scoring.scorer import make_scorer
from r1lite.selftest import Options
from r1lite.tasks import find
from r1lite.training.loading import load_model
from r1lite.training.resolve import resolve_config
from r1lite.types import Prompt

PROMPTS, TOKENS = 4, 48


@dataclass(frozen=True, slots=True)
class Subject:
    """Model, tokenizer and prompts for the checks of an engine."""

    config: GRPOConfig
    model: Any
    tokenizer: Any
    prompts: list[Prompt]


def flags(options: Options, *more: str) -> list[str]:
    """Returns the command line of a run with this model on bundled problems."""
    found = [
        *("--task", "gsm8k", "--source", "bundled", "--model", options.model, "--device", options.device),
        *("--attn-implementation", options.attn_implementation, "--max-completion-tokens", str(TOKENS)),
        *("--prove-weights-every", "1", "--bad-problems", "drop"),  # a short context has room for few problems
    ]
    if options.template is not None:
        found += ["--template", options.template]
    if options.threads is not None:
        found += ["--threads", str(options.threads)]
    if options.untested:
        found.append("--engine-untested")
    return [*found, *more]


def subject(options: Options, *more: str) -> Subject:
    """Loads the model. Raises UserError if it, its template or the device can't be used."""
    import torch

    config, _ = resolve_config(load(GRPOConfig, flags(options, *more)))
    assert config.threads is not None
    torch.set_num_threads(config.threads)
    model, tokenizer = load_model(config)
    task = find(config.task)
    scorer = make_scorer(task, config)
    try:
        problems = load_problems(task, config, scorer)
    finally:
        scorer.close()
    problems = without_long(problems, config, model, tokenizer)
    return Subject(config, model, tokenizer, make_prompts(problems.train[:PROMPTS], config, model, tokenizer))
