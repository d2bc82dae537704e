"""Folders for runs where the sandbox has no file system of its own, and removal of those left by killed owners.

The owner holds a lock on its folder as long as it lives, so a folder that can be locked has no owner any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "verifiers-runs-"
_YOUNG_S = 60.0  # a folder younger than this may not be locked yet


class Box:
    """A folder of this process alone. Folders of dead owners are removed when a process creates its first."""

    def __init__(self) -> None:
        _remove_stale(tempfile.gettempdir())
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        self._handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def close(self) -> None:
        """Removes the folder, which is empty after the last run."""
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
        self.disown()

    def disown(self) -> None:
        """Releases the lock, which a forked process also holds until it does so."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


@functools.cache
def _remove_stale(folder: str) -> None:
    for path in Path(folder).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # it belongs to somebody else, is not a folder, or is in use
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                found = os.fstat(handle)
                if found.st_uid == os.getuid() and time.time() - found.st_mtime > _YOUNG_S:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)
