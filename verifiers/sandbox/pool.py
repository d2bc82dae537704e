"""The trusted side's fork-servers: starts them, lends them for one run at a time, restarts and closes them."""

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
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.abc import InspectLoader
from typing import Any

from verifiers.core import VerifierError
from verifiers.sandbox import cgroup, locks, wire, zygote
from verifiers.sandbox.boxes import Box
from verifiers.sandbox.limits import MIB, Limits
from verifiers.sandbox.watch import CPU, DISK, MANY, MEMORY, OVERLOAD, PATIENCE, WALL

_START_S = 60.0  # time for a fork-server to start on a busy machine
_GRACE_S = 30.0  # time beyond a run's own maximum
_WORTH_TELLING_S = 0.05
_OVERHEAD_MIB = 96  # the fork-server's own share of its cgroup
_SLIPPED_S = 0.05  # CPU time that the last look of the watch may have missed
_REPLY_BYTES = 5000
OUTSIDE = 9  # reason for the end of a run: a signal that neither we nor the run can have sent
_MODULES = ("child", "heap", "linux", "locks", "rootfs", "seccomp", "watch", "wire", "zygote")
# Our modules are passed compiled, in a memory file: a server that compiles them itself has scattered memory, and every
# fork copies its tables. Standard input is the control socket, standard output is that file.
_BOOTSTRAP = """
import marshal, os, sys, types, _frozen_importlib
os.chdir("/")
os.dup2(0, 3)
with open(1, "rb", closefd=False) as file:
    compiled = marshal.load(file)
os.dup2(2, 0)
os.dup2(2, 1)
os.closerange(4, 1 << 20)
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
    """Returns the code of modules in the format that the fork-server's bootstrap reads."""
    found = {}
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or not isinstance(spec.loader, InspectLoader):
            raise VerifierError(f"the code of {name}, which a sandbox server needs, can't be found")
        found[name] = spec.loader.get_code(name)
    return marshal.dumps(found)


@dataclass(frozen=True, slots=True)
class Usage:
    """The end of a run and the resources it used."""

    status: int  # as returned by os.wait
    killed: int  # 0, or the reason why the fork-server ended it (watch.CPU, ...)
    cpu_s: float
    wall_s: float
    waited_s: float  # time ready to run but without a core
    peak_bytes: int
    out_of_memory: bool = False

    @property
    def verdict(self) -> str:
        """TLE, MLE, OLE, RTE, SV, or "" if the run ended by itself."""
        if self.killed in (CPU, WALL):
            return "TLE"
        if self.killed == MEMORY or self.out_of_memory:
            return "MLE"
        if self.killed == DISK:
            return "OLE"
        if self.killed == MANY:
            return "RTE"
        if self.signal == signal.SIGSYS:
            return "SV"
        if self.signal == signal.SIGXFSZ:
            return "OLE"
        if self.signal == signal.SIGXCPU:
            return "TLE"
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
    """A fork-server ended during a run."""


def _usage(said: bytes) -> Usage:
    _, status, killed, _, wall_s, cpu_s, waited_s, peak, user, user_us, system, system_us, resident = (
        zygote.REPLY.unpack_from(said)
    )
    own_s = user + system + (user_us + system_us) / 1e6
    return Usage(status, killed, max(own_s, cpu_s), wall_s, waited_s, max(resident * 1024, peak))


class _Server:
    """One fork-server process.

    No wait relies on the end of a stream: a fork of the host process, or a run, may hold the other end open.
    """

    _numbers = itertools.count()

    def __init__(
        self,
        level: str,
        limits: Limits,
        packages: Mapping[str, str],
        preload: Sequence[str],
        trusted: Sequence[str],
        scorer: Mapping[str, Any] | None = None,
    ) -> None:
        self._limits = self._run_limits = limits
        self._memory = 0
        self._groups: cgroup.Groups | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._box: Box | None = None
        self._said: bytes | None = None  # the report on the end of the run, if it was read before it was requested
        self._kills = 0
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        _open_sockets.add(self.control)
        self.control.setblocking(False)
        try:
            with theirs:
                self._launch(theirs, level, packages, preload, trusted, scorer)
            self._deadline = time.monotonic() + _START_S
            said = self._answer()
        except ServerDied:
            said = b""
        except BaseException:
            self.close()
            raise
        if said != zygote.READY:
            self.close()
            raise VerifierError(
                f"a sandbox server did not start: {said[1:].decode('utf-8', 'replace') or 'no message'}"
            )

    def _launch(
        self,
        control: socket.socket,
        level: str,
        packages: Mapping[str, str],
        preload: Sequence[str],
        trusted: Sequence[str],
        scorer: Mapping[str, Any] | None,
    ) -> None:
        if level == "full":
            limits = self._limits
            self._groups = cgroup.create(
                str(next(self._numbers)), (limits.memory_mib + _OVERHEAD_MIB) * MIB, limits.processes + 8
            )
            if self._groups is None:
                raise VerifierError("the cgroup that a fork-server needs can't be made any more")
        if level in ("landlock", "rlimit-only"):
            self._box = Box()
        config = {
            "level": level,
            "cgroups": self._groups.folders if self._groups else [],
            "cpu": self._groups.cpu if self._groups else "",
            "packages": dict(packages),
            "package_path": sorted({os.path.dirname(path) for path in packages.values()}),
            "preload": list(preload),
            "scorer": scorer,
            "root_becomes": 65534,
            "box_parent": self._box.path if self._box else "",
        }
        code = _compiled((*(f"verifiers.sandbox.{name}" for name in _MODULES), *trusted))
        self._process = _start(_BOOTSTRAP.format(config=json.dumps(config)), code, control)
        self._pidfd = os.pidfd_open(self._process.pid)

    def begin(self, limits: Limits, descriptors: Sequence[int], flags: int) -> None:
        memory = limits.memory_mib * MIB
        if self._groups and self._memory != memory:
            with contextlib.suppress(OSError):  # EBUSY while pages of the last run are freed: the old limit stays
                self._groups.set_memory(memory + _OVERHEAD_MIB * MIB)
                self._memory = memory
        request = zygote.REQUEST.pack(
            flags, limits.time_s, limits.wall, memory, limits.processes,
            limits.file_mib * MIB, limits.disk_mib * MIB, limits.inodes, limits.open_files,
        )  # fmt: skip
        self._run_limits, self._said = limits, None
        self._deadline = time.monotonic() + limits.wall * PATIENCE + _GRACE_S
        try:
            socket.send_fds(self.control, [request], list(descriptors))
        except OSError as error:
            if error.errno in cgroup.EXHAUSTED:
                raise
            raise ServerDied(f"a sandbox server is gone: {error}") from error

    def kill_run(self) -> None:
        with contextlib.suppress(OSError):
            self.control.send(zygote.KILL)

    def wait(self, wanted: Mapping[int, int], seconds: float | None) -> list[int]:
        """Waits until a descriptor in `wanted` (descriptor: events of poll) is ready, the run or the server has ended,
        or the time is over; returns the ready ones. Raises ServerDied beyond the run's deadline."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise ServerDied("a sandbox server does not answer")
        if self._said is not None:
            seconds = 0
        poll = select.poll()
        try:
            for descriptor, events in {
                self.control.fileno(): select.POLLIN,
                self._pidfd: select.POLLIN,
                **wanted,
            }.items():
                poll.register(descriptor, events)
        except ValueError as error:  # closed by another thread
            raise ServerDied("the sandbox was closed during a run") from error
        found = poll.poll(1000 * (left if seconds is None else min(left, seconds)))
        return [descriptor for descriptor, _ in found if descriptor in wanted]

    def ended(self, seconds: float | None = 0.0) -> bool:
        """Returns True as soon as the run (or the server) has ended."""
        if self._said is not None:
            return True
        self.wait({}, seconds)
        try:
            said = self.control.recv(_REPLY_BYTES)
        except BlockingIOError:
            return self._gone()
        except OSError:
            return True
        if said[:1] == zygote.PROGRESS:  # an answer that is not wanted any more
            return False
        self._said = said
        return True

    def _gone(self) -> bool:
        """True if the process itself has ended, even if another process holds its end of the socket."""
        if self._pidfd < 0:
            return True
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def _answer(self) -> bytes:
        """Returns the next message. Raises ServerDied if there will be none."""
        gone = False
        while True:
            try:
                said = self.control.recv(_REPLY_BYTES)
            except BlockingIOError:
                if gone:
                    raise ServerDied("a sandbox server died") from None
                self.wait({}, None)
                gone = self._gone()  # checked before the last read of the socket
                continue
            except OSError as error:
                raise ServerDied(f"a sandbox server is gone: {error}") from error
            if not said:
                raise ServerDied("a sandbox server died")
            return said

    def progress(self) -> Usage | None:
        """Returns the resources the run has used so far; None once it has ended."""
        if self.ended():
            return None
        with contextlib.suppress(OSError):
            self.control.send(zygote.ASK)
            said = self._answer()
            if said[:1] == zygote.PROGRESS:
                return _usage(said)
            self._said = said
        return None

    def finish(self, patience_s: float | None) -> Usage:
        try:
            if patience_s is not None and not self.ended(patience_s):
                self.kill_run()
            said = self._said if self._said is not None else self._answer()
            while said[:1] == zygote.PROGRESS:
                said = self._answer()
            if said[:1] != zygote.DONE:
                raise ServerDied("a sandbox server died during a run")
        except ServerDied:
            if self._out_of_memory():  # the kernel killed the fork-server itself: still caused by the run
                return Usage(signal.SIGKILL, MEMORY, 0.0, 0.0, 0.0, self._memory, True)
            raise
        usage = _usage(said)
        outside = usage.signal == signal.SIGKILL and not usage.killed
        if self._groups and (usage.status or usage.peak_bytes > self._limits.memory_mib * MIB // 2):
            out_of_memory = self._out_of_memory()
            if out_of_memory:
                return replace(usage, out_of_memory=True)
            # The machine ran out of memory, or a group above ours did.
            outside |= out_of_memory is False and not usage.killed
        limit_s = self._run_limits.time_s
        if not usage.killed and usage.cpu_s > limit_s + _SLIPPED_S:
            return replace(usage, killed=CPU)
        return replace(usage, killed=OUTSIDE) if outside else usage

    def _out_of_memory(self) -> bool | None:
        """Returns whether the kernel killed for memory since the last call: True if the group's limit was reached."""
        if self._groups is None:
            return None
        kills, reached = self._groups.out_of_memory_kills(), self._groups.limit_reached()
        before, self._kills = self._kills, max(kills, self._kills)
        return reached if kills > before else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def hang_up(self) -> None:
        """Makes the server end, even if a fork of this process holds a copy of the socket."""
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        _open_sockets.discard(self.control)
        self.control.close()

    def close(self) -> None:
        self.hang_up()
        if self._process is not None:
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        if self._groups:
            self._groups.remove()
        if self._box:
            self._box.close()

    def disown(self) -> None:
        """Forgets the server in a forked worker, which must not wait for it."""
        if self._process is not None:
            self._process.returncode = 0
        if self._box:
            self._box.disown()


def _start(source: str, code: bytes, control: socket.socket) -> subprocess.Popen[bytes]:
    """Starts Python without the trainer's environment, arguments or packages.

    It uses the only way of `subprocess` that waits for no pipe to close, because a fork of this process could hold a
    pipe open: only the three standard descriptors, no working directory. The bootstrap does the rest.
    """
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HOME": "/",
        "MALLOC_ARENA_MAX": "1",  # each thread would reserve 64 MiB of addresses, which are limited
        "LD_BIND_NOW": "1",  # symbols are bound once here, instead of in each run that first uses them
    }  # fmt: skip
    python = os.path.realpath(sys.executable)
    with open(os.memfd_create("verifiers"), "w+b") as file:
        file.write(code)
        file.seek(0)
        return subprocess.Popen(
            [python, "-S", "-s", "-P", "-B", "-c", source],
            env=environment, close_fds=False, stdin=control.fileno(), stdout=file, stderr=subprocess.DEVNULL,
        )  # fmt: skip


class Run:
    """One run in progress: its channel, and the server that reports its end."""

    def __init__(self, pool: Pool, role: str, server: _Server, channel: socket.socket) -> None:
        self.channel = channel
        self._pool, self._role, self._server = pool, role, server
        self._done: Usage | None = None

    def kill(self) -> None:
        self._server.kill_run()

    def ended(self, seconds: float | None = 0.0) -> bool:
        """Waits up to `seconds` for the end of the run; its messages are kept meanwhile, and wake nobody."""
        return self._server.ended(seconds)

    def wait(self, wanted: Mapping[int, int], seconds: float | None = None) -> list[int]:
        """Returns ready descriptors of `wanted` (descriptor: events of poll); none if the run ended or time is up."""
        return self._server.wait(wanted, seconds)

    def progress(self) -> Usage | None:
        """Returns the resources it has used so far; None once it has ended."""
        return self._server.progress()

    def send(self, data: bytes | memoryview) -> None:
        """Sends all of the data, or as much as the run accepted before it ended."""
        view = memoryview(data)
        while view:
            try:
                view = view[self.channel.send(view, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                if not self.wait({self.channel.fileno(): select.POLLOUT}):
                    return
            except OSError:
                return

    def finish(self, patience_s: float | None = None) -> Usage:
        """Waits for the end of the run and returns its server to the pool; kills the run after `patience_s`."""
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
        if usage.killed == OUTSIDE:
            raise VerifierError(
                "a run was killed by something outside the sandbox, as the machine's out-of-memory killer does"
            )


@contextlib.contextmanager
def finishing(run: Run) -> Iterator[None]:
    """Context that kills the run and returns its server if the block fails."""
    try:
        yield
    except BaseException:
        run.kill()
        with contextlib.suppress(VerifierError):
            run.finish()
        raise


class Pool:
    """Fork-servers for candidates and, separately, for trusted test code.

    Args:
        level: isolation level in force, one of `probe.LEVELS`.
        servers: number of runs at a time.
        packages: names of installed packages that submissions may import.
        preload: modules that are imported before forking, so that runs need not import them.
        scorer: target and options of a Python scorer that each fork-server loads (`scoring.prepare`).
    """

    def __init__(
        self,
        level: str,
        servers: int,
        limits: Limits,
        *,
        packages: Mapping[str, str],
        preload: Sequence[str],
        scorer: Mapping[str, Any] | None = None,
    ) -> None:
        self.level = level
        self.size = servers
        self._limits = limits
        self._packages, self._preload, self._scorer = packages, preload, scorer
        self._idle: dict[str, queue.LifoQueue[_Server | None]] = {}
        for role in ("candidate", "oracle"):
            self._idle[role] = queue.LifoQueue()
            for _ in range(servers):
                self._idle[role].put(None)  # started when first needed
        self._lock = threading.Lock()
        self._all: set[_Server] = set()
        self.closed = False
        _pools.add(self)

    def start(
        self, role: str, limits: Limits, job: Any = None, *, stdin: int | None = None, stdout: int | None = None,
        stderr: int | None = None, extra: int | None = None, flags: int = 0,
    ) -> Run:  # fmt: skip
        """Waits for a free server and starts a run on it."""
        return self.start_on(
            self.take(role), role, limits, job, stdin=stdin, stdout=stdout, stderr=stderr, extra=extra, flags=flags
        )

    def start_on(
        self, server: _Server, role: str, limits: Limits, job: Any = None, *, stdin: int | None = None,
        stdout: int | None = None, stderr: int | None = None, extra: int | None = None, flags: int = 0,
    ) -> Run:  # fmt: skip
        """Starts a run on a server that was taken; in any case the caller no longer owns the server."""
        try:
            ours, theirs = socket.socketpair()
        except BaseException:
            self.give_back(role, server)
            raise
        try:
            if stdin is stdout is stderr is None:
                flags |= locks.NO_STREAMS
                descriptors = []
            else:
                descriptors = [_null() if number is None else number for number in (stdin, stdout, stderr)]
            descriptors.append(theirs.fileno())
            if extra is not None:
                descriptors.append(extra)
            if stdin is not None:
                flags |= locks.HAS_INPUT
            rest = memoryview(b"" if job is None else wire.pack(job))
            # Before the run begins, because its clock runs while it waits for its job.
            with contextlib.suppress(BlockingIOError):
                rest = rest[ours.send(rest, socket.MSG_DONTWAIT) :]
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
        run = Run(self, role, server, ours)
        with finishing(run):
            run.send(rest)
        return run

    def take(self, role: str) -> _Server:
        """Waits for a free server and returns it; the caller must give it back or start a run on it."""
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
            trusted = ("verifiers.sandbox.scoring",) if self._scorer else ()
            server = _Server(self.level, self._limits, self._packages, self._preload, trusted, self._scorer)
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
        """Ends every server and everything that runs in it. May be called twice."""
        self.closed = True
        with self._lock:
            servers, self._all = self._all, set()
        for server in servers:
            server.hang_up()  # all are told to end before any is waited for
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
    """Forgets the servers in a forked worker: they belong to the parent, and must notice when it ends."""
    for control in list(_open_sockets):
        control.close()
    _open_sockets.clear()
    for pool in list(_pools):
        pool.closed = True
        for server in pool._all:
            server.disown()
        pool._all = set()
    _pools.clear()


os.register_at_fork(after_in_child=_forget)
