"""Completions out of files: JSONL (also .gz) and Parquet, one row at a time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers.core import Completion, Problem

# Names that rows use, in order of preference.
NAMES: dict[str, tuple[str, ...]] = {
    "completion": ("completion", "response", "output", "generation", "generated_text", "prediction", "text"),
    "prompt": ("prompt", "question", "problem", "query", "instruction", "input"),
    "answer": ("answer", "gold", "ground_truth", "label", "target", "expected", "reference", "solution"),
    "language": ("language",),
    "tests": ("tests",),
    "id": ("id", "problem_id", "task_id", "uid"),
}
_PARQUET_ROWS = 256
_MAX_LINE = 1 << 28


class RowError(ValueError):
    """A row that can't be scored; the message names what is missing and the option that helps."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns to use, "" = the first of NAMES that is there; a dot leads into nested rows ("a.gold")."""

    completion: str = ""
    prompt: str = ""
    answer: str = ""
    language: str = ""
    tests: str = ""
    id: str = ""


def rows(path: Path) -> Iterator[tuple[int, Any]]:
    """(line or row number from 1, row), in constant memory; a line that is no JSON comes as a RowError.

    Raises: OSError; ValueError if the file can't be read as its ending says.
    """
    if path.suffix == ".parquet":
        yield from _parquet(path)
        return
    if path.suffix == ".json":
        raise ValueError(f"{path}: a .json file is read at once; turn it into .jsonl, one object a line")
    opened: Any = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # noqa: SIM115  # closed below
    with opened as file:
        number = 0
        while line := file.readline(_MAX_LINE):
            number += 1
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                yield number, RowError(f"not JSON: {error}")


def _parquet(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ValueError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from error
    try:
        number = 0
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path}: not a Parquet file: {error}") from error


def pair(row: Any, columns: Columns, *, default_id: str) -> tuple[Problem, Completion]:
    """Problem and completion of a row; its other columns are in `Problem.meta`. Raises RowError."""
    if isinstance(row, RowError):
        raise row
    if not isinstance(row, Mapping):
        raise RowError(f"a row is an object of columns, not {type(row).__name__}")
    found = {kind: _column(row, kind, getattr(columns, kind)) for kind in NAMES}
    text = _text(found["completion"])
    if text is None:
        hint = "use --completion-column" if found["completion"] is None else f"got {type(found['completion']).__name__}"
        raise RowError(f"no text of a completion in the columns {', '.join(map(str, row))}; {hint}")
    answer, tests, language = found["answer"], found["tests"], found["language"]
    if answer is not None and not isinstance(answer, str):
        answer = json.dumps(answer, ensure_ascii=False, default=str)
    meta = row.get("meta")
    problem = Problem(
        prompt=_text(found["prompt"]) or "",
        answer=answer,
        tests=tests if isinstance(tests, Mapping) else None,
        language=language if isinstance(language, str) else None,
        id=str(found["id"]) if found["id"] is not None else default_id,
        meta={**{k: v for k, v in row.items() if k != "meta"}, **(meta if isinstance(meta, Mapping) else {})},
    )
    ids = row.get("token_ids") or ()
    finish = str(row.get("finish_reason") or "stop")
    return problem, Completion(text, tuple(ids), finish_reason=finish)


def _column(row: Mapping[str, Any], kind: str, chosen: str) -> Any:
    if not chosen:
        return next((row[name] for name in NAMES[kind] if row.get(name) is not None), None)
    value: Any = row
    for part in chosen.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise RowError(f"no column '{chosen}'; the row has {', '.join(map(str, row))}")
        value = value[part]
    return value


def _text(value: Any) -> str | None:
    """Text, or what the messages of a conversation say."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        return "\n".join(str(part.get("content") or "") for part in value)
    return None
