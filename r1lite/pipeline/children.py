"""Stages in processes of their own: what one leaves in memory is gone when it ends, and a crash takes only itself.

The processes are forked from a server that has imported torch and transformers and done nothing with them, so each
stage begins at once (an import costs seconds of a CPU). A stage whose pipeline dies, be it by kill -9, dies with it.
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

_COMMAND_LINE = "r1lite.cli"  # by name: it stands above the pipeline, which it runs
_METERED_S = 1.0
# With what the libraries import late, which every stage would otherwise import anew.
_PRELOADED = [
    *("torch", "transformers", "transformers.modeling_utils", "transformers.models.qwen2.modeling_qwen2"),
    *("r1lite.training.on_problems", "r1lite.curation.generate", "verifiers.mathexpr.verify", _COMMAND_LINE),
]


def start(argv: Sequence[str], log: Path, usage: Path, progress: Path) -> Any:
    """Begins `r1lite ARGV...` in a process; its output is added to `log`, what it cost to `usage`, how far it is to
    `progress`.

    Returns: the `multiprocessing.Process`; its exit code is the command's.
    """
    # Torch's threads wait by spinning otherwise; set before the server imports it.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=_run, args=(list(argv), str(log), str(usage), str(progress)))
    process.start()
    return process


def _run(argv: list[str], log: str, usage: str, progress: str) -> None:
    os.setsid()  # Ctrl-C is for the pipeline, which passes it on
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
    """What a stage has cost, all its interrupted parts included; written down every second, as kill -9 gives no notice.

    Of worker processes, those that have ended count.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock, self._began = path, threading.Lock(), time.monotonic()
        before = usage(path)
        self._cpu_s, self._wall_s = before["cpu_s"], before["wall_s"]

    def write(self) -> None:
        """Puts the present figures in the file's place."""
        with self._lock:
            used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
            cpu_s = self._cpu_s + sum(one.ru_utime + one.ru_stime for one in used)
            spent = {"cpu_s": cpu_s, "wall_s": self._wall_s + time.monotonic() - self._began}
            aside = self._path.with_name(f".{self._path.name}.part")
            aside.write_text(json.dumps(spent), encoding="utf-8")
            os.replace(aside, self._path)  # not synced: what a power cut takes from it is a second or two


def usage(path: Path) -> dict[str, float]:
    """What a meter has written down; zeros where there is nothing, or a power cut spoilt it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"cpu_s": float(found["cpu_s"]), "wall_s": float(found["wall_s"])}
    except (OSError, ValueError, LookupError, TypeError):
        return {"cpu_s": 0.0, "wall_s": 0.0}


def _follow(sentinel: int, meter: Meter) -> None:
    """Writes down the cost while the pipeline lives, and dies with it."""
    while not multiprocessing.connection.wait([sentinel], timeout=_METERED_S):
        with contextlib.suppress(OSError):  # a full disk must not end the watch over the pipeline's life
            meter.write()
    os.kill(os.getpid(), signal.SIGKILL)
