"""Reads rows from files: JSONL (also .gz) and Parquet one at a time, JSON at once."""

from __future__ import annotations

import collections
import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers.core import Completion, GoldError, Problem
from verifiers.golds import gold_text, mapping_of
from verifiers.golds import is_text as is_text
from verifiers.prefill import prefill_of

# Column names in use, in order of preference.
NAMES: dict[str, tuple[str, ...]] = {
    "completion": ("completion", "response", "output", "generation", "generated_text", "prediction", "text"),
    "prompt": ("prompt", "question", "problem", "query", "instruction", "input"),
    "answer": ("answer", "gold", "ground_truth", "label", "target", "expected", "reference", "solution"),
    "language": ("language",),
    "tests": ("tests",),
    "id": ("id", "problem_id", "task_id", "uid"),
}
_STEP = re.compile(r"step-(\d+)\.jsonl(?:\.gz)?")
_PARQUET_ROWS = 256
_MAX_LINE = 1 << 28
_SHOWN = 80
_LIST = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*(\{|$)")  # the first line of a list of objects
_NO_LINES = {  # how data begins that is no JSONL -> what to do
    b"\xff\xfe": "UTF-16 text; rows are read as UTF-8",
    b"\xfe\xff": "UTF-16 text; rows are read as UTF-8",
    b"PAR1": "a Parquet file; let its name end in .parquet",
    b"\x1f\x8b": "a gzip file; let its name end in .gz",
}
_OTHER_FORMATS = (".csv", ".tsv", ".xls", ".xlsx", ".ods", ".arrow", ".feather", ".zip", ".zst", ".xz", ".bz2")


class RowError(ValueError):
    """A row can't be scored; the message names what is missing and the option that helps."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns to use; "" = the first of NAMES that exists. A dot leads into nested rows ("a.gold")."""

    completion: str = ""
    prompt: str = ""
    answer: str = ""
    language: str = ""
    tests: str = ""
    id: str = ""


def rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yields (line or row number from 1, row), in constant memory except for .json, which must contain a list.

    A line that is not JSON, repeats a key in an object or is too long is yielded as a RowError.

    Raises: OSError; ValueError, naming the file and the line, if the file is not of the format of its suffix.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield from _parquet(path)
        return
    if suffix == ".json":
        yield from enumerate(_json_list(path), 1)
        return
    if suffix in _OTHER_FORMATS:
        raise ValueError(
            f"{path}: {path.suffix} is not a format that is read; convert the file to .jsonl (one JSON object a line), "
            ".json (a list of objects) or .parquet"
        )
    number = 0
    opened: Any = gzip.open(path, "rb") if suffix == ".gz" else path.open("rb")  # noqa: SIM115  # closed below
    with opened as file:
        try:
            while line := file.readline(_MAX_LINE):
                number += 1
                if number == 1 and (what := _no_lines(line)):
                    raise ValueError(f"{path}:1: {what}")
                if len(line) == _MAX_LINE and not line.endswith(b"\n"):  # its rest is no row of its own
                    while (rest := file.readline(_MAX_LINE)) and not rest.endswith(b"\n"):
                        pass
                    yield number, RowError(f"the line is longer than {_MAX_LINE >> 20:,} MiB")
                elif line.strip():
                    yield number, parsed(line)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            if "Not a gzipped file" in str(error) and not number:
                raise ValueError(f"{path}: not a gzip file, whatever its name says") from error
            raise ValueError(
                f"{path}:{number + 1}: the gzip file is cut short or damaged from this line on: {error}"
            ) from error


def _no_lines(line: bytes) -> str:
    """Returns what a file is and what to do if its first line is not JSONL but another format; otherwise ""."""
    if _LIST.match(line):
        return (
            "one JSON list; its file must be a .json, uncompressed, or have one object a line and no list around them"
        )
    return next((what for begin, what in _NO_LINES.items() if line.startswith(begin)), "")


def step_files(run: Path, folder: str = "rollouts") -> list[tuple[int, Path]]:
    """Returns (step, file) of a training run's rollouts, or evaluations, in order. If a step has two files, the
    compressed one, which the run wrote, is used."""
    found = [
        (int(match[1]), path)
        for path in (run / folder).glob("step-*")
        if (match := _STEP.fullmatch(path.name)) and path.is_file()  # not a pipe, which might never end
    ]
    return sorted(dict(sorted(found)).items())


def parsed(line: bytes) -> Any:
    """Returns the value of a JSON line, or a RowError that says why it can't be parsed."""
    try:
        return json.loads(line.rstrip(b"\r\n").decode("utf-8-sig"), object_pairs_hook=unrepeated)
    except UnicodeDecodeError as error:
        return RowError(f"not UTF-8 text (byte {error.start} of the line)")
    except json.JSONDecodeError as error:
        return RowError(f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        # Python's message goes on with advice to its programmers.
        return RowError(f"not JSON: {str(error).partition('; use sys.')[0]}")


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object of JSON, as its `object_pairs_hook`. Raises ValueError for a key that occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):  # readers differ in which value they take
        twice = next(key for key, count in collections.Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {twice[:_SHOWN]!r} occurs twice in one object")
    return found


def _json_list(path: Path) -> list[Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=unrepeated)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        message = error.msg.removesuffix(" at")  # some messages of the library end with it
        hint = "; one object a line is .jsonl" if message == "Extra data" else ""
        raise ValueError(f"{path}:{error.lineno}: not JSON: {message} at column {error.colno}{hint}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(found, list):
        raise ValueError(f"{path}: must contain a list of objects, not {type(found).__name__}")
    return found


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
                for row in _pyrows(batch):
                    number += 1
                    yield number, row
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path}: not a Parquet file: {error}") from error


def _pyrows(batch: Any) -> Iterator[dict[str, Any]]:
    """Yields the rows without values that Python can't express, such as a date in the year 9,999,999."""
    try:
        yield from batch.to_pylist()
        return
    except Exception:  # the library raises any error of the conversion
        pass
    for at in range(batch.num_rows):
        row = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            with contextlib.suppress(Exception):
                row[name] = column[at].as_py()
        yield row


def pair(row: Any, columns: Columns, *, default_id: str, reads_gold: bool = True) -> tuple[Problem, Completion]:
    """Returns the problem and completion of a row; its other columns are in `Problem.meta`. Raises RowError.

    Args:
        reads_gold: the gold is used, so a missing value in its place makes the row unusable. If False, or if the row
            also has tests, such a gold counts as absent.
    """
    if isinstance(row, RowError):
        raise row
    if not isinstance(row, Mapping):
        raise RowError(f"a row is an object of columns, not {type(row).__name__}")
    found = {kind: _column(row, kind, getattr(columns, kind)) for kind in NAMES}
    text = _text(found["completion"])
    if text is None:
        if found["completion"] is not None:
            hint = f"got {type(found['completion']).__name__}"
        elif empty := [name for name in NAMES["completion"] if name in row and not columns.completion]:
            hint = f"'{empty[0]}' is null"
        else:
            hint = "call it completion, or in `python -m verifiers` use --completion-column"
        raise RowError(f"no text of a completion; {hint}; columns: {', '.join(map(str, row))}")
    tests, language, meta = mapping_of(found["tests"]), found["language"], mapping_of(row.get("meta"))
    try:
        answer = gold_text(found["answer"])
    except GoldError as error:
        if reads_gold and tests is None:
            raise RowError(str(error)) from error
        answer = None
    name = default_id if found["id"] is None else _name(found["id"])
    asked = _text(found["prompt"]) or ""
    for what, value in (("completion", text), ("prompt", asked), ("id", name)):
        if not is_text(value):
            raise RowError(f"the {what} contains a lone surrogate (half a character)")
    problem = Problem(
        prompt=asked,
        answer=answer,
        tests=tests,
        language=language if isinstance(language, str) else None,
        id=name,
        meta={**{k: v for k, v in row.items() if k != "meta"}, **(meta or {})},
    )
    ids = row.get("token_ids") or ()
    if not isinstance(ids, list | tuple) or not all(isinstance(token, int) for token in ids):
        raise RowError("token_ids must be a list of whole numbers")
    finish = str(row.get("finish_reason") or "stop")
    return problem, Completion(text, tuple(ids), finish_reason=finish, prefill=prefill_of(asked))


def completion_of(row: Mapping[str, Any]) -> str:
    """Returns the completion of a curated set's row, from the column of its format: `completion`, the last of
    `messages` or `conversations`, or `output`, each without the part that the prompt holds (`prefill`).

    Raises: RowError.
    """
    if isinstance(row.get("completion"), str):
        return str(row["completion"])
    try:
        if "messages" in row:
            reply = row["messages"][-1]["content"]
        elif "conversations" in row:
            reply = row["conversations"][-1]["value"]
        else:
            reply = row["output"]
    except (KeyError, IndexError, TypeError) as error:
        raise RowError(
            f"no completion: no column of that name, no messages, conversations or output ({error!r})"
        ) from error
    if not isinstance(reply, str):
        raise RowError(f"the completion is {type(reply).__name__}, not text")
    return reply.removeprefix(str(row.get("prefill") or ""))


def id_of(row: Any, columns: Columns) -> str:
    """Returns the id of a row, also of one that can't be scored; "" if there is none."""
    try:
        value = _column(row, "id", columns.id) if isinstance(row, Mapping) else None
        return "" if value is None else _name(value)
    except RowError:
        return ""


def _name(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and abs(value) < 1 << 64:
        return str(value)
    raise RowError(f"the id must be text or a whole number, got {type(value).__name__}")


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
    """Returns text, or the text of a conversation's messages."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        return "\n".join(content_of(part.get("content")) for part in value)
    return None


def content_of(content: Any) -> str:
    """Returns the text of a message's content: text, or a list of parts of which some are text."""
    if isinstance(content, list | tuple):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return "" if content is None else str(content)
