"""The files of a pipeline's step: its run directory, its state and its results.

OUT/stages/NAME/        its run directory
OUT/stages/NAME.yaml    its configuration: `r1lite STAGE NAME.yaml --out DIR` runs it alone
OUT/stages/NAME.log     its output
OUT/stages/NAME.progress its progress, while it runs
OUT/stages/NAME.json    written when it is finished: its results and its cost
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from r1lite.errors import RunError, UserError
from r1lite.nano import MODELS
from r1lite.pipeline.graph import INPUTS, KINDS, Graph, Step
from r1lite.run.files import read_json, write_json, write_text
from r1lite.run.model_digests import WEIGHTS, files_digest
from verifiers.yaml_text import read_yaml

# By product: the files that make it what it is.
_PARTS = {"model": WEIGHTS, "data": ("*.jsonl*", "*.parquet"), "rollouts": ("rollouts/*",)}


@dataclass(frozen=True, slots=True)
class StepFiles:
    """The paths of a step's files."""

    folder: Path  # OUT/stages
    name: str

    @property
    def run(self) -> Path:
        """The run directory."""
        return self.folder / self.name

    def file(self, suffix: str) -> Path:
        """A file beside the run directory."""
        return self.folder / f"{self.name}.{suffix}"

    def record(self) -> dict[str, Any] | None:
        """The record of the finished step, or None."""
        path = self.file("json")
        if not path.exists():
            return None
        try:
            found: dict[str, Any] = read_json(path)
            if lacking := {"stage", "made", "outcome", "cpu_s", "wall_s"} - set(found):
                raise UserError(f"{path}: damaged: {', '.join(sorted(lacking))} missing")
        except UserError as error:
            raise UserError(f"{error}; remove the file to have the stage checked or resumed again") from error
        return found


def values_of(step: Step, graph: Graph, folder: Path) -> dict[str, Any]:
    """The step's configuration, with its inputs as paths. The stages of its inputs must be finished."""
    inputs = {name: _made(graph, folder, source, name) for name, source in step.inputs.items()}
    return {**step.settings, **inputs}


def check_finished(graph: Graph, folder: Path) -> None:
    """Raises UserError if a finished step has other settings than the recipe's, or its products or inputs changed."""
    records = {name: StepFiles(folder, name).record() for name in graph.steps}
    for name, record in records.items():
        if record is None:
            continue
        step, files = graph.steps[name], StepFiles(folder, name)
        repeat = f"remove {folder}/{name}* and what builds on it, to have it made again"
        for other in step.needs & set(graph.steps):
            if records[other] is None:
                raise UserError(f"stage '{name}' is finished, but '{other}', which it builds on, is not: {repeat}")
        for what in record["made"]:
            made = Path(_made_path(folder, name, record, what))
            if not made.exists():
                raise UserError(f"stage '{name}' is finished, but {made} is gone: restore it, or {repeat}")
            kept = record.get("digests", {}).get(what)
            if kept is not None and kept != files_digest(made, _PARTS[what]):
                raise UserError(f"the {what} that stage '{name}' made in {made} changed: restore it, or {repeat}")
        prepare(step, values_of(step, graph, folder), files)


def prepare(step: Step, values: Mapping[str, Any], files: StepFiles) -> dict[str, str]:
    """Writes the step's recipe.

    Returns: the inputs whose path differs from the recipe before, as the pipeline's folder was moved or copied.

    Raises:
        UserError: the step was begun with another recipe.
    """
    text = yaml.safe_dump(dict(values), sort_keys=True, allow_unicode=True)
    path = files.file("yaml")
    moved: dict[str, str] = {}
    if path.exists() and path.read_bytes() != text.encode():
        try:
            before = dict(read_yaml(path.read_bytes()) or {})
        except (ValueError, TypeError) as error:
            raise UserError(f"{path}: damaged: {error}; remove it to have it written again") from error
        keys = sorted(key for key in {*before, *values} if before.get(key) != values.get(key))
        moved = {key: values[key] for key in keys if _is_moved(str(before.get(key)), values.get(key), step, key)}
        keys = [key for key in keys if key not in moved]
        shown = "; ".join(f"{key}: {before.get(key)} became {values.get(key)}" for key in keys)
        if keys:
            raise UserError(
                f"stage '{step.name}' was begun with other settings ({shown}). Choose a new --out, or remove "
                f"{files.folder}/{step.name}* and the stages that build on it"
            )
    write_text(path, text)
    return moved


def move_inputs(path: Path, moved: Mapping[str, str]) -> None:
    """Changes the paths in the config.yaml of a run that is resumed, which compares what lies there by its digests."""
    try:
        values = {**read_yaml(path.read_bytes()), **moved}
    except (OSError, ValueError, TypeError):  # no such file, or a damaged one, which the stage reports
        return
    write_text(path, yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


def _is_moved(before: str, now: Any, step: Step, key: str) -> bool:
    """True if an input is the same product of the same stage, in a pipeline's folder of another place."""
    source = step.inputs.get(key)
    return source is not None and f"/stages/{source}" in before and _below(source, before) == _below(source, str(now))


def finish(step: Step, files: StepFiles, *, cpu_s: float, wall_s: float) -> dict[str, Any]:
    """Records that the step is finished, with its results. Raises RunError if results are missing."""
    made: dict[str, str] = {}
    summary = _summary(step, files.run)
    for what in KINDS[step.kind].makes:
        if what == "model":
            made[what] = step.name if step.kind == "pretrain" else _below(step.name, str(summary["checkpoint"]))
        else:
            made[what] = step.name
    missing = [path for path in made.values() if not (files.folder / path).exists()]
    if missing:
        raise RunError(f"stage '{step.name}' ended without an error but wrote no {files.folder / missing[0]}")
    record = {
        "stage": step.kind,
        "made": made,
        "digests": {what: files_digest(files.folder / path, _PARTS[what]) for what, path in made.items()},
        "outcome": _outcome(step, summary),
        "cpu_s": round(cpu_s, 1),
        "wall_s": round(wall_s, 1),
    }
    write_json(files.file("json"), record)
    return record


def _made(graph: Graph, folder: Path, source: str, name: str) -> str:
    if source in graph.models:
        model = graph.models[source]
        return str(Path(model).resolve()) if model not in MODELS and Path(model).exists() else model
    record = StepFiles(folder, source).record()
    assert record is not None, f"{source} is not finished"
    return _made_path(folder, source, record, INPUTS[name])


def _made_path(folder: Path, name: str, record: Mapping[str, Any], what: str) -> str:
    return str(folder / _below(name, str(record["made"][what])))  # with the whole path in earlier versions


def _below(name: str, path: str) -> str:
    """The path of a stage's file below OUT/stages: the place of OUT may have changed since it was noted."""
    below = f"/stages/{name}"
    return name + path.rpartition(below)[2] if below in path else path


def _summary(step: Step, run: Path) -> dict[str, Any]:
    name = {"reject": "manifest", "cold-start": "manifest", "pretrain": None}.get(step.kind, "summary")
    if name is None:
        return {}
    path = run / f"{name}.json"
    if not path.exists():
        raise RunError(f"stage '{step.name}' ended without an error but wrote no {path}")
    try:
        found: dict[str, Any] = read_json(path)
    except UserError as error:
        raise RunError(f"{error}; remove {run} to repeat the stage") from error
    return found


def _outcome(step: Step, summary: Mapping[str, Any]) -> str:
    """One line for the status table."""
    if "eval_after" in summary:
        after, before = summary["eval_after"], summary.get("eval_before")
        if after is None:
            return f"{summary['steps']} steps, not evaluated"
        start = f"{before['pass_at_1']:.1%} -> " if before else ""
        return f"greedy {start}{_share(after)}, {summary['steps']} steps"
    if "data" in summary:
        return f"{summary['data']['rows']:,} rows of {summary['data']['problems']:,} problems"
    if "tasks" in summary:
        return ", ".join(f"{task} {_share(found)}" for task, found in summary["tasks"].items())
    return "a new model"


def _share(measured: Mapping[str, Any]) -> str:
    return f"{measured['pass_at_1']:.1%} of {measured['problems']:,} problems"
