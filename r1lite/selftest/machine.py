"""Checks of the machine, and of the folder for weights of servers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from r1lite.doctor.machine import examine
from r1lite.rollout.weight_files import shared_memory
from r1lite.selftest import Options, Result, State

_STATES: dict[str, State] = {"ok": "ok", "note": "note", "bad": "failed"}


def check(options: Options) -> Iterator[Result]:
    """Yields the lines of `r1lite doctor`, and the free space for weights that are passed to servers."""
    for line in examine(Path("runs")):
        yield Result(line.label, _STATES[line.state], line.text)
    place = shared_memory()
    usage = shutil.disk_usage(place)
    yield Result(
        "weights files",
        "ok",
        f"{place}: {usage.free / 2**30:.1f} GiB free for weights that are passed to servers on this machine",
        {"folder": str(place), "free_bytes": usage.free},
    )
