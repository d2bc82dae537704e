"""Limits on memory and processes, and CPU time, by cgroup version 1 or 2, where this process may create groups."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from dataclasses import dataclass, field

_NAME = re.compile(r"verifiers-(\d+)-\d+")

_CHARGED_AHEAD = 2 << 20  # bytes: each processor reserves some for its next pages
# Resources that this process itself may have exhausted; these errors say nothing about the machine.
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ETOOMANYREFS)


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of one fork-server: at most one per hierarchy."""

    memory: str = ""
    pids: str = ""
    version: int = 0
    accounts: str = ""  # version 1: the group that counts CPU time, if any
    _hits: list[int] = field(default_factory=lambda: [0])

    @property
    def folders(self) -> list[str]:
        return sorted({folder for folder in (self.memory, self.pids, self.accounts) if folder})

    def out_of_memory_kills(self) -> int:
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        return _counter(f"{self.memory}/{name}", "oom_kill")

    def limit_reached(self) -> bool:
        """Returns whether the group's own limit was reached since the last call; limits above it don't count.

        Version 1 counts no such events (`failcnt` stays 0), but it records the highest use.
        """
        if self.version == 2:
            hits = _counter(f"{self.memory}/memory.events", "oom")
            before, self._hits[:] = self._hits[0], [hits]
            return hits > before
        found = False
        for name in ("", "memsw."):
            highest, limit = (_number(f"{self.memory}/memory.{name}{what}_in_bytes") for what in ("max_usage", "limit"))
            found |= highest > 0 and highest >= limit - _CHARGED_AHEAD
            with contextlib.suppress(OSError):
                _write(f"{self.memory}/memory.{name}max_usage_in_bytes", "0")
        return found

    @property
    def cpu(self) -> str:
        """Returns the file with the CPU time of all processes that ever ran in the group; "" if there is none."""
        if self.version == 2:
            return f"{self.memory}/cpu.stat"
        return self.accounts and f"{self.accounts}/cpuacct.usage"

    def set_memory(self, size: int) -> None:
        if self.version == 2:
            _write(f"{self.memory}/memory.max", str(size))
            return
        limits = [f"{self.memory}/memory.limit_in_bytes", f"{self.memory}/memory.memsw.limit_in_bytes"]
        if _number(limits[0]) < size:  # the limit with swap may never be below the one without
            limits.reverse()
        for path in limits:
            if "memsw" not in path or os.path.exists(path):  # swap accounting may be off
                _write(path, str(size))

    def remove(self) -> None:
        for folder in self.folders:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def create(name: str, memory: int, processes: int) -> Groups | None:
    """Returns groups limited to `memory` bytes and `processes`; None if the machine does not allow them.

    Raises OSError if this process has run out of descriptors or memory, which says nothing about the machine.
    """
    name = f"verifiers-{os.getpid()}-{name}"
    try:
        return _create_v1(name, memory, processes) if _parents_v1() else _create_v2(name, memory, processes)
    except OSError as error:
        if error.errno in EXHAUSTED:
            raise
        return None


def _create_v1(name: str, memory: int, processes: int) -> Groups:
    parents = _parents_v1()
    for parent in parents.values():
        _remove_stale(parent)
    accounts = f"{parents['cpuacct']}/{name}" if "cpuacct" in parents else ""
    groups = Groups(f"{parents['memory']}/{name}", f"{parents['pids']}/{name}", 1, accounts)
    try:
        for folder in groups.folders:
            os.mkdir(folder)
        groups.set_memory(memory)
        _write(f"{groups.pids}/pids.max", str(processes))
    except OSError:
        groups.remove()
        raise
    return groups


def _create_v2(name: str, memory: int, processes: int) -> Groups:
    own = _own_paths().get("")
    mounted = _mounts().get("cgroup2")
    if own is None or mounted is None:
        raise OSError("no cgroup file system")
    # A group that holds processes can't limit children, so the parent is tried too: a sibling of our group.
    here = os.path.normpath(mounted + "/" + own)
    error = OSError("no cgroup that can be divided")
    for parent in dict.fromkeys((here, os.path.dirname(here))):
        if not parent.startswith(mounted):
            continue
        folder = f"{parent}/{name}"
        try:
            _remove_stale(parent)
            if not {"memory", "pids"} <= set(_read(f"{parent}/cgroup.subtree_control").split()):
                _write(f"{parent}/cgroup.subtree_control", "+memory +pids")
            os.mkdir(folder)
        except OSError as caught:
            error = caught
            continue
        groups = Groups(folder, folder, 2)
        try:
            groups.set_memory(memory)
            _write(f"{folder}/pids.max", str(processes))
            with contextlib.suppress(OSError):
                _write(f"{folder}/memory.swap.max", "0")
        except OSError:
            groups.remove()
            raise
        return groups
    raise error


def _parents_v1() -> dict[str, str]:
    own, mounted = _own_paths(), _mounts()
    found: dict[str, str] = {}
    for controller in ("memory", "pids", "cpuacct"):
        if controller not in own or controller not in mounted:
            if controller == "cpuacct":
                continue
            return {}
        folder = os.path.normpath(mounted[controller] + "/" + own[controller])
        # In a container the path may be that of the host, while the mount shows only our part of it.
        found[controller] = folder if os.path.isdir(folder) else mounted[controller]
    return found


def _own_paths() -> dict[str, str]:
    paths = {}
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def _mounts() -> dict[str, str]:
    """Returns controller (or "cgroup2") -> mount point."""
    found = {}
    for line in _read("/proc/self/mounts").splitlines():
        _, target, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            found["cgroup2"] = target
        elif kind == "cgroup":
            found.update(dict.fromkeys(options.split(","), target))
    return found


def _remove_stale(parent: str) -> None:
    """Removes groups of a process that was killed before it could remove them."""
    for entry in os.listdir(parent):
        match = _NAME.fullmatch(entry)
        if match and not os.path.exists(f"/proc/{match[1]}"):
            with contextlib.suppress(OSError):
                os.rmdir(f"{parent}/{entry}")


def _counter(path: str, name: str) -> int:
    try:
        lines = _read(path).splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(name + " "))


def _number(path: str) -> int:
    try:
        return int(_read(path))
    except (OSError, ValueError):  # swap accounting may be off
        return 0


def _read(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
