"""Samples completions for a set, problem by problem, and then curates them like other completions.

RUN/samples/part-NNNNNN.jsonl have a row per completion, about.json describes their origin. A part is written
atomically, and every token depends only on the seed, the problem and the sample: a killed run resumes at its first
missing part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from r1lite.config import CurationConfig
from r1lite.curation.finish import Rewriting, done_already, finish, with_absolute_paths
from r1lite.curation.opening import SAMPLES, open_source, write_about
from r1lite.curation.planning import checked, evaluation_sets, make_plan, refuse_training_set
from r1lite.curation.rows import Provenance, problem_columns
from r1lite.curation.sources import Source
from r1lite.errors import UserError
from r1lite.rl.sampling import completion_seed
from r1lite.rollout import Sampling
from r1lite.run.ending import ending
from r1lite.run.files import replaced_file
from r1lite.run.model_digests import weights_digest
from r1lite.run.signals import StopSignal
from r1lite.scoring.problems import make_prompts
from r1lite.tasks import Problems, find
from r1lite.tasks import prompts as templates
from r1lite.training.resolve import resolve_config
from r1lite.training.setup import Loaded, Setup, open_run
from r1lite.types import Prompt
from verifiers import Completion

C = TypeVar("C", bound=CurationConfig)
_PART = 32  # problems in a part
_DIGITS = 6


def run_on_samples(
    config: C,
    rewriting: Rewriting | None = None,
    few_shot: Callable[[C], tuple[str, str | None]] = lambda config: ("", None),
) -> dict[str, Any]:
    """Samples from a model and curates the completions. Returns the manifest.

    Args:
        few_shot: for the resolved configuration, returns the text that is put before every prompt in sampling (but not
            in the rows' prompts), and the text that ends a completion unless the configuration sets another.

    Raises:
        UserError: a requested resource is unavailable, or a setting is invalid.
        RunError: no rows are left.
        Interrupted: a signal stopped the run; --resume continues it.
    """
    with StopSignal() as stop, stop.interruptible():
        task = find(config.task)
        checked(config, task, _NOTHING, {})  # before a model is loaded
        config, notes = resolve_config(with_absolute_paths(config))
        before, separator = few_shot(config)
        setup = open_run(config, notes, _material(before))
        try:
            if (finished := done_already(config, setup.run_dir, setup.display)) is not None:
                return finished
            problems, asked, rendered = setup.training_data
            with ending(setup.run_dir, setup.display):
                sample(config, setup, asked, rendered, separator)
                setup.engine.close()  # a rewriting model may need its memory
                source = open_source(setup.run_dir.path)
                evaluation = evaluation_sets(config, task, problems.test, source)
                plan = make_plan(config, task, source, evaluation)
                return finish(config, setup.run_dir, setup.display, plan, rewriting)
        finally:
            setup.display.finish()
            setup.close()


_NOTHING = Source("samples", Path(), (), Provenance(), {}, {})


def _material(few_shot: str) -> Any:
    """Loads the training problems: (problems, prompts for sampling, prompts without examples)."""

    def load(config: CurationConfig, problems: Problems, test: Any, model: Any, tokenizer: Any) -> Loaded:
        train = problems.train[: config.max_problems]
        task = find(config.task)
        evaluation = evaluation_sets(config, task, problems.test, None)
        refuse_training_set(evaluation, (problem.prompt for problem in train), f"--source {config.source}")
        rendered = [templates.render_problem(config.template, task.template, one.prompt, tokenizer) for one in train]
        template = few_shot + templates.TEMPLATES.get(config.template, config.template) if few_shot else config.template
        asked = make_prompts(train, config.model_copy(update={"template": template}), model, tokenizer)
        return Loaded((problems, asked, rendered), "", [("sampling", f"{len(train):,} problems x {config.samples}")])

    return load


def sample(
    config: CurationConfig, setup: Setup, asked: Sequence[Prompt], rendered: Sequence[str], separator: str | None
) -> None:
    """Samples and writes the missing parts."""
    folder = setup.run_dir.path / SAMPLES
    folder.mkdir(exist_ok=True)
    separator = separator if config.stop_text is None else None
    sampling = Sampling(config.temperature, config.max_completion_tokens, separator or config.stop_text)
    write_about(folder, provenance(config, setup, sampling.stop_text))
    starts = range(0, len(asked), _PART)
    paths = [folder / f"part-{number:0{_DIGITS}d}.jsonl" for number in range(len(starts))]
    missing = [number for number, path in enumerate(paths) if not path.exists()]

    def part(number: int) -> slice:
        return slice(starts[number], starts[number] + _PART)

    calls = (
        ([prompt.token_ids for prompt in asked[part(number)]], _seeds(asked[part(number)], config))
        for number in missing
    )
    done = len(paths) - len(missing)
    setup.display.start("sampling", len(paths))
    for place, groups in setup.engine.each(calls, sampling):
        number = missing[place]
        with (
            replaced_file(paths[number]) as aside,
            open(aside, "w", encoding="utf-8", errors="backslashreplace") as file,
        ):
            for row in rows(asked[part(number)], rendered[part(number)], groups, separator):
                file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
        done += 1
        setup.display.progress(done)
    setup.display.finish()


def _seeds(asked: Sequence[Prompt], config: CurationConfig) -> list[list[int]]:
    return [
        [completion_seed(config.seed, config.stage, 0, prompt.problem.id, g) for g in range(config.samples)]
        for prompt in asked
    ]


def rows(
    asked: Sequence[Prompt], rendered: Sequence[str], groups: Sequence[Sequence[Completion]], separator: str | None
) -> Iterator[dict[str, Any]]:
    """A row per completion, without the separator that ended it (the user's stop text is part of the completion)."""
    for prompt, text, group in zip(asked, rendered, groups, strict=True):
        for g, completion in enumerate(group):
            ended = completion.text if separator is None else completion.text.partition(separator)[0]
            yield {
                **problem_columns(prompt.problem),
                "sample": g,
                "prompt": text,
                "prefill": prompt.prefill,
                "completion": ended,
                "finish_reason": completion.finish_reason,
                "policy_version": completion.policy_version,
                "num_prompt_tokens": len(prompt.token_ids),
                "num_tokens": len(completion.token_ids),
            }


def provenance(config: CurationConfig, setup: Setup, stop_text: str | None) -> Provenance:
    """The origin of the samples."""
    if config.model is None:
        raise UserError("--model is needed to sample")
    return Provenance(
        source=config.source,
        task=config.task,
        run=setup.run_dir.path.resolve().name,
        model=config.model,
        model_hash=weights_digest(config.model),
        policy_version=0,
        engine=setup.started.name,
        engine_version=setup.started.version,
        temperature=config.temperature,
        max_tokens=config.max_completion_tokens,
        stop_text=stop_text,
        template=config.template,
        seed=config.seed,
    )
