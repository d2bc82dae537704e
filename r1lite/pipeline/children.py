"""Stages in processes of their own: what one leaves in memory is gone when it ends, and a crash takes only itself.

The processes are forked from a server that has imported torch and transformers and done nothing with them, so each
stage begins at once (an import costs seconds of a CPU). A stage whose pipeline dies, be it by kill -9, dies with it.
"""

from __future__ import annotations

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

_COMMAND_LINE = "r1lite.cli"  # by name: it stands above the pipeline, which it runs
_PRELOADED = ["torch", "transformers", "r1lite.trainer.training", "r1lite.sampling"]


def start(argv: Sequence[str], log: Path, usage: Path) -> Any:
    """Begins `r1lite ARGV...` in a process; its output is added to `log`, what it cost is written to `usage`.

    Returns: the `multiprocessing.Process`; its exit code is the command's.
    """
    # Torch's threads wait by spinning otherwise; set before the server imports it.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=_run, args=(list(argv), str(log), str(usage)))
    process.start()
    return process


def _run(argv: list[str], log: str, usage: str) -> None:
    os.setsid()  # Ctrl-C is for the pipeline, which passes it on
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_die_with, args=(parent.sentinel,), daemon=True).start()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    began = time.monotonic()
    code = importlib.import_module(_COMMAND_LINE).main(argv)
    spent = sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )
    Path(usage).write_text(json.dumps({"cpu_s": spent, "wall_s": time.monotonic() - began}), encoding="utf-8")
    sys.stdout.flush()
    sys.exit(code)


def _die_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGKILL)
