"""Writing that is never seen half done: aside, synced, renamed; and reading that names the file it can't read."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from r1lite.errors import UserError

_LEVEL = 5  # of compression: a higher one saves 2 % and costs twice the time
_PART = ".part"  # ends the hidden name of what is being written


@contextlib.contextmanager
def replaced_file(path: Path, *, alone: bool = True) -> Iterator[Path]:
    """Yields a temporary path beside `path`; at the end it is synced and takes its place, or is removed on an error.

    Args:
        alone: no other process can be writing the same file; otherwise each writes to a path of its own.
    """
    aside = part_of(path if alone else path.with_name(f"{path.name}.{secrets.token_hex(8)}"))
    try:
        yield aside
        sync(aside)
        os.replace(aside, path)
        sync(path.parent)
    finally:
        aside.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yields an empty temporary folder beside `path`; at the end every file is synced and it becomes `path`."""
    aside = part_of(path)
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        yield aside
        for file in sorted(aside.rglob("*")):
            sync(file)
        sync(aside)
        if path.exists():  # the same step saved again after a resume
            shutil.rmtree(path)
        os.replace(aside, path)
        sync(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def part_of(path: Path) -> Path:
    """Where a file or folder lies while it is being written."""
    return path.with_name(f".{path.name}{_PART}")


def remove_folder(path: Path) -> None:
    """Removes a folder that is never seen half removed under its own name."""
    aside = part_of(path)
    shutil.rmtree(aside, ignore_errors=True)
    os.replace(path, aside)
    shutil.rmtree(aside)


def clear_parts(folder: Path) -> None:
    """Removes what killed processes left half written in a folder. Only for who holds its lock."""
    for path in folder.glob(f".*{_PART}"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def write_text(path: Path, text: str) -> None:
    """Writes a whole file at once."""
    with replaced_file(path) as aside:
        aside.write_text(text, encoding="utf-8", errors="backslashreplace")


def as_json(value: Any) -> str:
    """A value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Writes a value as indented JSON."""
    write_text(path, as_json(value))


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes rows as JSON lines at once; compressed, by a name that ends in ".gz", to the same bytes for the same rows.

    A lone surrogate becomes its JSON escape.
    """
    with replaced_file(path) as aside, open(aside, "wb") as raw, contextlib.ExitStack() as opened:
        file: IO[bytes] | gzip.GzipFile = raw
        if path.suffix == ".gz":
            file = opened.enter_context(
                gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=_LEVEL, mtime=0)
            )
        for row in rows:
            line = json.dumps(row, ensure_ascii=False, allow_nan=False, default=str) + "\n"
            file.write(line.encode("utf-8", "backslashreplace"))


def read_json(path: Path, kind: type = dict) -> Any:
    """The value of a JSON file that has the given type. Raises UserError, naming the file, if it can't be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: damaged: not JSON ({error})") from error
    if not isinstance(found, kind):
        raise UserError(f"{path}: damaged: it holds a {type(found).__name__} where a {kind.__name__} is expected")
    return found


def digest(path: Path, size: int | None = None) -> tuple[int, str]:
    """(bytes, SHA-256) of a file, or of its first `size` bytes; fewer bytes if it is shorter."""
    found, left = hashlib.sha256(), size
    with open(path, "rb") as file:
        while piece := file.read(1 << 20 if left is None else min(1 << 20, left)):
            found.update(piece)
            left = None if left is None else left - len(piece)
        return file.tell(), found.hexdigest()


def sync(path: Path) -> None:
    """Has the disk hold what was written to a file, or a folder's list of names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
