"""The parts of the page, other than curves, for each kind of stage."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r1lite.errors import UserError
from r1lite.report import rollouts
from r1lite.report.read import Run, read_run
from r1lite.report.rollouts import Chunk
from r1lite.report.tokens import vocabulary_of
from r1lite.run.files import json_or_empty, read_bytes
from verifiers import rows
from verifiers.yaml_text import read_yaml

_CHUNKS_OF_A_STAGE = 0.3  # share of the space for evaluations, besides rollouts
_ROWS_OF_A_SET = 400
_FACTS = (
    ("model", "model"),
    ("teacher", "teacher"),
    ("task", "task"),
    ("source", "problems"),
    ("data", "data"),
    ("reward", "reward"),
    ("advantage", "advantage"),
    ("loss", "loss"),
    ("method", "method"),
    ("lr", "learning rate"),
    ("prompts_per_step", "prompts per step"),
    ("group_size", "group size"),
    ("steps", "steps"),
    ("temperature", "temperature"),
    ("kl_coef", "KL coefficient"),
    ("engine", "engine"),
    ("device", "device"),
    ("seed", "seed"),
)


@dataclass(slots=True)
class RunParts:
    """The parts of the page of one run."""

    chunks: list[Chunk] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    steps: int = 0  # number of steps with rollouts, including those that are left out


def facts(run: Run) -> list[list[str]]:
    """Returns the facts about a run as [label, text]."""
    config = run.record.config
    shown = [[label, f"{config[key]}"] for key, label in _FACTS if config.get(key) not in (None, "")]
    for key, label in (("tokens_generated", "tokens"), ("tokens_trained_on", "tokens"), ("wall_s", "wall time")):
        value = run.summary.get(key)
        if isinstance(value, int | float):
            shown.append([label, f"{value:,.0f}" + (" s" if key == "wall_s" else "")])
    if isinstance(peak := run.summary.get("peak_rss_mib"), int | float):
        shown.append(["peak memory", f"{peak:,.0f} MiB"])
    if run.environment.get("started"):
        shown.append(["started", str(run.environment["started"])])
    versions = run.environment.get("versions")
    torch = versions.get("torch") if isinstance(versions, dict) else None
    shown.append(["versions", f"r1lite {run.environment.get('r1lite', '?')}" + (f", torch {torch}" if torch else "")])
    return shown


def chunks(run: Run, budget: int, *, whole: bool = False) -> RunParts:
    """Returns the packed completions and the parts that are specific to the stage."""
    if whole:
        budget = sys.maxsize
    if run.stage == "eval":
        return _evaluation(run, budget)
    if "steps" in run.summary and isinstance(run.summary["steps"], list):
        return _set(run, budget, None if whole else _ROWS_OF_A_SET)
    found = RunParts(steps=len(rows.step_files(run.path)))
    for step, label, path in _answers(run):
        chunk, _ = rollouts.evaluation_chunk(path, step, label, int(budget * _CHUNKS_OF_A_STAGE / 3))
        if chunk is not None and chunk.size + sum(c.size for c in found.chunks) < budget * _CHUNKS_OF_A_STAGE:
            found.chunks.append(chunk)
    vocabulary = vocabulary_of(run.path, run.record.config.get("model"))
    left = budget - sum(chunk.size for chunk in found.chunks)
    found.chunks += rollouts.step_chunks(run.path, vocabulary, left, whole=whole)
    return found


def _answers(run: Run) -> list[tuple[int, str, Path]]:
    """Returns the stored answers of evaluations; the last and the first come first, as they matter most."""
    found = rows.step_files(run.path, "evaluations")
    ranked = [*found[-1:], *found[:1], *found[1:-1]] if len(found) > 1 else found
    return [(step, f"evaluation after step {step}" if step else "evaluation before", path) for step, path in ranked]


def _evaluation(run: Run, budget: int) -> RunParts:
    path = run.path / "problems.jsonl"
    if not path.exists():
        return RunParts()
    other = run.path / "against"
    asked = run.record.config.get("against")
    if not (other / "problems.jsonl").exists() and isinstance(asked, str):
        given = Path(os.path.expanduser(asked))  # which leaves the home of an unknown user as it is
        other = given if os.path.isdir(given) else run.path.parent / given.name  # False for a name that is too long
    against = other / "problems.jsonl"
    there = against if os.path.isfile(against) else None
    chunk, table = rollouts.evaluation_chunk(path, 0, "problems", budget, there)
    extra = {
        "kind": "eval",
        "tasks": run.summary.get("tasks"),
        "comparison": run.summary.get("comparison"),
        "against": run.summary.get("against"),
        "table": table[:5000],
        "temperature": run.summary.get("temperature"),
    }
    return RunParts([chunk] if chunk else [], extra)


def _set(run: Run, budget: int, most: int | None) -> RunParts:
    manifest = run.summary
    data = manifest.get("data")
    vocabulary = vocabulary_of(run.path, None)
    kept = run.path / Path(str((data.get("file") if isinstance(data, dict) else None) or "train.jsonl")).name
    found = RunParts(
        extra={"kind": "set", **{key: manifest.get(key) for key in ("data", "steps", "pass_rates", "origin")}}
    )
    for path, label in ((kept, "kept"), (run.path / "rejected.jsonl", "rejected")):
        if path.exists():
            chunk = rollouts.set_chunk(path, label, vocabulary, budget // 2, most)
            found.chunks += [chunk] if chunk else []
    return found


def pipeline(out: Path) -> tuple[dict[str, Any], list[Run]]:
    """Returns the graph of `r1lite r1` with the facts of each stage, and the runs of started stages."""
    folder = out / "stages"
    nodes, runs = [], []
    for path in sorted(folder.glob("*.yaml")):
        name = path.stem
        record = json_or_empty(folder / f"{name}.json")
        try:
            settings = read_yaml(read_bytes(path))
        except (OSError, ValueError):
            settings = None
        inputs = _inputs(settings if isinstance(settings, dict) else {}, folder)
        run = None
        try:
            run = read_run(folder / name, name)
            runs.append(run)
        except UserError:
            pass  # not started yet, or a stage without a stored configuration
        nodes.append(
            {
                "name": name,
                "stage": record.get("stage") or (run.stage if run else "eval" if name.startswith("eval-") else "stage"),
                "from": inputs,
                "state": "finished" if record else run.status if run else "begun",
                "outcome": str(record.get("outcome") or (f"step {run.last_step}" if run else "")),
                "cpu_s": record.get("cpu_s"),
                "wall_s": record.get("wall_s"),
                "run": len(runs) - 1 if run else None,
                "report": f"stages/{name}/report.html" if (folder / name / "report.html").exists() else None,
            }
        )
    return {"nodes": nodes, "comparison": json_or_empty(out / "comparison.json") or None}, runs


def _inputs(settings: Mapping[str, Any], folder: Path) -> list[str]:
    """Returns the stages whose folders occur in the settings of a stage."""
    found = []
    for key in ("model", "teacher", "tokenizer", "data", "rollouts"):
        value = settings.get(key)
        if not isinstance(value, str):
            continue
        try:
            inside = Path(value).resolve().relative_to(folder.resolve())
        except ValueError:
            if key in ("model", "teacher"):
                found.append(Path(value).name)
            continue
        found += inside.parts[:1]
    return list(dict.fromkeys(found))
