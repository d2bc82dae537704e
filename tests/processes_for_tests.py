"""Processes that a test has started."""

import contextlib
import time
from pathlib import Path

import psutil


def descendants(pid):
    """All processes below one, except for the server of forks (forks_for_tests.py), which serves all workers."""
    found, todo = [], [pid]
    while todo:
        for task in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                children = [int(child) for child in task.read_text().split() if not _serves_forks(child)]
                found += children
                todo += children
    return found


def _serves_forks(pid):
    try:
        return b"forks_for_tests" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return False


def all_gone(pids, seconds=30):
    """True once none of these processes runs any more."""
    until = time.monotonic() + seconds
    while any(is_running(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def is_running(pid):
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != "zombie"
    return False
