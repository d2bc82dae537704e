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
from verifiers.yaml_text import read_yaml


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


def prepare(step: Step, values: Mapping[str, Any], files: StepFiles) -> None:
    """Writes the step's recipe. Raises UserError if the step was begun with another recipe."""
    text = yaml.safe_dump(dict(values), sort_keys=True, allow_unicode=True)
    path = files.file("yaml")
    if path.exists() and path.read_bytes() != text.encode():
        try:
            before = dict(read_yaml(path.read_bytes()) or {})
        except (ValueError, TypeError) as error:
            raise UserError(f"{path}: damaged: {error}; remove it to have it written again") from error
        keys = sorted(key for key in {*before, *values} if before.get(key) != values.get(key))
        shown = "; ".join(f"{key}: {before.get(key)} became {values.get(key)}" for key in keys)
        raise UserError(
            f"stage '{step.name}' was begun with other settings ({shown}). Choose a new --out, or remove "
            f"{files.folder}/{step.name}* and the stages that build on it"
        )
    write_text(path, text)


def finish(step: Step, files: StepFiles, *, cpu_s: float, wall_s: float) -> dict[str, Any]:
    """Records that the step is finished, with its results. Raises RunError if results are missing."""
    made: dict[str, str] = {}
    summary = _summary(step, files.run)
    for what in KINDS[step.kind].makes:
        if what == "model":
            made[what] = str(files.run if step.kind == "pretrain" else summary["checkpoint"])
        else:
            made[what] = str(files.run)
    missing = [path for path in made.values() if not Path(path).exists()]
    if missing:
        raise RunError(f"stage '{step.name}' ended without an error but wrote no {missing[0]}")
    record = {
        "stage": step.kind,
        "made": made,
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
    path: str = record["made"][INPUTS[name]]
    return path


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
