"""The trusted side's fork-servers: started, handed out one run at a time, restarted, closed."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import itertools
import json
import marshal
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.abc import InspectLoader

from verifiers.core import VerifierError
from verifiers.sandbox import cgroup, locks, zygote
from verifiers.sandbox.limits import MIB, Limits
from verifiers.sandbox.watch import CPU, DISK, MEMORY, OVERLOAD, WALL

_START_S = 60.0  # a fork-server on a busy machine
_GRACE_S = 30.0  # beyond the longest a run may take by its own watch
_WORTH_TELLING_S = 0.05
_OVERHEAD_MIB = 96  # the fork-server's own share of its cgroup
_MODULES = ("child", "heap", "linux", "locks", "rootfs", "seccomp", "watch", "wire", "zygote")
# Our modules come compiled, by standard input: a server that compiles them itself keeps a scattered memory, and every
# fork copies its tables.
_BOOTSTRAP = """
import marshal, os, sys, types, _frozen_importlib
compiled = marshal.load(sys.stdin.buffer)
os.dup2(1, 0)
class Compiled:
    def find_spec(name, path=None, target=None):
        return _frozen_importlib.ModuleSpec(name, Compiled) if name in compiled else None
    def create_module(spec):
        return None
    def exec_module(module):
        exec(compiled.pop(module.__name__), module.__dict__)
sys.meta_path.insert(0, Compiled)
for name in ("verifiers", "verifiers.sandbox"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
for name in list(compiled):
    __import__(name)
del sys.meta_path[0]
sys.modules["verifiers.sandbox.zygote"].main({config!r})
"""


@functools.cache
def _compiled(names: tuple[str, ...]) -> bytes:
    """The code of modules, as the fork-server's bootstrap reads it."""
    found = {}
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or not isinstance(spec.loader, InspectLoader):
            raise VerifierError(f"the code of {name}, which a sandbox server needs, can't be found")
        found[name] = spec.loader.get_code(name)
    return marshal.dumps(found)


@dataclass(frozen=True, slots=True)
class Usage:
    """How a run ended and what it used."""

    status: int  # as os.wait gives it
    killed: int  # 0, or why the fork-server ended it (watch.CPU, ...)
    cpu_s: float
    wall_s: float
    waited_s: float  # ready but without a core
    peak_bytes: int
    out_of_memory: bool = False

    @property
    def verdict(self) -> str:
        """TLE, MLE, SV, or "" where the run ended by itself."""
        if self.killed in (CPU, WALL):
            return "TLE"
        if self.killed == MEMORY or self.out_of_memory:
            return "MLE"
        if self.killed == DISK:
            return "OLE"
        if self.signal == signal.SIGSYS:
            return "SV"
        if self.signal == signal.SIGXFSZ:
            return "OLE"
        if self.signal in (signal.SIGXCPU, signal.SIGKILL) and not self.killed:
            return "TLE"  # nobody inside can send it to PID 1 of the run: the kernel's own CPU limit did
        return ""

    @property
    def signal(self) -> int:
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0

    @property
    def exit_code(self) -> int:
        return os.WEXITSTATUS(self.status) if os.WIFEXITED(self.status) else -1

    def __str__(self) -> str:
        waited = f" ({self.waited_s:.2f} s of it without a core)" if self.waited_s > _WORTH_TELLING_S else ""
        return f"cpu {self.cpu_s:.3f} s, wall {self.wall_s:.3f} s{waited}, peak {self.peak_bytes / MIB:.0f} MiB"


class ServerDied(VerifierError):
    """A fork-server went away in the middle of a run."""


def _usage(said: bytes) -> Usage:
    _, status, killed, _, wall_s, cpu_s, waited_s, peak, user, user_us, system, system_us, resident = (
        zygote.REPLY.unpack_from(said)
    )
    own_s = user + system + (user_us + system_us) / 1e6
    return Usage(status, killed, max(own_s, cpu_s), wall_s, waited_s, max(resident * 1024, peak))


class _Server:
    """One fork-server process."""

    _numbers = itertools.count()

    def __init__(
        self, level: str, limits: Limits, packages: dict[str, str], preload: Sequence[str], trusted: Sequence[str]
    ) -> None:
        self._limits = limits
        self._memory = 0
        self._groups: cgroup.Groups | None = None
        if level == "full":
            self._groups = cgroup.create(
                str(next(self._numbers)), (limits.memory_mib + _OVERHEAD_MIB) * MIB, limits.processes + 8
            )
            if self._groups is None:
                raise VerifierError("the cgroup that a fork-server needs can't be made any more")
        self._kills = 0
        self.box = tempfile.mkdtemp(prefix="verifiers-box-") if level in ("landlock", "rlimit-only") else ""
        config = {
            "level": level,
            "cgroups": self._groups.folders if self._groups else [],
            "packages": packages,
            "package_path": "",
            "preload": list(preload),
            "root_becomes": 65534,
            "box_parent": self.box,
        }
        code = _compiled((*(f"verifiers.sandbox.{name}" for name in _MODULES), *trusted))
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.process = _start(_BOOTSTRAP.format(config=json.dumps(config)), code, theirs.fileno())
        finally:
            theirs.close()
        self.control.settimeout(_START_S)
        try:
            said = self.control.recv(5000)
        except OSError as error:
            said = f"E{error}".encode()
        if said != zygote.READY:
            self.close()
            raise VerifierError(
                f"a sandbox server did not start: {said[1:].decode('utf-8', 'replace') or 'no message'}"
            )
        _open_sockets.add(self.control)
        self._end = select.poll()
        self._end.register(self.control, select.POLLIN)

    def begin(self, limits: Limits, descriptors: Sequence[int], flags: int) -> None:
        memory = limits.memory_mib * MIB
        if self._groups and self._memory != memory:
            with contextlib.suppress(OSError):  # EBUSY while pages of the last run are given back: the old limit stays
                self._groups.set_memory(memory + _OVERHEAD_MIB * MIB)
                self._memory = memory
        request = zygote.REQUEST.pack(
            flags, limits.time_s, limits.wall, memory, limits.processes,
            limits.file_mib * MIB, limits.disk_mib * MIB, limits.inodes, limits.open_files,
        )  # fmt: skip
        self.control.settimeout(limits.wall * 10 + _GRACE_S)
        try:
            socket.send_fds(self.control, [request], list(descriptors))
        except OSError as error:
            raise ServerDied(f"a sandbox server is gone: {error}") from error

    def kill_run(self) -> None:
        with contextlib.suppress(OSError):
            self.control.send(b"K")

    def answers_within(self, seconds: float) -> bool:
        """True as soon as the run has ended (or the server has)."""
        return bool(self._end.poll(seconds * 1000))

    def finish(self, patience_s: float | None) -> Usage:
        try:
            if patience_s is not None and not self.answers_within(patience_s):
                self.kill_run()
            said = self.control.recv(1000)
        except OSError as error:
            raise ServerDied(f"a sandbox server does not answer: {error}") from error
        kills = 0
        usage = _usage(said) if said[:1] == zygote.DONE else None
        if self._groups and (usage is None or usage.status or usage.peak_bytes > self._limits.memory_mib * MIB // 2):
            kills = self._groups.out_of_memory_kills()
        out_of_memory, self._kills = kills > self._kills, max(kills, self._kills)
        if usage is None:
            if out_of_memory:  # the kernel took the fork-server itself: the run's doing all the same
                return Usage(signal.SIGKILL, MEMORY, 0.0, 0.0, 0.0, self._memory, True)
            raise ServerDied("a sandbox server died during a run")
        return replace(usage, out_of_memory=True) if out_of_memory else usage

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        _open_sockets.discard(self.control)
        self.control.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self._groups:
            self._groups.remove()
        if self.box:
            with contextlib.suppress(OSError):
                os.rmdir(self.box)


def _start(source: str, code: bytes, control: int) -> subprocess.Popen[bytes]:
    """Python without the trainer's environment, arguments or packages. Descriptor 3 is the control socket."""
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HOME": "/",
        "MALLOC_ARENA_MAX": "1",  # each thread would reserve 64 MiB of addresses, which are limited
        "LD_BIND_NOW": "1",  # once here, or each run looks up by itself what it is the first to call
    }  # fmt: skip
    moved = "" if control == 3 else f"import os\nos.dup2({control}, 3)\nos.close({control})\n"
    python = os.path.realpath(sys.executable)
    with open(os.memfd_create("verifiers"), "w+b") as file:
        file.write(code)
        file.seek(0)
        return subprocess.Popen(
            [python, "-S", "-s", "-P", "-B", "-c", moved + source],
            env=environment, pass_fds=(control,), stdin=file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd="/",
        )  # fmt: skip


class Run:
    """One run in progress: its channel, and the server that owes its end."""

    def __init__(self, pool: Pool, role: str, server: _Server, channel: socket.socket) -> None:
        self.channel = channel
        self._pool, self._role, self._server = pool, role, server
        self._done: Usage | None = None

    def kill(self) -> None:
        self._server.kill_run()

    def ends_within(self, seconds: float) -> bool:
        """Waits that long for the end of the run. What it says meanwhile is kept, and wakes nobody."""
        return self._server.answers_within(seconds)

    def finish(self, patience_s: float | None = None) -> Usage:
        """Waits for the end of the run and hands its server back; kills it after `patience_s`."""
        if self._done is None:
            try:
                self._done = self._server.finish(patience_s)
            except BaseException:
                self._pool.give_back(self._role, self._server, broken=True)
                raise
            finally:
                self.channel.close()
            self._pool.give_back(self._role, self._server)
            self._check(self._done)
        return self._done

    @staticmethod
    def _check(usage: Usage) -> None:
        if usage.killed == OVERLOAD:
            raise VerifierError(
                f"the machine is overloaded: a run waited {usage.waited_s:.1f} of {usage.wall_s:.1f} s for a core"
            )
        if usage.killed == zygote.SETUP:
            raise VerifierError(
                "a run could not be locked in or given its job; `python -m verifiers doctor` says what is missing"
            )


class Pool:
    """Fork-servers for candidates and, apart from them, for trusted test code.

    Args:
        level: isolation level in force, out of `probe.LEVELS`.
        servers: runs at one time.
        packages: names of installed packages that submissions may import.
        preload: modules that are imported before the forks, so that no run pays for them.
    """

    def __init__(
        self, level: str, servers: int, limits: Limits, *, packages: dict[str, str], preload: Sequence[str]
    ) -> None:
        self.level = level
        self.size = servers
        self._limits = limits
        self._packages, self._preload = packages, preload
        self._idle: dict[str, queue.LifoQueue[_Server | None]] = {}
        for role in ("candidate", "oracle"):
            self._idle[role] = queue.LifoQueue()
            for _ in range(servers):
                self._idle[role].put(None)  # started when first wanted
        self._lock = threading.Lock()
        self._all: set[_Server] = set()
        self.closed = False
        _pools.add(self)

    def start(
        self, role: str, limits: Limits, *, stdin: int | None = None, stdout: int | None = None,
        stderr: int | None = None, extra: int | None = None, address_limit: bool = True,
    ) -> Run:  # fmt: skip
        """Takes a free server, waiting for one, and starts a run on it."""
        server = self._take(role)
        ours, theirs = socket.socketpair()
        try:
            flags = 0 if address_limit else locks.NO_ADDRESS_LIMIT
            if stdin is stdout is stderr is None:
                flags |= locks.NO_STREAMS
                descriptors = []
            else:
                descriptors = [_null() if number is None else number for number in (stdin, stdout, stderr)]
            descriptors.append(theirs.fileno())
            if extra is not None:
                descriptors.append(extra)
            ours.settimeout(limits.wall * 10 + _GRACE_S)
            if stdin is not None:
                flags |= locks.HAS_INPUT
            try:
                server.begin(limits, descriptors, flags)
            except ServerDied:
                self._discard(server)
                server = self._new(role)
                server.begin(limits, descriptors, flags)
        except BaseException:
            ours.close()
            self.give_back(role, server, broken=True)
            raise
        finally:
            theirs.close()
        return Run(self, role, server, ours)

    def _take(self, role: str) -> _Server:
        if self.closed:
            raise VerifierError("the sandbox is closed")
        server = self._idle[role].get()
        try:
            if server is not None and server.alive:
                return server
            if server is not None:
                self._discard(server)
            return self._new(role)
        except BaseException:
            self._idle[role].put(None)
            raise

    def _new(self, role: str) -> _Server:
        if role == "candidate":
            server = _Server(self.level, self._limits, self._packages, self._preload, ())
        else:
            server = _Server(self.level, self._limits, {}, (), ("verifiers.sandbox.oracle",))
        with self._lock:
            self._all.add(server)
        return server

    def _discard(self, server: _Server) -> None:
        with self._lock:
            self._all.discard(server)
        server.close()

    def give_back(self, role: str, server: _Server, *, broken: bool = False) -> None:
        if broken or self.closed:
            self._discard(server)
            self._idle[role].put(None)
        else:
            self._idle[role].put(server)

    def close(self) -> None:
        """Ends every server and whatever runs in it. Safe to call twice."""
        self.closed = True
        with self._lock:
            servers, self._all = self._all, set()
        for server in servers:
            server.control.close()  # all begin to end before any is waited for
        for server in servers:
            server.close()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
_open_sockets: set[socket.socket] = set()
_null_descriptor: list[int] = []


def _null() -> int:
    if not _null_descriptor:
        _null_descriptor.append(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
    return _null_descriptor[0]


@atexit.register
def close_all() -> None:
    """Closes every pool of this process."""
    for pool in list(_pools):
        pool.close()


def _forget() -> None:
    """In a forked worker: the servers belong to the parent, and must see its end although we live on."""
    for control in list(_open_sockets):
        control.close()
    _open_sockets.clear()
    for pool in list(_pools):
        pool.closed = True
        for server in pool._all:
            server.process.returncode = 0  # not ours to wait for
        pool._all = set()
    _pools.clear()


os.register_at_fork(after_in_child=_forget)
