"""`r1lite eval`: evaluates a model on one or several tasks, and compares it with another model."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from r1lite.config import EvalConfig, WatchdogConfig, dump
from r1lite.distributed.joining import joined
from r1lite.distributed.together import from_main
from r1lite.distributed.world import World
from r1lite.errors import UserError
from r1lite.evaluation.comparison import (
    Keys,
    Rows,
    check_same,
    compare,
    identity,
    is_eval_dir,
    keys_of,
    read_rows,
    rows_of,
    write_rows,
)
from r1lite.evaluation.measure import breakdown, measure, summarize
from r1lite.report import report_at_end
from r1lite.run.display import Display, percent
from r1lite.run.files import read_json
from r1lite.run.places import path_to_resume
from r1lite.run.signals import StopSignal
from r1lite.scoring.problems import load_problems, make_prompts, try_scorer, without_long
from r1lite.scoring.scorer import Scorer, make_scorer
from r1lite.tasks import find
from r1lite.training.machine import check_model, located
from r1lite.training.resolve import resolve_config
from r1lite.training.settings_shown import show_dropped
from r1lite.training.setup import Setup, open_run
from r1lite.training.several import refuse
from r1lite.types import Prompt

_FEWEST = 10  # fewest problems for which an interval of a difference is shown
# Settings by which a model that is measured for a comparison gets the same problems and the same number of completions.
_SAME = ("source", "test_source", "test_split", "eval_problems", "eval_samples", "eval_sample_problems")
_MOST_PARTS = 15  # values of difficulty or source shown; summary.json has all
INTERVALS = (
    "95 %: rates by Wilson's formula, with the effective number of trials of the problems' means; differences by "
    "bootstrap over problems"
)


def run(config: EvalConfig) -> dict[str, Any]:
    """Evaluates a model; writes the results to summary.json and every completion to problems.jsonl.

    All checks run before anything is sampled. A model to compare with is evaluated afterwards on the same problems,
    into the folder `against` of the run directory.

    With several ranks, each samples its share of the problems, and the main rank writes the results.

    Returns: the summary.

    Raises:
        UserError: a requested resource is unavailable, or a setting is refused.
        RunError: too many completions could not be judged.
        Interrupted: a signal stopped the command.
    """
    limits = WatchdogConfig()
    with joined(device=config.device, start_s=limits.stall_load_s, limit_s=limits.stall_rank_s, wait_s=0) as ranks:
        return _run(config, ranks.world)


def _run(
    config: EvalConfig, world: World, tasks: Sequence[EvalConfig] = (), same: Keys | None = None
) -> dict[str, Any]:
    """See `run`.

    Args:
        tasks: the configuration of each task; by default made from `config`.
        same: the problems of the evaluation that this one is made for; others are refused.
    """
    if config.resume:
        return from_main(world, lambda: _finished(config))
    other = _other(config)
    asked = from_main(world, lambda: [resolve_config(one) for one in tasks or _each_task(config)])
    for settled, _ in asked:
        refuse(settled, world.size)
    setup = open_run(*asked[0], world=world)
    try:
        jobs = _jobs([one for one, _ in asked], setup)
        settled = jobs[0].config.model_copy(update={"task": ",".join(config.tasks), "source": config.source})
        setup.run_dir.rewrite_config(dump(settled if len(jobs) > 1 else jobs[0].config))
        keys = {job.task: [(p.problem.id, identity(p.problem)) for p in job.prompts] for job in jobs}
        if isinstance(other, dict):
            check_same(keys, keys_of(other), config.against)
        if same is not None:
            check_same(same, keys, config.model)
        with StopSignal() as stop:
            stop.world = world
            setup.engine.interruptible(stop.interruptible)
            measured, rows = _measured(jobs, setup, stop)
        setup.engine.close()  # another model may need the memory
        summary = {
            "tasks": measured,
            "model": jobs[0].config.model,
            "device": jobs[0].config.device,
            "temperature": config.eval_temperature,
            "seed": config.seed,
            "intervals": INTERVALS,
            "against": config.against,
            "comparison": None,
        }
        if world.is_main:
            write_rows(setup.run_dir.path, rows)
        setup.run_dir.write_result("summary", summary)
        if other is not None:
            against = other if isinstance(other, dict) else _against(other, config, jobs, keys, setup)
            summary["comparison"] = {task: compare(against[task], rows[task]) for task in rows}
            setup.run_dir.write_result("summary", summary)
        _show(summary, setup)
        if config.report and world.is_main:
            report_at_end(setup.run_dir.path, setup.display.say)
        return summary
    except BaseException:
        if not (setup.run_dir.path / "summary.json").exists():
            setup.run_dir.discard()  # an evaluation can't be resumed, so --out must be free for the next try
        raise
    finally:
        setup.display.finish()
        setup.close()


def _finished(config: EvalConfig) -> dict[str, Any]:
    """Prints and returns the summary of a finished evaluation. Raises UserError for any other."""
    path = path_to_resume(config.out, config.stage)
    if not is_eval_dir(path):
        raise UserError(
            f"--resume: {path} holds an interrupted evaluation, which can't be resumed: start it again with the same "
            "command without --resume"
        )
    try:
        summary: dict[str, Any] = read_json(path / "summary.json")
    except UserError as error:
        raise UserError(f"{error}; remove {path} and evaluate again") from error
    display = Display(loudness=config.verbose - config.quiet)
    display.say("this evaluation is finished already")
    if config.report:
        report_at_end(path, display.say, if_missing=True)
    display.console.print(results(summary))
    _show_comparison(summary, display)
    if summary["against"] and not summary["comparison"]:
        display.say(_not_compared(summary["against"], path))
    return summary


@dataclass(frozen=True, slots=True)
class _Job:
    """One task that is ready for evaluation."""

    task: str
    config: EvalConfig
    scorer: Scorer
    prompts: list[Prompt]


def _each_task(config: EvalConfig) -> list[EvalConfig]:
    """Returns a configuration for each task, with its own source. Raises UserError."""
    names = config.tasks
    if not names or len(set(names)) != len(names):
        raise UserError(f"--task {config.task}: name one task, or several different tasks such as gsm8k,svamp")
    for name in names:
        find(name)
    if len(names) == 1:
        return [config.model_copy(update={"task": names[0]})]
    if config.test_source is not None or (config.source and "=" not in config.source and Path(config.source).exists()):
        raise UserError(
            "--source and --test-source with one file are for one task; with several tasks, name the source of each: "
            f"--source {','.join(f'{name}=PATH' for name in names)}"
        )
    own = dict.fromkeys(names, config.source)
    if config.source and "=" in config.source:
        own = dict.fromkeys(names)
        for part in config.source.split(","):
            name, _, place = part.partition("=")
            if name not in own or not place:
                raise UserError(f"--source {config.source}: '{part}' is no TASK=PATH of {', '.join(names)}")
            own[name] = place
    return [
        config.model_copy(update={"task": name, **({"source": place} if place else {"source": None})})
        for name, place in own.items()
    ]


def _jobs(configs: list[EvalConfig], setup: Setup) -> list[_Job]:
    """Loads the tasks; the first is that of `setup`, and the others share its model."""
    jobs = [_Job(configs[0].task, configs[0], setup.scorer, setup.test)]
    for config in configs[1:]:
        scorer = make_scorer(find(config.task), config)
        problems = load_problems(find(config.task), config, scorer)
        for doubt in try_scorer(find(config.task), config, scorer, problems):
            setup.display.line("warning", doubt)
        problems = without_long(problems, config, setup.model, setup.tokenizer)
        show_dropped(setup.display, problems)
        chosen = problems.test[: config.tested_problems]
        jobs.append(_Job(config.task, config, scorer, make_prompts(chosen, config, setup.model, setup.tokenizer)))
        setup.display.line("problems", f"{problems.origin}: {len(problems.test):,} to test")
    return jobs


def _measured(jobs: list[_Job], setup: Setup, stop: StopSignal) -> tuple[dict[str, Any], Rows]:
    measured: dict[str, Any] = {}
    rows: Rows = {}
    for job in jobs:
        config, scorer = job.config, job.scorer
        setup.display.start(f"measuring {job.task}", 1)
        with contextlib.closing(scorer):
            solved = measure(
                setup.engine,
                job.prompts,
                scorer,
                config,
                setup.display.progress,
                temperature=config.eval_temperature,
                seed=config.seed,
                world=setup.world,
                around=functools.partial(stop.interruptible, together=setup.engine.together),
                scored=setup.display.scored,
            )
            found = summarize(solved, scorer, k=config.eval_samples, votes=config.maj_at)
        setup.display.finish()
        rows[job.task] = rows_of(job.task, solved)
        measured[job.task] = {
            **found,
            "correct": scorer.correct.formula,
            "versions": dict(scorer.correct.versions),
            "source": config.source,
            "by_difficulty": breakdown(solved, "difficulty"),
            "by_source": breakdown(solved, "source"),
        }
    return measured, rows


def _other(config: EvalConfig) -> Rows | str | None:
    """Returns what to compare with: the rows of an evaluation or the name of a model. Raises UserError."""
    if config.against is None:
        return None
    path = Path(config.against).expanduser()
    if is_eval_dir(path):
        return read_rows(path)
    if path.is_dir() and not any((path / name).exists() for name in ("config.json", "checkpoints")):
        raise UserError(
            f"--against {config.against}: neither a finished evaluation (problems.jsonl, summary.json) nor a model "
            "(config.json)"
        )
    check_model(config.against)
    return located(config.against)


def _against(other: str, config: EvalConfig, jobs: Sequence[_Job], keys: Keys, setup: Setup) -> Rows:
    """Evaluates the model to compare with on the problems of `jobs`, and returns its rows."""
    place = setup.run_dir.path / "against"
    config = config.model_copy(update={"model": other, "against": None, "out": str(place), "report": False})
    tasks = [
        config.model_copy(update={"task": job.task, **{name: getattr(job.config, name) for name in _SAME}})
        for job in jobs
    ]
    try:
        _run(config, setup.world, tasks, keys)
    except BaseException:
        setup.display.say(_not_compared(other, setup.run_dir.path))
        raise
    return from_main(setup.world, lambda: read_rows(place))


def _not_compared(other: str, path: Path) -> str:
    return (
        f"{path} holds this model's results, but the comparison with {other} was not made; to make it: "
        f"r1lite eval --model {other} --against {path}, with the same --task and problems"
    )


def _show(summary: dict[str, Any], setup: Setup) -> None:
    display = setup.display
    display.console.print(results(summary))
    if display.loudness >= 0:
        for task, found in summary["tasks"].items():
            for table in parts(task, found):
                display.console.print(table)
            display.examples(None, found)
    _show_comparison(summary, display)
    display.console.print(f"run       {setup.run_dir.path}: summary.json, problems.jsonl")


def _show_comparison(summary: dict[str, Any], display: Display) -> None:
    if summary["comparison"]:
        display.console.print(comparison(summary["against"], summary["comparison"]))


def results(summary: dict[str, Any]) -> Table:
    """A column per task of an evaluation: rates in percent with their 95 % intervals."""
    tasks, temperature = summary["tasks"], summary["temperature"]
    table = _table(f"Test problems, {summary['model']}")
    for name in ("", *tasks):
        table.add_column(name, justify="right" if name else "left")
    every = list(tasks.values())
    sampled = f"T={temperature:g}"
    for label, key in (
        ("greedy", "pass_at_1"),
        (f"accuracy, {sampled}", "sampled_accuracy"),
        (f"{_headed('pass', every, 'k')}, {sampled}", "pass_at_k"),
        (f"{_headed('maj', every, 'votes')}, {sampled}", "maj_at_k"),
    ):
        table.add_row(label, *(_rate(found, key) for found in every))
    table.add_row("format", *(percent(found["format_rate"]) for found in every))
    table.add_row("tokens", *(f"{found['mean_tokens']:.1f}" for found in every))
    table.add_row("problems", *(f"{found['problems']:,}" for found in every))
    table.add_row("... sampled", *(f"{found['sampled_problems']:,}" for found in every))
    table.add_row("unscored completions", *(str(found["unscored"]) for found in every))
    return table


def parts(task: str, measured: dict[str, Any]) -> list[Table]:
    """Results by difficulty and by source, if the problems have them."""
    tables = []
    for key in ("difficulty", "source"):
        rows = measured[f"by_{key}"]
        if not 1 < len(rows) <= _MOST_PARTS:
            continue
        table = _table(f"{task} by {key}")
        for name in (key, "problems", "greedy", "sampled"):
            table.add_column(name, justify="left" if name == key else "right")
        for value, part in rows.items():
            table.add_row(value, str(part["problems"]), _rate(part, "pass_at_1"), _rate(part, "sampled_accuracy"))
        tables.append(table)
    return tables


def comparison(against: str, compared: dict[str, dict[str, Any]]) -> Table:
    """This model compared with the other one on the same problems: a column per task and way of sampling."""
    shown = [
        (task, kind, both[kind]) for task, both in compared.items() for kind in ("greedy", "sampled") if both[kind]
    ]
    table = _table(f"Compared with {against}, problem by problem")
    for name in ("", *(f"{task}, {kind}" for task, kind, _ in shown)):
        table.add_column(name, justify="right" if name else "left")
    every = [one for *_, one in shown]
    table.add_row("that one", *(f"{one['against']:.1%}" for one in every))
    table.add_row("this one", *(f"{one['this']:.1%}" for one in every))
    table.add_row("difference", *(f"{100 * one['difference']:+.1f}" for one in every))
    table.add_row("... 95 %", *map(_interval, every))
    table.add_row("better / worse on", *(f"{one['b_only']} / {one['a_only']} of {one['problems']}" for one in every))
    table.add_row("p", *(f"{one['p_value']:.2g}" for one in every))
    table.add_row("test", *(one["test"] for one in every))
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold")


def _headed(name: str, every: list[dict[str, Any]], key: str) -> str:
    sizes = {found[key] for found in every}
    return f"{name}@{sizes.pop()}" if len(sizes) == 1 else f"{name}@k"


def _rate(measured: dict[str, Any], key: str) -> str:
    if measured[key] is None:
        return "-"
    low, high = measured[f"{key}_interval"]
    return f"{measured[key]:.1%} ({100 * low:.1f}-{100 * high:.1f})"


def _interval(measured: dict[str, Any]) -> str:
    """The interval as text, unless there are too few or only equal differences: then a bootstrap is too narrow."""
    if measured["problems"] < _FEWEST or measured["low"] == measured["high"]:
        return "too few"
    return f"{100 * measured['low']:+.1f} to {100 * measured['high']:+.1f}"
