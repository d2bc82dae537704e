"""Runs each stage in its own process: its memory is freed at its end, and a crash affects no other stage.

The processes are forked from a server that has imported torch and transformers but not used them, so each stage starts
at once (the imports take CPU seconds). If the pipeline dies, even by kill -9, its stages die too.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r1lite.run.progress import REPORTER

_COMMAND_LINE = "r1lite.cli"  # imported by name, since the command line is the layer above the pipeline
_METERED_S = 1.0
# Includes the libraries' late imports, which every stage would otherwise repeat.
_PRELOADED = [
    *("torch", "transformers", "transformers.modeling_utils", "transformers.models.qwen2.modeling_qwen2"),
    *("r1lite.training.on_problems", "r1lite.curation.generate", "verifiers.mathexpr.verify", _COMMAND_LINE),
]


def start(argv: Sequence[str], log: Path, usage: Path, progress: Path) -> Any:
    """Starts `r1lite ARGV...` in a process, which appends its output to `log` and writes its cost to `usage` and its
    progress to `progress`.

    Returns: the `multiprocessing.Process`; its exit code is the command's.
    """
    # Otherwise torch's threads spin while they wait; must be set before the server imports torch.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=_run, args=(list(argv), str(log), str(usage), str(progress)))
    process.start()
    return process


def _run(argv: list[str], log: str, usage: str, progress: str) -> None:
    os.setsid()  # Ctrl-C goes to the pipeline, which forwards it
    parent = multiprocessing.parent_process()
    assert parent is not None
    meter = Meter(Path(usage))
    threading.Thread(target=_follow, args=(parent.sentinel, meter), daemon=True).start()
    REPORTER.write_to(Path(progress))
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    code = importlib.import_module(_COMMAND_LINE).main(argv)
    with contextlib.suppress(OSError):
        meter.write()
    sys.stdout.flush()
    sys.exit(code)


class Meter:
    """The cost of a stage, including its interrupted parts; saved every second, since kill -9 gives no notice.

    Worker processes count once they have ended.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock, self._began = path, threading.Lock(), time.monotonic()
        before = usage(path)
        self._cpu_s, self._wall_s = before["cpu_s"], before["wall_s"]

    def write(self) -> None:
        """Replaces the file with the current figures."""
        with self._lock:
            used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
            cpu_s = self._cpu_s + sum(one.ru_utime + one.ru_stime for one in used)
            spent = {"cpu_s": cpu_s, "wall_s": self._wall_s + time.monotonic() - self._began}
            aside = self._path.with_name(f".{self._path.name}.part")
            aside.write_text(json.dumps(spent), encoding="utf-8")
            os.replace(aside, self._path)  # not synced: a power cut loses only a second or two


def usage(path: Path) -> dict[str, float]:
    """The figures that a meter saved; zeros if the file is missing or damaged by a power cut."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"cpu_s": float(found["cpu_s"]), "wall_s": float(found["wall_s"])}
    except (OSError, ValueError, LookupError, TypeError):
        return {"cpu_s": 0.0, "wall_s": 0.0}


def _follow(sentinel: int, meter: Meter) -> None:
    """Saves the cost every second, and ends the stage if the pipeline dies."""
    while not multiprocessing.connection.wait([sentinel], timeout=_METERED_S):
        with contextlib.suppress(OSError):  # a full disk must not stop this thread, which watches the pipeline
            meter.write()
    os.kill(os.getpid(), signal.SIGKILL)
