"""Looks after one run from the fork-server: CPU clock, wall clock, and without cgroups its memory and disk."""

from __future__ import annotations

import os
import time

_INTERVAL_S = 0.05
_FIRST_S = 0.02
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
CPU, WALL, MEMORY, OVERLOAD, DISK = 2, 3, 4, 5, 6  # why a run was killed (1: the pool asked)
_PATIENCE = 10  # a starved run may take this many times its wall limit before the machine is called overloaded


class Watch:
    """Decides when a run has used up what it was given.

    Time a run of one thread spends ready but without a core is the machine's fault and is added to its wall limit; a
    run of several may be waiting for itself, and gets half its limit more at most.
    """

    def __init__(self, procfs: int | None) -> None:
        self._procfs = procfs if procfs is not None else os.open("/proc", os.O_PATH | os.O_CLOEXEC)
        self.own = os.readlink("self", dir_fd=self._procfs)  # our pid as the machine's /proc counts

    def begin(
        self, pid: int, box: str | None, started: float, cpu_s: float, wall_s: float, memory: int, disk: int
    ) -> None:
        """`memory` 0: a cgroup looks after it; `box`: a folder whose size nobody else limits."""
        self.reason = 0
        self.peak = 0
        self.cpu = 0.0
        self.waited = 0.0
        self._clock = (~pid << 3) | 2  # the kernel's name for the CPU clock of another process
        self._box, self._started, self._cpu_s, self._wall_s = box, started, cpu_s, wall_s
        self._memory, self._disk = memory, disk
        self._next = started + _FIRST_S
        self._root = ""
        self._own_wait = 0.0
        self._alone = True

    def next_look_ms(self) -> int:
        return max(1, int((self._next - time.monotonic()) * 1000) + 1)

    def look(self) -> bool:
        """True when the run must end; `reason` says why."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + _INTERVAL_S
        try:
            self.cpu = time.clock_gettime(self._clock)
        except OSError:  # it ended between the poll and now
            return False
        elapsed = now - self._started
        self._look_at_tree()
        if self.cpu >= self._cpu_s:
            self.reason = CPU
        elif self._memory and self.peak > self._memory:
            self.reason = MEMORY
        elif self._box and _folder_size(self._box) > self._disk:
            self.reason = DISK
        elif elapsed - self.waited >= self._wall_s:
            self.reason = WALL
        elif elapsed >= self._wall_s * _PATIENCE:
            self.reason = OVERLOAD
        else:
            left = min(self._cpu_s - self.cpu, self._wall_s - (elapsed - self.waited))
            self._next = min(self._next, now + max(0.002, left))
            return False
        return True

    def _look_at_tree(self) -> None:
        """CPU and memory of everything below PID 1 of the run, by the machine's own /proc."""
        if not self._root:
            self._root = self._find_root()
            if not self._root:
                return
        try:
            _, waited, _ = self._read(f"{self._root}/schedstat").split()
            self._own_wait = int(waited) / 1e9
        except (OSError, ValueError):  # no schedstat in this kernel, or the run has just ended
            pass
        pids = self._tree(self._root)
        self._alone = self._alone and len(pids) == 1 and len(self._tasks_or_none(pids[0])) <= 1
        # A run that is its own competition can't call the machine overloaded, or it would dodge its verdict.
        self.waited = self._own_wait if self._alone else min(self._own_wait, self._wall_s / 2)
        if len(pids) > 1:
            self.cpu = max(self.cpu, sum(map(self._cpu_of, pids)))
        self.peak = max(self.peak, sum(map(self._memory_of, pids)))

    def _find_root(self) -> str:
        """One run at a time, so the only child is the run. "" where the kernel doesn't tell."""
        try:
            return self._read(f"{self.own}/task/{self.own}/children").strip().partition(" ")[0]
        except OSError:
            return ""

    def _tree(self, root: str) -> list[str]:
        found: list[str] = []
        todo = [root]
        while todo and len(found) < 10_000:
            pid = todo.pop()
            found.append(pid)
            try:
                for task in self._tasks(pid):
                    todo += self._read(f"{pid}/task/{task}/children").split()
            except OSError:
                continue
        return found

    def _tasks_or_none(self, pid: str) -> list[str]:
        try:
            return self._tasks(pid)
        except OSError:
            return []

    def _tasks(self, pid: str) -> list[str]:
        folder = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._procfs)
        try:
            return os.listdir(folder)
        finally:
            os.close(folder)

    def _cpu_of(self, pid: str) -> float:
        try:
            fields = self._read(f"{pid}/stat").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return sum(map(int, fields[11:15])) / _TICKS  # its own user and system time and its dead children's

    def _memory_of(self, pid: str) -> int:
        try:
            _, resident, shared, *_ = map(int, self._read(f"{pid}/statm").split())
        except (OSError, ValueError):
            return 0
        return (resident - shared) * _PAGE

    def _read(self, path: str) -> str:
        descriptor = os.open(path, os.O_RDONLY, dir_fd=self._procfs)
        try:
            return os.read(descriptor, 1 << 16).decode("ascii", "replace")
        finally:
            os.close(descriptor)


def _folder_size(path: str) -> int:
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue
    return total


KILLED_BY_WATCH = {
    CPU: "the CPU time limit was reached",
    WALL: "the wall-clock limit was reached",
    MEMORY: "the memory limit was reached",
    DISK: "the disk limit was reached",
}
