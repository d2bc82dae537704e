"""Atomic writing of files (temporary name, sync, rename), reading with errors that name the file, locks of folders."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeGuard

from r1lite.errors import UserError

_LEVEL = 5  # compression level; a higher level saves 2 % and takes twice the time
_LARGEST = 1e100  # of a number in a file that is shown
_DEEPEST = 20  # lists and objects within each other
TRACKERS = "trackers"  # folder of a run that the libraries of trackers write to
_PART = ".part"  # suffix of the hidden temporary name
_REPLACED = ".replaced"  # suffix of the hidden name of a folder while another takes its place


@contextlib.contextmanager
def replaced_file(path: Path, *, alone: bool = True) -> Iterator[Path]:
    """Yields a temporary path beside `path`. At the end it is synced and renamed to `path`, or removed on an error.

    Args:
        alone: no other process can be writing the same file; if False, the temporary path is unique.
    """
    aside = part_of(path if alone else path.with_name(f"{path.name}.{secrets.token_hex(8)}"))
    aside.unlink(missing_ok=True)  # it may be a link to another file
    try:
        yield aside
        sync(aside)
        os.replace(aside, path)
        sync(path.parent)
    finally:
        aside.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yields an empty temporary folder beside `path`. At the end its files are synced and it is renamed to `path`.

    A folder that was there before is kept under a hidden name until then: `clear_parts` puts it back after a kill.
    """
    aside, replaced = part_of(path), path.with_name(f".{path.name}{_REPLACED}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        yield aside
        for file in sorted(aside.rglob("*")):
            sync(file)
        sync(aside)
        if path.exists():  # a damaged checkpoint, whose step was repeated
            os.replace(path, replaced)
        os.replace(aside, path)
        sync(path.parent)
        shutil.rmtree(replaced, ignore_errors=True)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def part_of(path: Path) -> Path:
    """Returns the temporary path of a file or folder while it is being written."""
    return path.with_name(f".{path.name}{_PART}")


def remove_folder(path: Path) -> None:
    """Removes a folder; it is renamed first, so that a half-removed folder never has its original name."""
    aside = part_of(path)
    shutil.rmtree(aside, ignore_errors=True)
    os.replace(path, aside)
    shutil.rmtree(aside)


def clear_parts(folder: Path) -> None:
    """Removes what killed processes left half-written in a folder, and puts back a folder that was not yet replaced.

    The caller must hold the folder's lock.
    """
    for path in folder.glob(f".*{_REPLACED}"):
        place = path.with_name(path.name[1:].removesuffix(_REPLACED))
        if place.exists():
            shutil.rmtree(path)
        else:
            os.replace(path, place)
    for path in folder.glob(f".*{_PART}"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def check_contents(folder: Path) -> None:
    """Raises UserError if a folder that a run writes to and removes files from holds links, pipes or devices.

    The files of trackers are not looked at: W&B puts links among them.
    """
    left = [os.fspath(folder)]
    try:
        while left:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != TRACKERS:
                            left.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        kind = "a link" if entry.is_symlink() else "a pipe, a socket or a device"
                        raise UserError(
                            f"{entry.path} is {kind}: a run directory may only hold files and folders, since a run "
                            "writes to it and removes files from it"
                        )
    except OSError as error:
        raise UserError(f"{error.filename or folder}: can't be read: {error.strerror}") from error


def check_links(folder: Path) -> None:
    """Raises UserError if a folder that is shown or sent holds a link to a file or folder outside of it.

    Checkpoints and the files of trackers, which are not shown, may lie elsewhere. Links at the names of reports and
    of half-written files are replaced, not followed.
    """
    base = os.path.realpath(folder)
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (TRACKERS, "checkpoints")]
        for name in (*folders, *files):
            path = os.path.join(place, name)
            if not name.startswith(".") and not name.endswith(".html") and os.path.islink(path):
                there = os.path.realpath(path)
                if os.path.commonpath([base, there]) != base:
                    raise UserError(
                        f"{path} is a link to {there}, outside of the run directory: what is there would be shown or "
                        "sent. Replace the link by a copy, or remove it"
                    )


@contextlib.contextmanager
def opened_regular(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file for reading. Raises OSError, also if it is a pipe or a device, whose reading might not end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):  # before open(), which names a folder by the number of its handle
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    with open(handle, "rb") as file:
        yield file


def read_bytes(path: Path) -> bytes:
    """Returns the content of a regular file. Raises OSError."""
    with opened_regular(path) as file:
        return file.read()


def write_text(path: Path, text: str) -> None:
    """Writes a file atomically."""
    with replaced_file(path) as aside:
        aside.write_text(text, encoding="utf-8", errors="backslashreplace")


def as_json(value: Any) -> str:
    """Returns a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Writes a value as indented JSON, atomically."""
    write_text(path, as_json(value))


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes rows as JSON lines, atomically; compressed if the name ends in ".gz". Equal rows give equal bytes.

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


def json_or_empty(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file, to be shown; {} if it is missing or damaged, for example by a kill."""
    with contextlib.suppress(UserError):
        value: dict[str, Any] = plausible(read_json(path))
        return value
    return {}


def plausible(value: Any, depth: int = _DEEPEST) -> Any:
    """Returns a value of a file with None for numbers that are not finite or too large, and for deep nesting. Keys,
    which in YAML can be dates or bytes, become text."""
    if isinstance(value, dict):
        return {str(key): plausible(one, depth - 1) for key, one in value.items()} if depth else None
    if isinstance(value, list | tuple):
        return [plausible(one, depth - 1) for one in value] if depth else None
    return None if isinstance(value, int | float) and not -_LARGEST <= value <= _LARGEST else value


def is_number(value: object) -> TypeGuard[float]:
    """True for a number of a file; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_json(path: Path, kind: type = dict) -> Any:
    """Reads a JSON file whose value has the given type. Raises UserError, naming the file, if that is not possible."""
    try:
        value = json.loads(read_bytes(path).decode())
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: damaged: not JSON ({error})") from error
    if not isinstance(value, kind):
        raise UserError(f"{path}: damaged: expected a {kind.__name__}, found a {type(value).__name__}")
    return value


def digest(path: Path, size: int | None = None) -> tuple[int, str]:
    """Returns (number of bytes, SHA-256) of a regular file, or of its first `size` bytes at most. Raises OSError."""
    found, left = hashlib.sha256(), size
    with opened_regular(path) as file:
        while piece := file.read(1 << 20 if left is None else min(1 << 20, left)):
            found.update(piece)
            left = None if left is None else left - len(piece)
        return file.tell(), found.hexdigest()


def sync(path: Path) -> None:
    """Syncs a file, or a folder's list of names, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


LOCK = ".lock"


def lock_folder(folder: Path) -> IO[str]:
    """Creates the folder and locks it for this process until the returned file is closed.

    Raises:
        BlockingIOError: another process holds the lock.
        OSError: the folder can't be written, or its lock is no regular file.
    """
    path = folder / LOCK
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.fdopen(os.open(path, flags, 0o666), "r+")
        try:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, f"{LOCK} is no regular file")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, path):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # the process that held it has removed the file, so another one may lock a new file


def is_locked(folder: Path) -> bool:
    """Returns True while a process holds the folder's lock."""
    try:
        with opened_regular(folder / LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
