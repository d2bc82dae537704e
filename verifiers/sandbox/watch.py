"""Watches one run from the fork-server: CPU clock, wall clock, and without cgroups its memory and disk."""

from __future__ import annotations

import contextlib
import os
import time

_INTERVAL_S = 0.05
_CORES = len(os.sched_getaffinity(0))
_TICKS = os.sysconf("SC_CLK_TCK")
CPU, WALL, MEMORY, OVERLOAD, DISK, MANY = 2, 3, 4, 5, 6, 8  # why a run was killed (1: the pool asked)
PATIENCE = 10  # a run without a core may take this many times its wall limit before the machine counts as overloaded
_DEEPEST = 100  # nested folders, if no tmpfs bounds them
_CHURN_S = 0.01  # between looks at a run whose processes end uncounted


class Watch:
    """Decides when a run has used up its limits.

    Time that a run is ready but without a core is the machine's fault and is added to its wall limit. A run of several
    processes may be waiting for itself: as long as its own CPU time explains the waiting, that time counts. Where no
    cgroup counts that time, so does all waiting while the run has more processes and threads than there are cores.

    Args:
        procfs: a descriptor of the machine's /proc.
        meter: a descriptor of the file in which a cgroup counts CPU time; without it, a child that nobody waits for
            counts only as far as it was seen.
    """

    def __init__(self, procfs: int | None, meter: int | None = None) -> None:
        self._procfs = procfs if procfs is not None else os.open("/proc", os.O_PATH | os.O_CLOEXEC)
        self._meter = meter
        self.own = os.readlink("self", dir_fd=self._procfs)  # our pid in the machine's /proc

    def begin(
        self, pid: int, started: float, cpu_s: float, wall_s: float, patient: bool, memory: int, box: str | None,
        disk: int, inodes: int, processes: int,
    ) -> None:  # fmt: skip
        """Starts to watch a run.

        Args:
            patient: another process watches the wall clock.
            memory: limit in bytes; 0: a cgroup limits it.
            box: a folder whose size nothing else limits; then nothing else limits the run's threads either.
        """
        self.reason = 0
        self.peak = 0
        self.cpu = 0.0
        self.waited = 0.0
        self._clock = (~pid << 3) | 2  # the kernel's name for the CPU clock of another process
        self._box, self._started, self._cpu_s, self._wall_s = box, started, cpu_s, wall_s
        self._patient, self._memory, self._disk, self._inodes, self._processes = (
            patient, memory, disk, inodes, processes,
        )  # fmt: skip
        self._next = started
        self._interval = _INTERVAL_S
        self._root = ""
        self._own_wait = self._crowded_wait = 0.0  # all waiting, and that while the run alone fills the cores
        self._alone = True
        self._tasks_seen = 1
        self._seen: dict[str, float] = {}  # pid -> its own CPU seconds at the last look
        self._metered = self._metered_s()

    def next_look_ms(self) -> int:
        return max(1, int((self._next - time.monotonic()) * 1000) + 1)

    def look(self) -> bool:
        """Returns True if the run must end; `reason` says why."""
        now = time.monotonic()
        if now < self._next:
            return False
        try:
            self.cpu = max(self.cpu, time.clock_gettime(self._clock))
        except OSError:  # it has ended since the poll
            self._next = now + _INTERVAL_S
            return False
        elapsed = now - self._started
        self.look_at_use()
        self._next = now + self._interval
        if self.cpu >= self._cpu_s:
            self.reason = CPU
        elif self._memory and self.peak > self._memory:
            self.reason = MEMORY
        elif self._box and self._tasks_seen > self._processes:
            self.reason = MANY
        elif self._box and (self._written() > 2 * self._disk or _is_larger(self._box, self._disk, self._inodes)):
            self.reason = DISK
        elif not self._patient and elapsed - self.waited >= self._wall_s:
            self.reason = WALL
        elif elapsed >= self._wall_s * PATIENCE:
            self.reason = OVERLOAD
        else:
            left = min(self._cpu_s - self.cpu, self._wall_s - (elapsed - self.waited))
            self._next = min(self._next, now + max(0.002, left))
            return False
        return True

    def last_look(self) -> None:
        """After the end, counts the CPU time of children that nobody waited for."""
        if self._meter is not None:
            self.cpu = max(self.cpu, self._metered_s() - self._metered)

    def look_at_use(self) -> None:
        """Measures CPU and memory of everything below PID 1 of the run, from the machine's own /proc."""
        if not self._root:
            self._root = self._find_root()
            if not self._root:
                return
        try:
            _, waited, _ = self._read(f"{self._root}/schedstat").split()
            more, self._own_wait = int(waited) / 1e9 - self._own_wait, int(waited) / 1e9
        except (OSError, ValueError):  # no schedstat in this kernel, or the run has just ended
            more = 0.0
        pids = self._tree(self._root)
        self._tasks_seen = len(self._tasks_or_none(pids[0]))
        if len(pids) - 1 + self._tasks_seen > _CORES:
            self._crowded_wait += more
        self._alone = self._alone and len(pids) == 1 and self._tasks_seen <= 1
        if len(pids) > 1 or self._seen:
            self._count_cpu(pids)
        if self._alone:
            self.waited = self._own_wait
        elif self._meter is not None:
            # A run that competes with itself uses a core all the time that it waits.
            self.waited = max(0.0, self._own_wait - self.cpu)
        else:
            self.waited = min(max(0.0, self._own_wait - self._crowded_wait - self.cpu), self._wall_s / 2)
        self.peak = max(self.peak, self._memory_of_all(pids))

    def _count_cpu(self, pids: list[str]) -> None:
        """Counts CPU time. A dead child's time goes to the parent that waits for it; if none does, the cgroup counts
        it, or else what was seen of the child."""
        if self._meter is not None:
            self.cpu = max(self.cpu, self._metered_s() - self._metered)
            return
        waited_for = 0.0
        vanished = set(self._seen) - set(pids)
        for pid in pids:
            try:
                fields = self._read(f"{pid}/stat").rpartition(")")[2].split()
            except OSError:
                continue
            own, children = (sum(map(int, fields[first : first + 2])) / _TICKS for first in (11, 13))
            self._seen[pid] = max(self._seen.get(pid, 0.0), own)
            waited_for += children
        alive = sum(self._seen.get(pid, 0.0) for pid in pids)
        dead = sum(self._seen[pid] for pid in self._seen.keys() - set(pids))
        if vanished and dead > waited_for:
            self._interval = _CHURN_S
        self.cpu = max(self.cpu, alive + max(dead, waited_for))

    def _metered_s(self) -> float:
        if self._meter is None:
            return 0.0
        said = os.pread(self._meter, 200, 0).split()
        # Version 2 writes b"usage_usec 1234 ...", version 1 only nanoseconds.
        return int(said[1]) / 1e6 if said[0] == b"usage_usec" else int(said[0]) / 1e9

    def _written(self) -> int:
        """Returns bytes written to disk, including unnamed files; 0 if the kernel doesn't count them."""
        with contextlib.suppress(OSError, ValueError):
            for line in self._read(f"{self._root}/io").splitlines():
                if line.startswith("write_bytes:"):
                    return int(line.split()[1])
        return 0

    def _find_root(self) -> str:
        """Returns the run's process: runs are one at a time, so it is the only child. "" if the kernel doesn't tell."""
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

    def _memory_of_all(self, pids: list[str]) -> int:
        found = [self._memory_of(pid) for pid in pids]
        own, shared = sum(own for own, _ in found), sum(shared for _, shared in found)
        if not self._memory or own + shared <= self._memory:
            return own + shared
        # Shared memory is counted once per process: only now is it worth reading the proportional shares.
        return own + min(shared, sum(self._shared_part(pid, most) for pid, (_, most) in zip(pids, found, strict=True)))

    def _memory_of(self, pid: str) -> tuple[int, int]:
        """Returns bytes of its own memory, and of memory shared with others that belongs to no file."""
        fields = {}
        with contextlib.suppress(OSError, ValueError):
            for line in self._read(f"{pid}/status").splitlines():
                name, _, value = line.partition(":")
                if name in ("RssAnon", "RssShmem"):
                    fields[name] = int(value.split()[0]) * 1024
        return fields.get("RssAnon", 0), fields.get("RssShmem", 0)

    def _shared_part(self, pid: str, most: int) -> int:
        with contextlib.suppress(OSError, ValueError):
            for line in self._read(f"{pid}/smaps_rollup").splitlines():
                if line.startswith("Pss_Shmem:"):
                    return int(line.split()[1]) * 1024
        return most

    def _read(self, path: str) -> str:
        descriptor = os.open(path, os.O_RDONLY, dir_fd=self._procfs)
        try:
            return os.read(descriptor, 1 << 16).decode("ascii", "replace")
        finally:
            os.close(descriptor)


def _is_larger(path: str, size: int, inodes: int) -> bool:
    """True if the folder holds more bytes or entries than these, or is too deep to be examined."""
    entries, todo = 0, [(path, 0)]
    while todo:
        folder, depth = todo.pop()
        if depth > _DEEPEST:
            return True
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    entries += 1
                    status = entry.stat(follow_symlinks=False)
                    size -= status.st_blocks * 512
                    if size < 0 or entries > inodes:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        todo.append((entry.path, depth + 1))
        except OSError:  # removed meanwhile, or closed to us
            continue
    return False


KILLED_BY_WATCH = {
    CPU: "the CPU time limit was reached",
    WALL: "the wall-clock limit was reached",
    MEMORY: "the memory limit was reached",
    DISK: "the disk limit was reached",
    MANY: "there are more threads than allowed",
}
