"""Reads rows of problems from files and the Hub."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from r1lite.errors import BadRowsError, UserError, first_line, listing, quoted
from r1lite.hub.revisions import load_rows
from verifiers import rows as files
from verifiers.core import VerifierError
from verifiers.golds import gold_text, is_text

SUFFIXES = (".jsonl", ".json", ".parquet", ".jsonl.gz")  # of files that are read in folders
T = TypeVar("T")


def read_file(path: Path) -> Iterator[tuple[int, Any]]:
    """Yields (line or row number, row or RowError) of `verifiers.rows`. Raises UserError if the file can't be read."""
    try:
        yield from files.rows(path)
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror or error}") from error
    except ValueError as error:  # its message names the file
        raise UserError(str(error)) from error


def split_file(folder: Path, split: str, suffixes: Sequence[str]) -> Path | None:
    """The file of a split ("train" or "test") in a folder, with one of these suffixes; None if there is none.

    Raises:
        UserError: there are several, which may hold different rows.
    """
    found = [path for suffix in suffixes if (path := folder / f"{split}{suffix}").is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise UserError(f"{folder}: holds {names}, and only one is read; name that file, or keep one of them")
    return next(iter(found), None)


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of `located_rows` without their line or row numbers."""
    return [row for _, row in located_rows(path, columns)]


def located_rows(
    path: Path, columns: Sequence[str], lists: Sequence[str] = (), dropped: list[str] | None = None
) -> list[tuple[int, dict[str, Any]]]:
    """(line or row number, row) of a JSONL (also gzipped), JSON (list of objects) or Parquet file.

    Args:
        columns: columns in which each row must have text or a number.
        lists: columns in which each row must have a list of texts.
        dropped: if given, invalid rows are left out, and what is wrong with them is added here.

    Raises:
        UserError: rows are invalid; the message names the file and the lines (for Parquet and JSON the rows).
    """
    return checked_rows(str(path), list(read_file(path)), columns, lists, dropped)


def checked_rows(
    where: str,
    rows: Sequence[tuple[int, Any]],
    columns: Sequence[str],
    lists: Sequence[str] = (),
    dropped: list[str] | None = None,
) -> list[tuple[int, dict[str, Any]]]:
    """Returns the rows after checking them as `located_rows` describes. Raises UserError."""
    if not rows:
        raise UserError(f"{where}: contains no problems")
    needed = (*columns, *lists)
    objects = [row for _, row in rows if isinstance(row, dict)]
    for column in needed:
        if len(objects) == len(rows) and not any(column in row for row in objects):
            raise UserError(
                f"{where}: no column '{column}'; the first row has {quoted(sorted(objects[0]))}, the task needs "
                f"{quoted(needed)}. Rename your columns, or write a task of your own for them (r1lite/tasks/README.md)"
            )

    def check(row: Any) -> dict[str, Any]:
        if isinstance(row, ValueError):
            raise row
        if not isinstance(row, dict):
            raise ValueError(f"a row must be an object with {quoted(needed)}, not {_kind(row)}")
        for column in needed:
            _check_value(row, column, is_list=column in lists)
        return row

    return made_of_each(where, rows, check, dropped)


def made_of_each(
    where: str, rows: Sequence[tuple[int, Any]], make: Callable[[Any], T], dropped: list[str] | None = None
) -> list[tuple[int, T]]:
    """Returns what `make` returns for each row, with the row's number.

    Args:
        make: may raise ValueError or VerifierError for an unusable row.
        dropped: if given, unusable rows are left out, and what is wrong with them is added here.

    Raises:
        BadRowsError: rows are unusable and `dropped` is None, or all are; the message counts them.
    """
    made, bad = [], []
    for place, row in rows:
        try:
            made.append((place, make(row)))
        except (ValueError, VerifierError) as error:
            bad.append(f"{where}:{place}: {error}")
    if bad and (dropped is None or not made):
        raise BadRowsError(f"{where}: {len(bad):,} of {len(rows):,} rows can't be used:\n{listing(bad)}")
    if dropped is not None:
        dropped += bad
    return made


def _check_value(row: dict[str, Any], column: str, *, is_list: bool) -> None:
    if column not in row:
        raise ValueError(f"no column '{column}'; the row has {quoted(sorted(row))}")
    value = row[column]
    if is_list:
        if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
            raise ValueError(f"'{column}' must be a list of texts, got {value!r}")
        if not all(map(is_text, value)):
            raise ValueError(f"'{column}' contains half a character (a lone surrogate)")
        return
    if not isinstance(value, str | int | float | Decimal):
        raise ValueError(f"'{column}' must be text or a number, got {value!r}")
    gold_text(value, f"'{column}'")  # rejects missing values too


def hub_rows(
    dataset: str, name: str | None, split: str, revision: str | None = None, *, is_bundled: bool = False
) -> list[dict[str, Any]]:
    """A split of a data set on the Hugging Face Hub, or in its local cache. Raises UserError.

    Args:
        is_bundled: the task also has bundled problems, which the error then names as a way out.
    """
    try:
        return list(load_rows(dataset if revision is None else f"{dataset}@{revision}", name, split_name=split))
    except Exception as error:  # the library passes on any exception of its transport
        raise UserError(
            f"can't load {dataset} from the Hugging Face Hub: {type(error).__name__}: {first_line(error)}\n"
            "Without the Hub, use a file with the same columns (--source FILE)"
            + (" or --source bundled." if is_bundled else ".")
        ) from error


def hub_reachable(timeout_s: float = 3.0) -> bool:
    """True if the Hugging Face Hub answers one request within `timeout_s` seconds."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return False
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=timeout_s)
    except Exception:  # any exception of the transport means unreachable
        return False
    return True


def _kind(value: object) -> str:
    return {dict: "an object", list: "a list", str: "text", type(None): "null"}.get(type(value), type(value).__name__)
