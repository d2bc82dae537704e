"""Writing that is never seen half done: aside, synced, renamed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`; at the end it is synced and takes its place, or is removed on an error."""
    aside = path.with_name(f".{path.name}.part")
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
    aside = path.with_name(f".{path.name}.part")
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


def write_text(path: Path, text: str) -> None:
    """Writes a whole file at once."""
    with replaced_file(path) as aside:
        aside.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Writes a value as indented JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def sync(path: Path) -> None:
    """Has the disk hold what was written to a file, or a folder's list of names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
