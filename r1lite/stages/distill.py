"""`r1lite distill`: trains a smaller model to imitate a larger one."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from r1lite.config import DistillConfig
from r1lite.config.distill import SHAPED
from r1lite.curation.generate import run_on_samples
from r1lite.errors import UserError
from r1lite.model.policy import Policy
from r1lite.run.model_digests import weights_digest
from r1lite.run.signals import StopSignal
from r1lite.scoring.problems import make_prompts
from r1lite.supervised.distillation import Distilling, check_one_tokenizer, load_student, load_teacher
from r1lite.supervised.loop import FineTuning, RowOrder, make_learner
from r1lite.supervised.sft.encode import load_set
from r1lite.supervised.sft.tokens import TokenRows
from r1lite.tasks import Problems
from r1lite.training.loading import forward_dtype
from r1lite.training.on_problems import run_training
from r1lite.training.setup import Loaded, Setup
from r1lite.types import Prompt

_TRAJECTORIES = "trajectories"
_TRIED = 50  # number of problems that both tokenizers must split into the same tokens


def run(config: DistillConfig) -> dict[str, Any]:
    """Trains the student and evaluates it before and after; see `training.run_training`."""
    if config.student_shape and config.model is None:
        config = config.model_copy(update={"model": SHAPED})
    return run_training(config, _make_loop, _material, load_student)


@dataclass(frozen=True, slots=True)
class _Material:
    """Inputs of the training."""

    problems: Problems
    rows: TokenRows | None  # of --data
    teacher: Any  # the model; only for on-policy distillation
    prompts: list[Prompt]  # prompts for the student


def _material(config: DistillConfig, problems: Problems, test: list[Prompt], model: Any, tokenizer: Any) -> Loaded:
    """Loads the set of --data, and the teacher if its probabilities are needed. Raises UserError."""
    found = Loaded(None, "")
    if config.data is not None and config.needs_set:
        found = load_set(config, problems, test, model, tokenizer)
    lines, results, teacher, prompts = list(found.lines), dict(found.results), None, list[Prompt]()
    if config.method == "on-policy":
        teacher, theirs = load_teacher(config)
        if config.on_policy_share > 0:
            prompts = make_prompts(problems.train[: config.max_problems], config, model, tokenizer)
        check_one_tokenizer(config, tokenizer, theirs, [prompt.text for prompt in (prompts or test)[:_TRIED]])
        _check_context(config, teacher)
    if config.teacher is not None:
        size = sum(p.numel() for p in model.parameters())
        facts: dict[str, Any] = {"model": config.teacher, "model_hash": weights_digest(config.teacher)}
        text = config.teacher
        if teacher is not None:
            facts["parameters"] = sum(p.numel() for p in teacher.parameters())
            text += f", {facts['parameters'] / size:.1f} times the student's parameters"
        lines.append(("teacher", text))
        results["teacher"] = facts
    value = _Material(problems, found.value, teacher, prompts)
    return dataclasses.replace(found, value=value, lines=lines, results=results)


def _make_loop(config: DistillConfig, setup: Setup, stop: StopSignal) -> FineTuning | Distilling:
    training_data: _Material = setup.training_data
    rows = training_data.rows
    if config.needs_set and rows is None:
        rows = _sampled_rows(config, setup, training_data.problems)
    if config.method == "off-policy":
        assert rows is not None
        order = RowOrder.of(config, len(rows))
        return FineTuning(config, rows, make_learner(config, setup, order), order, setup.engine)
    theirs = config.rows_per_step - config.own_rows
    order = (
        RowOrder.of(config.model_copy(update={"rows_per_step": theirs}), len(rows))
        if rows is not None and theirs
        else RowOrder.of(config, len(training_data.prompts))
    )
    teacher = Policy(training_data.teacher, pad_id=setup.engine.pad_id, dtype=forward_dtype(config))
    return Distilling(
        config=config,
        setup=setup,
        learner=make_learner(config, setup, order, teacher=teacher),
        teacher=teacher,
        prompts=training_data.prompts,
        rows=rows if theirs else None,
        order=order,
        stop=stop,
    )


def _sampled_rows(config: DistillConfig, setup: Setup, problems: Problems) -> TokenRows:
    """Samples right completions of the teacher into the run directory; a resumed run continues this."""
    place = setup.run_dir.path / _TRAJECTORIES
    asked = config.reject_config(str(place))
    run_on_samples(asked.model_copy(update={"resume": (place / "config.yaml").exists()}))
    given = config.model_copy(update={"data": str(place), "long_rows": "drop"})
    found = load_set(given, problems, [], setup.model, setup.tokenizer)
    for label, text in found.lines:
        setup.display.line(label, text)
    setup.run_dir.write_result("set", found.results["set"])
    rows: TokenRows = found.value
    return rows


def _check_context(config: DistillConfig, teacher: Any) -> None:
    context = getattr(teacher.config, "max_position_embeddings", None)
    if context is not None and context < config.max_completion_tokens + 1:
        raise UserError(
            f"--teacher {config.teacher}: its context of {context} tokens is too short for --max-completion-tokens "
            f"{config.max_completion_tokens}"
        )
