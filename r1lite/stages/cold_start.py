"""`r1lite cold-start`: makes a first data set of readable, right chains of thought."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from r1lite.config import ColdStartConfig
from r1lite.curation.finish import Rewriting, resumed, run_on_rollouts
from r1lite.curation.rewrite import RULES, Rewrite, by_rules
from r1lite.curation.rows import Candidate
from r1lite.tasks import find
from r1lite.tasks.prompts import encode, render_messages, render_problem
from verifiers import Score


def run(config: ColdStartConfig) -> dict[str, Any]:
    """Makes the set and returns its manifest. With --rollouts and without a rewriting model, torch is not loaded.

    Raises:
        UserError: a requested resource is unavailable, or a setting is refused.
        RunError: no completion is left to keep.
        Interrupted: a signal stopped the command; --resume continues it.
    """
    asked = resumed(config) if config.resume else config
    rewriting = None
    if asked.rewrite == "rules":
        rewriting = Rewriting(RULES, _by_rules, by_model=False)
    elif asked.rewrite == "model":
        from r1lite.training.machine import choose

        model = asked.rewrite_model or asked.model or choose(asked).values["model"]
        rewrite = functools.partial(_by_model, asked.model_copy(update={"rewrite_model": model}))
        rewriting = Rewriting(f"model {model}", rewrite, by_model=True)
    if asked.rollouts is not None:
        return run_on_rollouts(config, rewriting)
    from r1lite.curation.generate import run_on_samples

    return run_on_samples(config, rewriting, few_shot)


def few_shot(config: ColdStartConfig) -> tuple[str, str | None]:
    """Returns (text before every prompt, text that ends a completion), from the examples."""
    around = find(config.task).template
    shown = [
        render_problem(config.template, around, example["question"], None)
        + example["completion"]
        + config.example_separator
        for example in config.examples
    ]
    return "".join(shown), config.example_separator if shown else None


@contextlib.contextmanager
def _by_rules() -> Iterator[Rewrite]:
    """Yields a rewriter that needs no model."""
    yield by_rules


def _filled(prompt: str, item: Candidate) -> str:
    texts = {"{question}": item.problem.prompt, "{completion}": item.completion.text}
    return re.sub(r"\{(?:question|completion)\}", lambda name: texts[name[0]], prompt)  # not within the texts, too


@contextlib.contextmanager
def _by_model(config: ColdStartConfig) -> Iterator[Rewrite]:
    """Yields a rewriter that samples a model greedily."""
    from r1lite.rl.sampling import completion_seed
    from r1lite.rollout import Sampling
    from r1lite.training.loading import load_model
    from r1lite.training.resolve import resolve_config
    from r1lite.training.setup import open_engine

    wanted: dict[str, Any] = {"model": config.rewrite_model, "rollouts": None, "resume": False}
    if config.on != "local":  # this code runs on a node of the cluster
        wanted |= {"on": "local", "threads": config.engines.cpus}
    config, _ = resolve_config(type(config).model_validate({**config.model_dump(exclude_unset=True), **wanted}))
    model, tokenizer = load_model(config)
    engine, _ = open_engine(config, model, tokenizer)
    room = getattr(model.config, "max_position_embeddings", None) or 1 << 30
    if not engine.shares_weights:  # the engine was started for prompts of that length
        room = min(room, config.max_prompt_tokens + config.max_completion_tokens)
    sampling = Sampling(0.0, config.max_completion_tokens, config.stop_text)

    def ask(item: Candidate) -> list[int]:
        text = _filled(config.rewrite_prompt, item)
        if config.template == "chat":
            messages = [{"role": "user", "content": text}]
            text = render_messages(messages, tokenizer)
        return encode([text], config.template, tokenizer)[0]

    def rewrite(scored: Sequence[tuple[Candidate, Score]]) -> list[str | None]:
        asked = [ask(item) for item, _ in scored]
        fits = [n for n, ids in enumerate(asked) if ids and len(ids) + sampling.max_tokens <= room]
        seeds = [[completion_seed(config.seed, "rewrite", 0, scored[n][0].problem.id, 0)] for n in fits]
        texts: list[str | None] = [None] * len(scored)
        for n, (completion,) in zip(fits, engine.generate([asked[n] for n in fits], seeds, sampling), strict=True):
            texts[n] = (completion.text.strip() or None) if completion.finish_reason == "stop" else None
        return texts

    try:
        yield rewrite
    finally:
        engine.close()
