"""Reads the rows of a fine-tuning set from a file, a folder or the Hub, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r1lite.errors import UserError, first_line
from r1lite.hub.revisions import load_rows
from r1lite.tasks.rows import read_file, split_file
from verifiers.rows import RowError

SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".parquet")


def find_set(data: str, split: str) -> Path | None:
    """Returns the file that `--data` names, or None for a data set on the Hub. Raises UserError."""
    path = Path(data).expanduser()
    if path.is_file():
        if not path.name.endswith(SUFFIXES):
            raise UserError(f"--data {path}: a set must be one of these files: {', '.join(SUFFIXES)}")
        return path
    if path.is_dir():
        if (found := split_file(path, split, SUFFIXES)) is None:
            raise UserError(f"--data {path}: the folder has none of {', '.join(f'{split}{s}' for s in SUFFIXES)}")
        return found
    if path.is_absolute() or data.startswith((".", "~")) or data.count("/") != 1 or path.name.endswith(SUFFIXES):
        raise UserError(f"--data {data}: no such file or folder (a set on the Hub is OWNER/NAME)")
    return None


def rows(data: str, split: str) -> Iterator[tuple[str, Any]]:
    """Yields (place for messages, row) of every row in order. Only .json files are read as a whole.

    Raises:
        UserError: the set can't be read; the message names file and line.
    """
    path = find_set(data, split)
    if path is None:
        yield from _hub(data, split)
        return
    for number, row in read_file(path):
        if isinstance(row, RowError):
            raise UserError(f"{path}:{number}: {row}")
        yield f"{path}:{number}", row


def _hub(data: str, split: str) -> Iterator[tuple[str, Any]]:
    try:
        found = load_rows(data, split_name=split)
    except Exception as error:  # the library passes on any error of its transport
        raise UserError(
            f"--data {data}: can't be loaded from the Hub: {type(error).__name__}: {first_line(error)}\n"
            "It must be a file, a folder with train.jsonl or train.parquet, or OWNER/NAME on the Hub."
        ) from error
    yield from ((f"{data}[{split}]:{number}", row) for number, row in enumerate(found, 1))
