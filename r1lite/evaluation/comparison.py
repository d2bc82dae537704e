"""Writes, reads and compares the rows of evaluations: `r1lite eval --against` compares the same problems in pairs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r1lite.errors import UserError
from r1lite.evaluation.intervals import paired
from r1lite.evaluation.measure import Solved
from r1lite.run.files import replaced_file
from verifiers import Problem

FILE = "problems.jsonl"  # a row per problem, with every completion and its verdict
Rows = dict[str, list[dict[str, Any]]]  # by task
Keys = dict[str, list[tuple[str, str]]]  # by task: (id, identity) of each problem


def rows_of(task: str, solved: Sequence[Solved]) -> list[dict[str, Any]]:
    """The saved rows of a task's problems."""
    return [
        {
            "task": task,
            "problem_id": one.problem.id,
            "problem": identity(one.problem),
            "question": one.problem.prompt,
            "gold": one.problem.answer,
            "difficulty": one.problem.meta.get("difficulty"),
            "source": one.problem.meta.get("source"),
            "greedy": None if one.greedy is None else dataclasses.asdict(one.greedy),
            "samples": [dataclasses.asdict(sample) for sample in one.samples],
        }
        for one in solved
    ]


def identity(problem: Problem) -> str:
    """A hash of the question, its answer and its tests."""
    tests = json.dumps(problem.tests, sort_keys=True, default=str)
    text = "\x1f".join((problem.prompt, problem.answer or "", tests))
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()


def write_rows(path: Path, rows: Rows) -> None:
    """Writes FILE into a run directory."""
    with replaced_file(path / FILE) as aside, open(aside, "w", encoding="utf-8", errors="backslashreplace") as file:
        for part in rows.values():
            for row in part:
                file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, default=str) + "\n")


def is_eval_dir(path: Path) -> bool:
    """True for the folder of a finished `r1lite eval`."""
    return (path / FILE).exists() and (path / "summary.json").exists()


def read_rows(path: Path) -> Rows:
    """The rows of an evaluation. Raises UserError."""
    rows: Rows = {}
    try:
        with open(path / FILE, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                rows.setdefault(row["task"], []).append(row)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"--against {path}: {FILE} can't be read: {type(error).__name__}: {error}") from error
    return rows


def keys_of(rows: Rows) -> Keys:
    """What identifies the problems of an evaluation."""
    return {task: [(row["problem_id"], row["problem"]) for row in part] for task, part in rows.items()}


def check_same(asked: Keys, other: Keys, against: object) -> None:
    """Raises UserError unless the other evaluation, of `against`, has the asked problems, in the same order."""
    for task, problems in asked.items():
        if task not in other:
            raise UserError(f"--against {against}: has no {task}, only {', '.join(other)}; evaluate {task} there too")
        found = other[task]
        if len(problems) != len(found):
            raise UserError(
                f"--against {against}: has {len(found)} problems of {task}, this one {len(problems)}; evaluate the "
                "same problems, with the same --source, --eval-problems and --eval-sample-problems"
            )
        if problems != found:
            name = next(mine[0] for mine, its in zip(problems, found, strict=True) if mine != its)
            raise UserError(
                f"--against {against}: has other problems of {task} (the first one: '{name}'); evaluate the same "
                "problems, with the same --source, --test-source and --test-split"
            )


def compare(a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The difference b - a on the same problems, greedily and for the samples' mean; see `intervals.paired`.

    Problems that are unscored on either side are left out. A part without common problems is None.
    """
    pairs = list(zip(a, b, strict=True))
    greedy = [
        (float(x["greedy"]["correct"]), float(y["greedy"]["correct"]))
        for x, y in pairs
        if x["greedy"] and y["greedy"] and None not in (x["greedy"]["correct"], y["greedy"]["correct"])
    ]
    sampled = [(x, y) for x, y in ((_mean(x), _mean(y)) for x, y in pairs) if x is not None and y is not None]
    return {"greedy": _paired(greedy), "sampled": _paired(sampled)}


def learnt(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], most: int = 3) -> list[dict[str, Any]]:
    """Some problems with the greedy answers before and after: those that were learnt, or else answers that changed."""
    found = []
    others = {(row["problem_id"], row["problem"]): row for row in before}  # a user's ids may repeat
    for row in after:
        then, now = others.get((row["problem_id"], row["problem"]), {}).get("greedy"), row["greedy"]
        if then and now and then["text"] != now["text"]:
            won = bool(now["correct"]) - bool(then["correct"])
            pair = {"before": _said(then), "after": _said(now)}
            found.append((-won, {"question": row["question"], "gold": row["gold"], **pair}))
    return [pair for _, pair in sorted(found, key=lambda item: item[0])[:most]]


def _said(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: answer[key] for key in ("text", "correct")}


def _paired(values: Sequence[tuple[float, float]]) -> dict[str, Any] | None:
    if not values:
        return None
    before, after = [x for x, _ in values], [y for _, y in values]
    return {
        "against": sum(before) / len(before),
        "this": sum(after) / len(after),
        **dataclasses.asdict(paired(before, after)),
    }


def _mean(row: dict[str, Any]) -> float | None:
    scored = [sample["correct"] for sample in row["samples"] if sample["correct"] is not None]
    return sum(scored) / len(scored) if scored else None
