"""This process's limits of open files and threads: the trainer needs one of each for every request to a server."""

from __future__ import annotations

import contextlib
import errno
import resource
from collections.abc import Iterator

from r1lite.rollout import EngineError


@contextlib.contextmanager
def opening_socket(url: str) -> Iterator[None]:
    """Inside the context a connection is opened. Raises EngineError if this process may have no further open file."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise EngineError(
            f"{url}: this process can open no further connection ({error.strerror}): raise its limit of open files "
            "(ulimit -n), and continue with --resume"
        ) from error


@contextlib.contextmanager
def starting_thread() -> Iterator[None]:
    """Inside the context a thread is started. Raises EngineError if this process may have no further one."""
    try:
        yield
    except RuntimeError as error:
        raise EngineError(
            f"this process can start no further thread ({error}): raise its limit (ulimit -u, or a container's "
            "--pids-limit), and continue with --resume"
        ) from error


def allow_files(count: int) -> None:
    """Raises this process's limit of open files, often 1024, to `count` or as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # macOS has a further limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
