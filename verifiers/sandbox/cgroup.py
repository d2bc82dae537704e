"""Memory and process limits by cgroup, version 1 or 2, where this process may make groups."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass

_NAME = re.compile(r"verifiers-(\d+)-\d+")


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of one fork-server: at most one per hierarchy."""

    memory: str = ""
    pids: str = ""
    version: int = 0

    @property
    def folders(self) -> list[str]:
        return sorted({folder for folder in (self.memory, self.pids) if folder})

    def out_of_memory_kills(self) -> int:
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        return _counter(f"{self.memory}/{name}", "oom_kill")

    def set_memory(self, size: int) -> None:
        _write(f"{self.memory}/{'memory.max' if self.version == 2 else 'memory.limit_in_bytes'}", str(size))

    def remove(self) -> None:
        for folder in self.folders:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def create(name: str, memory: int, processes: int) -> Groups | None:
    """Groups limited to `memory` bytes and `processes`; None where the machine does not let us."""
    name = f"verifiers-{os.getpid()}-{name}"
    try:
        return _create_v1(name, memory, processes) if _parents_v1() else _create_v2(name, memory, processes)
    except OSError:
        return None


def _create_v1(name: str, memory: int, processes: int) -> Groups:
    parents = _parents_v1()
    for parent in parents.values():
        _remove_stale(parent)
    groups = Groups(f"{parents['memory']}/{name}", f"{parents['pids']}/{name}", 1)
    try:
        for folder in groups.folders:
            os.mkdir(folder)
        groups.set_memory(memory)
        _write(f"{groups.pids}/pids.max", str(processes))
        with contextlib.suppress(OSError):  # swap accounting may be off
            _write(f"{groups.memory}/memory.memsw.limit_in_bytes", str(memory))
    except OSError:
        groups.remove()
        raise
    return groups


def _create_v2(name: str, memory: int, processes: int) -> Groups:
    own = _own_paths().get("")
    mounted = _mounts().get("cgroup2")
    if own is None or mounted is None:
        raise OSError("no cgroup file system")
    # A group that holds processes can't limit children, so the parent's is tried too: our group's sibling.
    here = os.path.normpath(mounted + "/" + own)
    error = OSError("no cgroup that may be divided")
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
    for controller in ("memory", "pids"):
        if controller not in own or controller not in mounted:
            return {}
        folder = os.path.normpath(mounted[controller] + "/" + own[controller])
        # In a container the path may be the machine's while the mount shows only our part of it.
        found[controller] = folder if os.path.isdir(folder) else mounted[controller]
    return found


def _own_paths() -> dict[str, str]:
    paths = {}
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def _mounts() -> dict[str, str]:
    """Controller (or "cgroup2") -> where it is mounted."""
    found = {}
    for line in _read("/proc/self/mounts").splitlines():
        _, target, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            found["cgroup2"] = target
        elif kind == "cgroup":
            found.update(dict.fromkeys(options.split(","), target))
    return found


def _remove_stale(parent: str) -> None:
    """Groups of a process that was killed before it could remove them."""
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


def _read(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
