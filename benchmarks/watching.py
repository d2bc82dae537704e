"""CPU seconds and memory of a process and of all its descendants, including those that have ended."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import TracebackType

import psutil

_CPU_EVERY_S, _MEMORY_EVERY = 0.2, 5  # memory at every fifth measurement
_DAEMONS = ("raylet", "gcs_server", "dashboard", "log_monitor", "runtime_env", "ray::IDLE", "monitor.py")


class Watch:
    """Measures repeatedly in a thread until the context ends.

    Attributes:
        peak_mib: peak proportional memory of all processes except this one and Ray's daemons.
        daemons_mib: peak proportional memory of Ray's daemons and idle processes.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._root, self._cpu, self._own_s = psutil.Process(pid), dict[int, float](), 0.0
        self.peak_mib = self.daemons_mib = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def cpu_s(self) -> float:
        """CPU seconds at the last measurement."""
        return sum(self._cpu.values())

    def __enter__(self) -> Watch:
        self._look(memory=True)
        self._began = self.cpu_s
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._look(memory=False)

    @property
    def spent_s(self) -> float:
        """CPU seconds since the context began, without those of measuring."""
        return self.cpu_s - self._began - self._own_s

    def _watch(self) -> None:
        looks = 0
        while not self._ended.wait(_CPU_EVERY_S):
            looks += 1
            self._look(memory=looks % _MEMORY_EVERY == 0)
            self._own_s = time.thread_time()

    def _look(self, *, memory: bool) -> None:
        ours = daemons = 0.0
        try:
            family = [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in family:
            try:
                times = process.cpu_times()
                self._cpu[process.pid] = times.user + times.system
                if memory and process.pid != os.getpid():
                    mib, line = _pss_mib(process.pid), " ".join(process.cmdline())
                    if any(name in line for name in _DAEMONS):
                        daemons += mib
                    else:
                        ours += mib
            except (psutil.NoSuchProcess, OSError):
                continue
        self.peak_mib, self.daemons_mib = max(self.peak_mib, ours), max(self.daemons_mib, daemons)


def _pss_mib(pid: int) -> float:
    """Proportional memory of a process: memory that several processes share counts once in total."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)
