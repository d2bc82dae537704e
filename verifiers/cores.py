"""The number of CPU cores that this process may use."""

from __future__ import annotations

import os


def available() -> int:
    """Returns the number of cores that the process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores() -> int:
    """Returns VERIFIERS_CPUS if it is set, else `available()`.

    Raises: ValueError if VERIFIERS_CPUS is not a whole number above 0.
    """
    given = os.environ.get("VERIFIERS_CPUS", "")
    if not given:
        return available()
    if not given.isdecimal() or int(given) < 1:
        raise ValueError(f"VERIFIERS_CPUS must be a whole number above 0, got {given!r}")
    return int(given)
