"""Rows of a fine-tuning set out of a file, a folder or the Hub, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r1lite.errors import UserError

SUFFIXES = (".jsonl", ".json", ".parquet")
_PARQUET_ROWS = 1000


def find_set(data: str, split: str) -> Path | None:
    """The file that `--data` names, or None for a data set on the Hub. Raises UserError."""
    path = Path(data).expanduser()
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise UserError(f"--data {path}: a set is a file of the kinds {', '.join(SUFFIXES)}")
        return path
    if path.is_dir():
        found = [path / f"{split}{suffix}" for suffix in SUFFIXES if (path / f"{split}{suffix}").is_file()]
        if not found:
            raise UserError(f"--data {path}: the folder has no {split}.jsonl, {split}.json or {split}.parquet")
        return found[0]
    if path.is_absolute() or data.startswith((".", "~")) or data.count("/") != 1 or path.suffix in SUFFIXES:
        raise UserError(f"--data {data}: no such file or folder (a set on the Hub is OWNER/NAME)")
    return None


def rows(data: str, split: str) -> Iterator[tuple[str, Any]]:
    """(place for messages, row) of every row, in order; a file is never held as a whole, but for .json.

    Raises:
        UserError: it can't be read; with file and line.
    """
    path = find_set(data, split)
    if path is None:
        yield from _hub(data, split)
        return
    try:
        for number, row in _file(path):
            yield f"{path}:{number}", row
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror or error}") from error


def _file(path: Path) -> Iterator[tuple[int, Any]]:
    if path.suffix == ".parquet":
        yield from enumerate(_parquet(path), 1)
    elif path.suffix == ".json":
        found = _json(path, 1, path.read_text(encoding="utf-8-sig"))
        if not isinstance(found, list):
            raise UserError(f"{path}: must hold a list of objects")
        yield from enumerate(found, 1)
    else:
        with open(path, encoding="utf-8-sig", newline="\n") as file:  # JSON text may hold U+2028 and the like
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _json(path, number, line)


def _json(path: Path, number: int, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}:{number}: not JSON: {error}") from error


def _parquet(path: Path) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_PARQUET_ROWS):
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise UserError(f"{path}: not a Parquet file: {error}") from error


def _hub(data: str, split: str) -> Iterator[tuple[str, Any]]:
    from datasets import load_dataset

    try:
        found = load_dataset(data, split=split)
    except Exception as error:  # the library raises whatever its transport does
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        raise UserError(
            f"--data {data}: can't be loaded from the Hub: {type(error).__name__}: {first}\n"
            "It must be a file, a folder with train.jsonl or train.parquet, or OWNER/NAME on the Hub."
        ) from error
    yield from ((f"{data}[{split}]:{number}", row) for number, row in enumerate(found, 1))
