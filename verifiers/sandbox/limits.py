"""Resource limits of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run. CPU time decides a time-out; the wall clock is the outer bound for programs that wait."""

    time_s: float = 4.0  # CPU seconds of the whole run
    wall_s: float | None = None  # None: max(2 * time_s, time_s + 1); time without a core is not counted
    memory_mib: int = 512  # per process, and with a cgroup or the watch for all of them together
    processes: int = 32  # processes and threads at a time
    output_mib: float = 8.0  # standard output, and each returned value
    file_mib: int = 32  # largest single file
    disk_mib: int = 64  # all files together, which are kept in memory
    inodes: int = 4096
    open_files: int = 256

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name == "wall_s":
                continue
            # Annotations are texts here. The kernel takes the limits that are declared as int as whole numbers only.
            types, what = (int, "whole number") if field.type == "int" else (int | float, "number")
            if isinstance(value, bool) or not isinstance(value, types) or not 0 < value < 1e6:
                raise ValueError(f"{field.name} must be a {what} above 0 and below 1,000,000, got {value!r}")
        if self.memory_mib < 64:
            raise ValueError(f"memory_mib must be at least 64 (the interpreter itself), got {self.memory_mib}")

    @property
    def wall(self) -> float:
        return self.wall_s if self.wall_s is not None else max(2 * self.time_s, self.time_s + 1)


DEFAULTS = Limits()
