"""The restrictions of a run, in order: each is a call that is prepared in the fork-server.

A forked child pays for every page it touches, even by changing a reference count. So everything that depends only on
the limits is prepared once, and the child walks a list of finished calls.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

from verifiers.sandbox import linux, rootfs, seccomp

NO_ADDRESS_LIMIT = 1  # request flag: the runtime reserves far more addresses than memory (V8)
HAS_INPUT = 2  # request flag: standard input is a file, to be copied to the run's own
NO_STREAMS = 4  # request flag: the first descriptor is the channel; standard streams are the fork-server's, null
POOL_KEEPS_TIME = 8  # request flag: the wall clock is shared with another run, and the judge watches it
_MOST_SENT = 0x7FFFF000  # bytes that one sendfile can copy
Call = Callable[[], int]
# The fork-server's own descriptor would carry flags and locks from one run to the next.
_FRESH_NULL: list[Call] = [
    linux.prepared_libc("close", 0), linux.prepared_libc("open", b"/dev/null", os.O_RDWR),
    linux.prepared_libc("dup2", 0, 1), linux.prepared_libc("dup2", 0, 2),
]  # fmt: skip


class Locks:
    """Prepares the calls for one kind of request; every call returns a negative number or raises on failure."""

    def __init__(self, config: dict[str, Any], procfs: int | None) -> None:
        self._config = config
        self._procfs = procfs
        self._namespaces = namespaces = procfs is not None
        self._filter = {
            many: seccomp.installer(seccomp.for_run(namespaces=namespaces, processes=many)) for many in (False, True)
        }
        self._capabilities = linux.drop_capabilities()
        self._scope = linux.landlock_scope() if namespaces and linux.landlock_abi() >= 6 else None
        self.scoped = self._scope is not None

    def calls(
        self, request: Sequence[Any], descriptors: Sequence[int], input_bytes: int, box: str | None
    ) -> list[Call]:
        """Returns the calls from the fork to the start of the submission.

        Args:
            request: sent by the pool: flags, CPU s, wall s, memory, processes, file size, disk, inodes, files.
            descriptors: become 0, 1, ... (with NO_STREAMS 3, 4, ...); the last is the trouble pipe, which the child
                closes once it has its job.
            input_bytes: maximum size of standard input, which also lies in the run's tmpfs.
            box: the run's folder if it has no tmpfs of its own.
        """
        flags, cpu_s, _, memory, processes, file_size, disk, inodes, files = request
        found: list[Call] = [] if self._procfs is None else [self._expendable]
        found += [
            linux.prepared_libc("dup2", one, target) for target, one in enumerate(descriptors, first_descriptor(flags))
        ]
        if self._scope is not None:
            found.append(self._scope)  # the next line closes its descriptor
        found.append(linux.prepared("close_range", first_descriptor(flags) + len(descriptors), 0xFFFFFFFF, 0))
        if flags & NO_STREAMS:
            found += _FRESH_NULL
        found.append(linux.prepared_libc("setsid"))  # otherwise kill(0, ...) would reach the fork-server
        if box is None:
            found += rootfs.box_calls(disk + input_bytes, inodes)
            if flags & HAS_INPUT:
                found += _copy_input(first_descriptor(flags) + len(descriptors))
        else:
            found.append(lambda: self._enter_folder(box))
        found += _limits(flags, cpu_s, memory, processes if self._namespaces else 0, file_size, files)
        found += [self._capabilities, self._filter[processes > 1]]
        return found

    def _expendable(self) -> int:
        """Lets the kernel end this run rather than its fork-server, which may be larger, when memory runs out."""
        with contextlib.suppress(OSError):  # /proc is read-only in some containers
            score = os.open("self/oom_score_adj", os.O_WRONLY, dir_fd=self._procfs)
            os.write(score, b"1000")
            os.close(score)
        return 0

    def _enter_folder(self, box: str) -> int:
        os.chdir(box)
        linux.die_with_parent()
        if self._config["level"] == "landlock":
            devices = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"]
            readable = [*rootfs.readable_paths(), "/etc/ld.so.cache", *self._config["packages"].values()]
            linux.landlock_files(readable, [box], devices)
        os.environ["HOME"] = os.environ["TMPDIR"] = box
        return 0


def first_descriptor(flags: int) -> int:
    """Returns the number in the run of the first descriptor that the pool sends."""
    return 3 if flags & NO_STREAMS else 0


def _copy_input(free: int) -> list[Call]:
    """Returns the calls that copy standard input to a file of the run, so that /dev/stdin is a file too.

    Args:
        free: the lowest number without a descriptor, which each `open` returns.
    """
    path = f"{rootfs.BOX}/stdin".encode()
    close = linux.prepared_libc("close", free)
    return [
        linux.prepared_libc("open", path, os.O_WRONLY | os.O_CREAT, 0o600),
        functools.partial(_until_done, linux.prepared_libc("sendfile", free, 0, None, _MOST_SENT)),
        close,
        linux.prepared_libc("open", path, os.O_RDONLY),
        linux.prepared_libc("dup2", free, 0),
        close,
    ]


def _until_done(send: Call) -> int:
    while (sent := send()) > 0:
        pass
    return sent


def _limits(flags: int, cpu_s: float, memory: int, processes: int, file_size: int, files: int) -> list[Call]:
    hard = linux.hard_limit(linux.RLIMIT_STACK)
    wanted = {
        # The watch reads the exact CPU clock; this limit ends a process that it misses. PID 1 ignores the soft one.
        linux.RLIMIT_CPU: int(cpu_s) + 2,
        linux.RLIMIT_FSIZE: file_size,
        linux.RLIMIT_NOFILE: files,
    }
    if not flags & NO_ADDRESS_LIMIT:
        wanted[linux.RLIMIT_AS] = memory
    if processes:
        wanted[linux.RLIMIT_NPROC] = processes + 1  # the fork-server counts too
    # Programs raise the limit of the stack as far as the machine's own; memory bounds it.
    return [linux.limit(linux.RLIMIT_STACK, min(memory, hard), hard), *(linux.limit(*one) for one in wanted.items())]
