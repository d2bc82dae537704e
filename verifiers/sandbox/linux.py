"""Linux calls that Python does not provide: mounts, namespaces, capabilities, Landlock. Uses ctypes only.

It runs inside the fork-servers, so it imports nothing heavy: constants of `signal` and `resource` are numbers here.
Every function raises OSError with the name of the call.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

MACHINE = os.uname().machine
_NUMBERS = {  # calls for which libc may have no wrapper; beyond 424 all architectures have the same numbers
    "x86_64": {"clone": 56, "capset": 126, "pivot_root": 155, "seccomp": 317, "execveat": 322},
    "aarch64": {"clone": 220, "capset": 91, "pivot_root": 41, "seccomp": 277, "execveat": 281},
}
_COMMON = {
    "close_range": 436,
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
CLONE_PIDFD = 0x1000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE, _AT_EMPTY_PATH = -100, 0x8000, 0x1000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS = 1, 4, 24, 28
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 38, 47

SIGKILL, _SIGCHLD = 9, 17
RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_STACK, RLIMIT_CORE, RLIMIT_NPROC, RLIMIT_NOFILE = 0, 1, 3, 4, 6, 7
RLIMIT_MEMLOCK, RLIMIT_AS, RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE, RLIM_INFINITY = 8, 9, 11, 12, (1 << 64) - 1

# PyDLL keeps the GIL: a raw clone() must return in the child with the same thread state.
_libc = ctypes.PyDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long


def supported() -> bool:
    """True on Linux on a processor whose system call numbers are known here."""
    return sys.platform == "linux" and MACHINE in _NUMBERS


def number(name: str) -> int:
    return _COMMON.get(name) or _NUMBERS[MACHINE][name]


def _check(result: int, name: str) -> int:
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{name}: {os.strerror(errno)}")
    return result


def syscall(name: str, *arguments: int | bytes | object) -> int:
    return _check(prepared(name, *arguments)(), name)


def prepared(name: str, *arguments: int | bytes | object) -> Callable[[], int]:
    """Returns a system call with prepared arguments: a forked child need not build them, and so copies fewer pages.

    The call returns -1 on failure, and `failure` returns the error.
    """
    return functools.partial(_syscall, ctypes.c_long(number(name)), *_ready(arguments))


def prepared_libc(name: str, *arguments: int | bytes | object) -> Callable[[], int]:
    """Returns the same for a function of libc, for calls whose name is the same on every architecture."""
    return functools.partial(getattr(_libc, name), *_ready(arguments))


def _ready(arguments: Sequence[int | bytes | object]) -> list[object]:
    return [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]


def failure() -> OSError:
    """Returns the error of the last prepared call, which returned -1."""
    errno = ctypes.get_errno()
    return OSError(errno, os.strerror(errno))


def poll(descriptors: ctypes.Array[Any], wait_ms: int) -> None:
    """poll(2) on an array of struct pollfd."""
    _check(_libc.poll(descriptors, ctypes.c_ulong(len(descriptors)), ctypes.c_int(wait_ms)), "poll")


def unshare(flags: int) -> None:
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags), data.encode() or None
    )
    _check(result, f"mount {target}")


def unmount(target: str) -> None:
    _check(_libc.umount2(target.encode(), ctypes.c_int(MNT_DETACH)), f"umount {target}")


def make_read_only(target: str, *, devices: bool = False) -> None:
    """Makes a mount and everything mounted below it read-only and nosuid; devices work only if requested."""
    attributes = _ATTR_RDONLY | _ATTR_NOSUID | (0 if devices else _ATTR_NODEV)
    wanted = struct.pack("=QQQQ", attributes, 0, 0, 0)
    syscall("mount_setattr", _AT_FDCWD, target.encode(), _AT_RECURSIVE, wanted, len(wanted))


def pivot_root(new: str, old: str) -> None:
    syscall("pivot_root", new.encode(), old.encode())


def prepared_fork(flags: int, pidfd: ctypes.c_int) -> Callable[[], int]:
    """os.fork() with clone flags, always including CLONE_PIDFD: returns 0 in the child, its pid in the parent.

    Only for a process with one thread. It omits what Python does around a fork (locks of other threads, a new seed for
    `random`). This takes a third of the time of a fork, and every run starts from the same state.
    """
    arguments = (flags | CLONE_PIDFD | _SIGCHLD, None, ctypes.byref(pidfd), None, None)
    return prepared("clone", *arguments)


def limit(kind: int, size: int, hard: int | None = None) -> Callable[[], int]:
    """Returns the call that sets a resource limit, soft and hard."""
    return prepared_libc("setrlimit", kind, struct.pack("=QQ", size, size if hard is None else hard))


def hard_limit(kind: int) -> int:
    found = (ctypes.c_uint64 * 2)()
    _check(prepared_libc("getrlimit", kind, found)(), "getrlimit")
    return int(found[1])


def prctl(option: int, argument: int = 0, second: int = 0) -> int:
    result: int = _libc.prctl(
        ctypes.c_int(option), ctypes.c_ulong(argument), ctypes.c_ulong(second), ctypes.c_ulong(0), ctypes.c_ulong(0)
    )
    return result


def die_with_parent() -> None:
    _check(prctl(_PR_SET_PDEATHSIG, SIGKILL), "prctl(PDEATHSIG)")


def set_dumpable() -> None:
    """Makes /proc/self readable again, which belongs to root after a change of uid."""
    _check(prctl(_PR_SET_DUMPABLE, 1), "prctl(DUMPABLE)")


def no_new_privileges() -> None:
    _check(prctl(_PR_SET_NO_NEW_PRIVS, 1), "prctl(NO_NEW_PRIVS)")


def lock_privileges() -> None:
    """Prevents any later execve from restoring a capability: empty bounding set, no special root, no_new_privs."""
    for capability in range(64):
        if prctl(_PR_CAPBSET_DROP, capability) < 0 and ctypes.get_errno() == 22:
            break  # EINVAL: beyond the kernel's last capability
    prctl(_PR_CAP_AMBIENT, 4)
    prctl(_PR_SET_SECUREBITS, 0b101111)  # NOROOT and NO_SETUID_FIXUP, both locked; KEEP_CAPS off and locked
    no_new_privileges()


_CAP_HEADER = struct.pack("=Ii", 0x20080522, 0)
_NO_CAPS = bytes(24)


def drop_capabilities() -> Callable[[], int]:
    """Returns the call that drops every capability."""
    return prepared("capset", _CAP_HEADER, _NO_CAPS)


def exec_descriptor(descriptor: int, arguments: list[str], environment: dict[str, str]) -> None:
    """execve of an open file (a memfd); needs no /proc."""
    argv = (ctypes.c_char_p * (len(arguments) + 1))(*[item.encode() for item in arguments], None)
    pairs = [f"{key}={value}".encode() for key, value in environment.items()]
    envp = (ctypes.c_char_p * (len(pairs) + 1))(*pairs, None)
    syscall("execveat", descriptor, b"", argv, envp, _AT_EMPTY_PATH)


# Landlock: read rights on readable paths, all rights on the run's own directory.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_SCOPE_ABSTRACT, _SCOPE_SIGNAL = 1, 2


def landlock_abi() -> int:
    """Returns the kernel's Landlock version; 0 if it has none or it is switched off."""
    try:
        return syscall("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def landlock_scope() -> Callable[[], int]:
    """Returns the call after which abstract sockets of other runs can't be reached (ABI 6).

    Each caller gets its own scope. The call takes microseconds; a network namespace takes hundreds.
    """
    attributes = struct.pack("=QQQ", 0, 0, _SCOPE_ABSTRACT)
    rules = syscall("landlock_create_ruleset", attributes, len(attributes), 0)
    return prepared("landlock_restrict_self", rules, 0)


def landlock_files(readable: list[str], writable: list[str], devices: list[str]) -> None:
    """Restricts this process to opening these paths; no TCP; no signal or abstract socket leaves the run (ABI 6)."""
    abi = landlock_abi()
    handled = (1 << {1: 13, 2: 14}.get(abi, 15 if abi < 5 else 16)) - 1
    network = 3 if abi >= 4 else 0
    scoped = _SCOPE_ABSTRACT | _SCOPE_SIGNAL if abi >= 6 else 0
    attributes = struct.pack("=QQQ", handled, network, scoped)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    rules = syscall("landlock_create_ruleset", attributes[:size], size, 0)
    rights = [
        (readable, _EXECUTE | _READ_FILE | _READ_DIR),
        (writable, handled & ~_IOCTL),
        (devices, _READ_FILE | _WRITE_FILE),
    ]
    for paths, allowed in rights:
        for path in paths:
            _add_rule(rules, path, allowed & handled)
    _restrict(rules)


def _add_rule(rules: int, path: str, allowed: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        allowed &= _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL
    rule = struct.pack("=Qi", allowed, descriptor)
    syscall("landlock_add_rule", rules, 1, rule, 0)
    os.close(descriptor)


def _restrict(rules: int) -> None:
    syscall("landlock_restrict_self", rules, 0)
    os.close(rules)
