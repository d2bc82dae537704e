"""Files of this machine, and files that fsspec opens (s3://, gs://, hf://, ...): listing, reading and atomic writing.

A URL is one in fsspec's sense, or a path; `file://` is also a path.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import importlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

_MAGIC = "*?["
_PART = ".part"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file."""

    name: str  # relative to the folder that was listed
    url: str
    size: int  # bytes


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file that fsspec reaches, with what a reader asks of a `Path`."""

    url: str
    size: int  # bytes
    version: str  # changes with its content, as far as the storage tells

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """Its last part."""
        return PurePosixPath(self.url).name

    @property
    def suffix(self) -> str:
        """As of a path."""
        return PurePosixPath(self.url).suffix

    def open(self, mode: str = "rb") -> BinaryIO:
        """Its bytes, read where they are asked for. Raises OSError, ValueError."""
        files, path = _opened(self.url)
        with _reached(self.url):
            opened: BinaryIO = files.open(path, mode)
            return opened


def remote_files(url: str, suffixes: tuple[str, ...]) -> list[RemoteFile]:
    """As `list_files`, of a URL. Raises ValueError."""
    found = list_files(url, suffixes)
    with _reached(url):
        files = _opened(url)[0]
        return [RemoteFile(file.url, file.size, str(files.ukey(_opened(file.url)[1]))) for file in found]


def is_remote(url: str) -> bool:
    """True for a URL that fsspec opens."""
    return "://" in url and not url.startswith("file://")


def is_several(url: str) -> bool:
    """True for a folder, a pattern, and anything other than a single file of this machine."""
    return is_remote(url) or _is_pattern(url) or as_path(url).is_dir()


def list_files(url: str, suffixes: tuple[str, ...]) -> list[StoredFile]:
    """Returns the files of a folder and its subfolders, of a pattern, or the one file, sorted by name.

    Raises: ValueError: there is none, or one is a broken link.
    """
    with _reached(url):
        files = list(_remote_files(url) if is_remote(url) else _files_here(str(as_path(url)), suffixes))
    chosen = [file for file in sorted(files, key=lambda file: file.name) if file.name.endswith(suffixes)]
    if not chosen:
        raise ValueError(f"{url}: no {', '.join(suffixes)} file there")
    return chosen


def lies_in(url: str, folder: str) -> bool:
    """True for a file or folder inside a folder or its subfolders."""
    if is_remote(url) != is_remote(folder):
        return False
    if is_remote(url):
        return f"{url.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")
    return as_path(url).resolve().is_relative_to(as_path(folder).resolve())


def joined(folder: str, name: str) -> str:
    """Returns the URL of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}" if is_remote(folder) else str(as_path(folder) / name)


@contextlib.contextmanager
def fetched(url: str) -> Iterator[Path]:
    """Yields a file of this machine with the content of `url`."""
    if not is_remote(url):
        yield as_path(url)
        return
    files, path = _opened(url)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / PurePosixPath(path).name
        with _reached(url):
            files.get_file(path, str(here))
        yield here


@contextlib.contextmanager
def put(url: str) -> Iterator[Path]:
    """Yields a path to write to; at the end its content is stored at `url`, atomically."""
    if is_remote(url):
        files, path = _opened(url)
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder) / PurePosixPath(path).name
            yield here
            with _reached(url):
                files.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
                files.put_file(str(here), path)
        return
    target = as_path(url)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.stem}.{secrets.token_hex(8)}{_PART}{target.suffix}")
    try:
        yield aside
        os.replace(aside, target)
    finally:
        aside.unlink(missing_ok=True)


def put_json(url: str, value: Any) -> None:
    """Stores a value as indented JSON."""
    with put(url) as path:
        path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(url: str) -> Any:
    """Returns the value of a JSON file; None if there is no file. Raises ValueError."""
    try:
        with fetched(url) as path:
            return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{url}: damaged: {error}") from error


@contextlib.contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Keeps a second command out of a folder of this machine, whose half-written files it would remove.

    Raises: ValueError if there is one.
    """
    if is_remote(folder):
        yield
        return
    as_path(folder).mkdir(parents=True, exist_ok=True)
    opened = os.open(as_path(folder), os.O_RDONLY | os.O_DIRECTORY)
    try:
        lock(opened, folder)
        yield
    finally:
        os.close(opened)


def lock(file: int | IO[str], out: Path | str) -> None:
    """Locks an open file or folder until it is closed. Raises ValueError if another command has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ValueError(f"--out {out}: another command is writing it; wait for it, or choose another --out") from error
    except OSError:  # a file system without locks
        pass


def clear_parts(folder: str) -> None:
    """Removes half-written files that killed processes left in a folder of this machine."""
    if not is_remote(folder):
        for path in as_path(folder).rglob(f".*{_PART}.*"):
            path.unlink(missing_ok=True)


def as_path(url: str) -> Path:
    """Returns the path of a file or folder of this machine."""
    return Path(url.removeprefix("file://")).expanduser()


def _is_pattern(url: str) -> bool:
    """True for a pattern of files of this machine; a file or folder whose name looks like a pattern is not one."""
    return any(sign in url for sign in _MAGIC) and not as_path(url).exists()


def _files_here(url: str, suffixes: tuple[str, ...]) -> Iterator[StoredFile]:
    paths: Iterable[Path]
    if _is_pattern(url):
        parts = Path(url).parts
        depth = next(number for number, part in enumerate(parts) if any(sign in part for sign in _MAGIC))
        base, paths = Path(*parts[:depth]), map(Path, glob.iglob(url, recursive=True))
    elif Path(url).is_dir():
        base, paths = Path(url), Path(url).rglob("*")
    else:
        base, paths = Path(url).parent, [Path(url)]
    for path in paths:
        if path.name.startswith("."):
            continue
        if path.is_symlink() and not path.exists() and path.name.endswith(suffixes):
            raise ValueError(f"{path}: a link to a file that does not exist")
        if path.is_file():
            yield StoredFile(path.relative_to(base).as_posix(), str(path), path.stat().st_size)


def _remote_files(url: str) -> Iterator[StoredFile]:
    files, path = _opened(url)
    if any(sign in path for sign in _MAGIC):
        parts = PurePosixPath(path).parts
        depth = next(number for number, part in enumerate(parts) if any(sign in part for sign in _MAGIC))
        base, paths = PurePosixPath(*parts[:depth]), files.glob(path, detail=True)
    elif files.isdir(path):
        base, paths = PurePosixPath(path), files.find(path, detail=True)
    elif files.exists(path):
        base, paths = PurePosixPath(path).parent, {path: files.info(path)}
    else:
        return
    for name, about in paths.items():
        if about["type"] == "file":
            yield StoredFile(
                PurePosixPath(name).relative_to(base).as_posix(), files.unstrip_protocol(name), int(about["size"] or 0)
            )


@contextlib.contextmanager
def _reached(url: str) -> Iterator[None]:
    """Turns errors of a storage client other than OSError into ValueError, with the URL."""
    try:
        yield
    except (OSError, ValueError):
        raise
    except Exception as error:  # each client has its own exceptions
        raise ValueError(f"{url}: {type(error).__name__}: {error}") from error


def _opened(url: str) -> tuple[Any, str]:
    """Returns (file system, path in it). Raises ValueError."""
    try:
        url_to_fs = importlib.import_module("fsspec.core").url_to_fs
    except ImportError as error:
        raise ValueError(f"{url}: URLs need fsspec: pip install fsspec (and s3fs, gcsfs, ...)") from error
    try:
        files, path = url_to_fs(url)
    except ImportError as error:
        raise ValueError(f"{url}: {error}") from error
    return files, str(path)
