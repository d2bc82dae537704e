"""The lock of a folder that one process writes to."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import IO

from r1lite.run.files import opened_regular

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
