"""Makes a plan from a configuration. Invalid settings raise UserError here, before any work is done."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from r1lite.config import CurationConfig, trust
from r1lite.curation.contamination import EvaluationSets
from r1lite.curation.scan import Plan
from r1lite.curation.sources import Source, candidate, read_block
from r1lite.errors import UserError
from r1lite.tasks import Source as TaskSource
from r1lite.tasks import Task, find, load
from r1lite.tasks.rows import SUFFIXES, read_rows
from verifiers import Problem
from verifiers.rows import RowError
from verifiers.trust import beyond_in_options

_QUESTION = ("question", "problem", "Question", "query", "instruction", "prompt", "text")
_LOOKED_AT = 1000  # rows or problems that are compared to detect a training set among the evaluation sets
_SAME = 0.9  # an evaluation set with this share of them counts as the training set


def task_of(config: CurationConfig, source: Source | None) -> Task:
    """The requested task, or by default the run's own."""
    if "task" not in config.model_fields_set and source is not None and source.config.get("task"):
        name = str(source.config["task"])
        trust.checked(trust.foreign({"task": name}), source.path / "config.yaml", trust=config.trust)
        return find(name)
    return find(config.task)


def evaluation_sets(
    config: CurationConfig, task: Task, known: Sequence[Problem] | None, source: Source | None
) -> dict[str, tuple[Problem, ...]]:
    """The evaluation problems for decontamination, by the name of their set.

    Args:
        known: the task's test problems, if they are already loaded.

    Raises: UserError for sets that can't be read.
    """
    names = config.decontaminate
    place = (
        TaskSource(config.source, config.test_source, config.test_split, config.bad_problems) if config.source else None
    )
    if place is None and source is not None and source.config.get("source"):
        made = source.config
        place = TaskSource(
            str(made["source"]),
            made.get("test_source"),
            str(made.get("test_split", "test")),
            "drop" if made.get("bad_problems") == "drop" else "error",
        )
    if names is None:
        names = ["test"] if known is not None or place is not None else []
    sets: dict[str, tuple[Problem, ...]] = {}
    for name in names:
        if name == "none":
            continue
        if name == "test":
            if known is None:
                if place is None:
                    raise UserError("--decontaminate test needs --task and --source; or name a file")
                known = load(task, place).test
            sets[f"{task.name} {place.test_split if place else 'test'}"] = tuple(known)
        else:
            path = Path(name).expanduser()
            sets[path.name if path.name not in sets else str(path)] = tuple(_problems(path))
    return sets


def _problems(path: Path) -> Iterable[Problem]:
    if not path.exists():
        raise UserError(f"--decontaminate {path}: no such file or folder (or use test, or none)")
    files = [path] if path.is_file() else sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES))
    if not files:
        raise UserError(f"--decontaminate {path}: contains no {', '.join(SUFFIXES)} file")
    for file in files:
        for number, row in enumerate(read_rows(file, ())):
            column = next((name for name in _QUESTION if isinstance(row.get(name), str)), None)
            if column is None:
                raise UserError(
                    f"--decontaminate {file}: row {number + 1} has no question ({', '.join(_QUESTION)}); it has "
                    f"{', '.join(map(str, row))}"
                )
            yield Problem(prompt=row[column], id=str(row.get("id", row.get("task_id", number))))


def make_plan(
    config: CurationConfig, task: Task, source: Source, evaluation: Mapping[str, tuple[Problem, ...]]
) -> Plan:
    """The plan. Raises UserError for unknown names, and for an evaluation set that contains the source's problems."""
    plan = checked(config, task, source, evaluation)
    refuse_training_set(evaluation, (item.problem.prompt for item in _first(source)), source.location)
    for name in config.decontaminate or []:
        path = Path(name).expanduser()
        if path.exists() and any(path.resolve() == file.resolve() for file in source.files if isinstance(file, Path)):
            raise UserError(f"--decontaminate {name} is the same as --rollouts: no rows would be left")
    return plan


def checked(config: CurationConfig, task: Task, source: Source, evaluation: Mapping[str, tuple[Problem, ...]]) -> Plan:
    """The plan, without reading the source's rows, which need not exist yet."""
    if config.dedup == "near" and importlib.util.find_spec("rensa") is None:
        raise UserError("--dedup near needs rensa: pip install 'r1lite[curate]' (or use --dedup exact)")
    made = source.reward.get("options")
    options: dict[str, Any] = dict(made) if isinstance(made, dict) else {}
    named = {name: given for name, given in options.items() if name not in config.verifiers}
    trust.checked(beyond_in_options(named), source.path / "reward.json", trust=config.trust)
    options |= {name: dict(given) for name, given in config.verifiers.items()}
    plan = Plan(
        source=source,
        correct=task.correct if config.correct is None else config.correct,
        options=options,
        filters=tuple(config.filters),
        evaluation=dict(evaluation),
        ngram=config.contamination_ngram,
        share=config.contamination_share,
        near=config.dedup == "near",
        keep_rejects=config.keep_rejects or config.pairs > 0,
        format=config.format,
        seed=config.seed,
        score_workers=config.score_workers,
        score_timeout_s=config.score_timeout_s,
    )
    try:
        plan.reward()
    except ValueError as error:
        raise UserError(f"--correct: {error}") from error
    used = {name for link in plan.chain() if link.verifier is not None for name in link.verifier.verifiers}
    if unused := sorted(set(config.verifiers) - used):
        raise UserError(f"verifiers: '{unused[0]}' is neither in --correct nor in --filters ({', '.join(used)})")
    return plan


def refuse_training_set(evaluation: Mapping[str, tuple[Problem, ...]], questions: Iterable[str], what: str) -> None:
    """Raises UserError if an evaluation set contains nearly all of these questions, word for word."""
    asked = list(dict.fromkeys(itertools.islice(questions, _LOOKED_AT)))
    for name, problems in evaluation.items():
        found = EvaluationSets(2, 1.0)
        found.add(name, problems)
        same = sum(found.repeats(question) for question in asked)
        if asked and same >= _SAME * len(asked):
            raise UserError(
                f"--decontaminate: {same} of the first {len(asked)} problems of {what} are in the evaluation set "
                f"'{name}', word for word: is it the training set?"
            )


def _first(source: Source) -> Iterable[Any]:
    for _, row in itertools.islice(
        itertools.chain.from_iterable(read_block(block) for block in source.blocks), _LOOKED_AT
    ):
        try:
            yield candidate(row, source)
        except (RowError, ValueError, TypeError):  # counted as unreadable later
            continue


def version_warnings(plan: Plan) -> list[str]:
    """Warnings for verifiers whose version differs from the one that judged the completions in the run."""
    before = dict(plan.source.reward.get("versions") or {})
    if not before:
        row = next((row for block in plan.source.blocks for _, row in read_block(block)), None)
        verdicts = row.get("verdicts") if isinstance(row, dict) else None
        before = {
            str(verdict.get("verifier")): str(verdict.get("version"))
            for verdict in (verdicts if isinstance(verdicts, list) else [])
            if isinstance(verdict, dict)
        }
    now = plan.versions()
    return [
        f"version {version} of '{name}' judged the completions, this is version {now[name]}: all are verified again"
        for name, version in sorted(before.items())
        if name in now and now[name] != version
    ]
