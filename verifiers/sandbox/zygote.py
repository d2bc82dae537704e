"""The fork-server: a process in its own namespaces that forks one locked-in child per run.

It gets descriptors and limits, never code, tests or expected values. The child reads its job itself, so nothing that
one run receives can be found in the memory that another run inherits. It is started with exec, so it holds no copy of
the trainer either.

    outer   stays outside, and cleans up when the inner one has ended
    inner   PID 1 of its namespace: everything below dies with it
    child   PID 1 of a namespace per run
"""

from __future__ import annotations

import _sitebuiltins
import _socket
import builtins
import contextlib
import ctypes
import importlib.machinery
import json
import os
import struct
import sys
import time
from typing import Any

from verifiers.sandbox import child, heap, linux, locks, rootfs, seccomp
from verifiers.sandbox.watch import Watch

CONTROL = 3  # descriptor of the socket to the pool
# Sent by the pool with the descriptors: flags, CPU s, wall s, memory, processes, file size, disk, inodes, files
REQUEST = struct.Struct("<Idd6Q")
# Reply to the pool, a `_Reply`: wait status, why it was killed, wall s, CPU s by the watch, s spent waiting for a core,
# peak bytes by the watch, and from struct rusage both times and the largest resident size.
REPLY = struct.Struct("=4siiidddQ5q")
READY, DONE, PROGRESS = b"R", b"D", b"P"
KILL, ASK = b"K", b"Q"  # messages of the pool during a run; ASK is answered by a reply with the tag PROGRESS
_REQUEST_SIZE = REQUEST.size
_INPUT_UNIT = 1 << 16
_POLLIN = 1
_SCORER_BOX = 32 << 20  # bytes that a scorer may write while it is imported
# Resources that are shared by everything that runs under this user.
_FEWEST = {linux.RLIMIT_CORE: 0, linux.RLIMIT_MSGQUEUE: 0, linux.RLIMIT_MEMLOCK: 0, linux.RLIMIT_SIGPENDING: 256}
# A run that ends within this time is never examined, because a look at /proc costs as much as a small run. Where a
# cgroup caps memory, it can be longer.
_FIRST_MS, _FIRST_CAPPED_MS = 20, 60
# Few modules: each shared library has five mappings, which every fork copies and every exit frees.
_PRELOAD = (
    "collections",
    "copy",
    "functools",
    "heapq",
    "itertools",
    "json",
    "math",
    "operator",
    "re",
    "threading",
    "typing",
)


def main(config_text: str) -> None:
    """Entry point of the process; `config_text` is JSON from the pool."""
    config = json.loads(config_text)
    control = _socket.socket(fileno=CONTROL)
    try:
        if config["level"] in ("full", "ns"):
            _enter_namespaces(config, control)
        else:
            serve(config, control, None, None)
    except BaseException as error:  # sent to the pool, which raises it
        control.send(b"E" + f"{type(error).__name__}: {error}".encode()[:4000])
        os._exit(1)


def _enter_namespaces(config: dict[str, Any], control: _socket.socket) -> None:
    root = "/sys"  # where the new tree is mounted: always there, and nothing below it is needed
    everything = (
        linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWNET
        | linux.CLONE_NEWUTS
    )  # fmt: skip
    inner = os.fork()
    if inner:
        control.close()
        import signal

        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, lambda *_: os.kill(inner, signal.SIGKILL))
        os.waitpid(inner, 0)
        for folder in config["cgroups"]:
            _remove_cgroup(folder)
        os._exit(0)
    os.setsid()
    for folder in config["cgroups"]:
        with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as file:
            file.write("0")
    meter = os.open(config["cpu"], os.O_RDONLY | os.O_CLOEXEC) if config["cpu"] else None
    procfs = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    own = os.getpid()
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        # Only root can bind what is below folders closed to others; it does that first, then becomes nobody.
        linux.unshare(linux.CLONE_NEWNS)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
        rootfs.build(root, config["packages"])
        rootfs.enter(root)
        uid = gid = config["root_becomes"]
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        linux.set_dumpable()
        linux.unshare(everything)
        _map_ids(procfs, own, uid, gid)
    else:
        linux.unshare(everything)
        _map_ids(procfs, own, uid, gid)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
        rootfs.build(root, config["packages"])
        rootfs.enter(root)
    linux.die_with_parent()  # again, because the change of uid clears it
    server = os.fork()  # the first process of the new PID namespace
    if server:
        control.close()
        os.waitpid(server, 0)
        os._exit(0)
    linux.die_with_parent()
    serve(config, control, procfs, meter)


def _map_ids(procfs: int, own: int, uid: int, gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("gid_map", f"0 {gid} 1"), ("uid_map", f"0 {uid} 1")):
        descriptor = os.open(f"{own}/{name}", os.O_WRONLY, dir_fd=procfs)
        os.write(descriptor, text.encode())
        os.close(descriptor)


def _remove_cgroup(folder: str) -> None:
    for _ in range(100):  # the last process leaves the group a moment after its death is known
        try:
            os.rmdir(folder)
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)


def serve(config: dict[str, Any], control: _socket.socket, procfs: int | None, meter: int | None) -> None:
    """Preloads modules, applies restrictions that can be applied once, and forks runs until the pool hangs up."""
    for name in _PRELOAD:
        __import__(name)
    sys.path[:] = [path for path in sys.path if "-packages" not in path]
    if config["packages"]:
        sys.path += [rootfs.PACKAGES] if procfs is not None else config["package_path"]
        # Finders list the folders now: at landlock a run may read the packages, but not the folder that they are in.
        importlib.machinery.PathFinder.find_spec("no_such_module", sys.path)
    for name in config["preload"]:
        __import__(name)
    if config["scorer"]:
        _prepare_scorer(config, namespaces=procfs is not None)
    for name in ("exit", "quit"):  # `site` would define these; it is left out for its cost
        setattr(builtins, name, _sitebuiltins.Quitter(name, "end of file"))
    sys.modules["threading"].stack_size = child.stack_size  # type: ignore[attr-defined]
    if procfs is not None:
        linux.prepared_libc("sethostname", b"sandbox", 7)()
        linux.lock_privileges()
    else:
        linux.no_new_privileges()
    for kind, most in _FEWEST.items():
        if linux.limit(kind, most)() < 0:
            raise linux.failure()
    os.environ["HOME"] = os.environ["TMPDIR"] = rootfs.WORK
    del os.environ["LD_BIND_NOW"]  # meant for this process
    sys.argv = [""]
    common = child.common_names()
    child.warm_up(common)
    watch = Watch(procfs, meter)
    if procfs is not None:
        heap.keep_text_mapped(procfs, watch.own)
        if seccomp.installer(seccomp.for_server())() < 0:
            raise linux.failure()
    filling = heap.settle()
    server = _Server(
        config, control, procfs, common, watch
    )  # on few pages: after a fork, each page that the server writes to is copied
    control.send(READY)
    server.serve()
    del filling
    if config["box_parent"]:
        _remove_tree(config["box_parent"])
    os._exit(0)


def _prepare_scorer(config: dict[str, Any], *, namespaces: bool) -> None:
    """Imports a scorer's package, which may need a folder to write to; a run's own tmpfs is mounted over it."""
    home = config["box_parent"]
    if namespaces:
        home = rootfs.WORK
        for call in rootfs.box_calls(_SCORER_BOX, 1000):
            if call() < 0:
                raise linux.failure()
    os.environ["HOME"] = os.environ["TMPDIR"] = home
    sys.modules["verifiers.sandbox.scoring"].prepare(**config["scorer"])


class _Reply(ctypes.Structure):
    """The reply to the pool. wait4 writes directly into it, so no object is created for values only passed on."""

    _fields_ = [
        ("tag", ctypes.c_char * 4),
        ("status", ctypes.c_int),
        ("killed", ctypes.c_int),
        ("unused", ctypes.c_int),
        ("wall_s", ctypes.c_double),
        ("cpu_s", ctypes.c_double),  # by the watch, which includes processes that nobody waited for
        ("waited_s", ctypes.c_double),
        ("peak", ctypes.c_ulong),
        ("usage", ctypes.c_long * 18),  # struct rusage
    ]


class _Polled(ctypes.Structure):
    """struct pollfd, used because `select` is a shared library that each fork would copy."""

    _fields_ = [("fd", ctypes.c_int), ("wanted", ctypes.c_short), ("found", ctypes.c_short)]


class _Plan:
    """Everything derived from a request, kept for the next equal request."""

    def __init__(
        self, key: bytes, request: tuple[Any, ...], descriptors: list[int], trouble: int, calls: list[locks.Call]
    ) -> None:
        self.key, self.request, self.descriptors, self.calls = key, request, descriptors, calls
        self.trouble = trouble  # number of the trouble pipe in the run


class _Server:
    def __init__(
        self,
        config: dict[str, Any],
        control: _socket.socket,
        procfs: int | None,
        common: dict[str, Any],
        watch: Watch,
    ) -> None:
        self.control = control
        self.level = config["level"]
        self.namespaces = procfs is not None
        self.config = config
        self.watch = watch
        self.trouble = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.runs = 0
        self.common = common
        self.locks = locks.Locks(config, procfs)
        # An IPC namespace per run would isolate nothing: no run can create a queue, a segment or a semaphore set.
        flags = linux.CLONE_NEWPID | linux.CLONE_NEWNS if self.namespaces else 0
        if self.namespaces and not self.locks.scoped:
            flags |= linux.CLONE_NEWNET  # isolates abstract sockets of one run from the next
        self.handle = ctypes.c_int(-1)
        self.fork = linux.prepared_fork(flags, self.handle)
        self.reply = _Reply(DONE)
        self.wait = linux.prepared_libc(
            "wait4", -1, ctypes.byref(self.reply, _Reply.status.offset), 0,
            ctypes.byref(self.reply, _Reply.usage.offset),
        )  # fmt: skip
        self.watched = (_Polled * 2)(_Polled(CONTROL, _POLLIN), _Polled(-1, _POLLIN))  # the pool, the end of the run
        self.plan = _Plan(b"", (), [], -1, [])

    def serve(self) -> None:
        """Takes a request, runs it and replies, until the pool is gone.

        All in one function with local names: after a fork each page that the server writes to is copied, and using an
        object writes to it.
        """
        receive, send, monotonic = self.control.recvmsg, self.control.send, time.monotonic
        fork, wait, namespaces = self.fork, self.wait, self.namespaces
        pool_says, run_says = self.watched
        first_ms = _FIRST_CAPPED_MS if self.level == "full" else _FIRST_MS
        poll = linux.prepared_libc("poll", self.watched, 2, first_ms)
        plan, handle, reply, common, close = self.plan, self.handle, self.reply, self.common, os.close
        open_channel, run_job, start_of = child.Channel, child.main, child.STARTS
        while True:
            data, ancillary, _, _ = receive(_REQUEST_SIZE, 256)
            if not data:
                return
            if not ancillary:  # a kill that arrived after its run had ended
                continue
            if data + ancillary[0][2] != plan.key:
                plan = self.plan = self._planned(data, ancillary[0][2])
            started = monotonic()
            pid = fork()
            if pid == 0:
                try:
                    for call in plan.calls:
                        if call() < 0:
                            raise linux.failure()
                    channel = open_channel(child.CHANNEL)
                    job = channel.receive()
                    if job["mode"] in start_of:  # an infrastructure error until the program or compiler has started
                        start_of[job["mode"]](channel, job, plan.trouble)
                    close(plan.trouble)  # the pipe for trouble: what follows can be the submission's doing
                except EOFError:  # the pool hung up
                    os._exit(1)
                except BaseException as error:  # not caused by the submission: the pool raises it
                    self._give_up(error)
                try:
                    run_job(channel, job, common)
                except BaseException:  # the submission broke the harness it runs in
                    os._exit(1)
            for descriptor in plan.descriptors:
                close(descriptor)
            if pid < 0:
                raise linux.failure()
            run_says.fd = number = handle.value
            if poll() != 1 or pool_says.found:
                self._watched(pid, started)
            while (ended := wait()) != pid:
                if ended < 0:
                    raise linux.failure()
            close(number)
            reply.wall_s = monotonic() - started
            if reply.status == _SETUP_FAILED << 8:
                self._look_for_trouble()
            try:
                send(reply)
            except OSError:  # the pool is gone
                return
            if reply.killed or reply.peak or not namespaces:
                self._tidy()

    def _planned(self, data: bytes, packed: bytes) -> _Plan:
        request = REQUEST.unpack(data)
        descriptors = memoryview(packed).cast("i").tolist()
        key, input_bytes, box = data + packed, 0, None
        if request[0] & locks.HAS_INPUT:  # rounded up, so that one plan serves many inputs
            input_bytes = -(-os.fstat(descriptors[0]).st_size // _INPUT_UNIT) * _INPUT_UNIT
            key += b"%d" % input_bytes
            if key == self.plan.key:
                return self.plan
        if not self.namespaces:
            box, key = self._new_box(), b""
        calls = self.locks.calls(request, [*descriptors, self.trouble[1]], input_bytes, box)
        return _Plan(key, request, descriptors, locks.first_descriptor(request[0]) + len(descriptors), calls)

    def _new_box(self) -> str:
        self.runs += 1
        os.mkdir(self._box, 0o700)
        return self._box

    @property
    def _box(self) -> str:
        return f"{self.config['box_parent']}/{self.runs}"

    def _give_up(self, error: BaseException) -> None:
        """Reports an error in the child before anything of the submission ran."""
        for trouble in (self.plan.trouble, self.trouble[1]):
            with contextlib.suppress(OSError):
                os.write(trouble, f"{type(error).__name__}: {error}".encode())
        os._exit(_SETUP_FAILED)

    def _look_for_trouble(self) -> None:
        """Reads the trouble pipe: only a child whose run never began writes to it; a submission finds it closed."""
        with contextlib.suppress(BlockingIOError):
            if os.read(self.trouble[0], 4000):
                self.reply.killed = SETUP

    def _watched(self, pid: int, started: float) -> None:
        """Waits for the end of a run that is not over at once, and watches its use of resources."""
        box = None if self.namespaces else self._box
        watch, (pool_says, run_says) = self.watch, self.watched
        _, cpu_s, wall_s, memory, processes, _, disk, inodes, _ = self.plan.request
        patient = bool(self.plan.request[0] & locks.POOL_KEEPS_TIME)
        watch.begin(
            pid, started, cpu_s, wall_s, patient, memory if self.level != "full" else 0, box, disk, inodes, processes
        )
        linux.poll(self.watched, 0)
        while not run_says.found:
            if pool_says.found:
                if self.control.recv(1) == ASK:
                    self._tell_progress(started)
                else:  # KILL, or the pool is gone
                    watch.reason = KILLED
                    os.kill(pid, linux.SIGKILL)
                    pool_says.fd = -1
            elif watch.look():
                os.kill(pid, linux.SIGKILL)
            linux.poll(self.watched, watch.next_look_ms())
        pool_says.fd = CONTROL
        watch.last_look()
        reply = self.reply
        reply.killed, reply.cpu_s, reply.waited_s = watch.reason, watch.cpu, watch.waited
        reply.peak = max(watch.peak, 1)  # nonzero also marks a reply that must be cleared

    def _tell_progress(self, started: float) -> None:
        watch, reply = self.watch, _Reply(PROGRESS)
        watch.look_at_use()
        reply.cpu_s, reply.waited_s, reply.peak = watch.cpu, watch.waited, watch.peak
        reply.wall_s = time.monotonic() - started
        with contextlib.suppress(OSError):
            self.control.send(reply)

    def _tidy(self) -> None:
        """Resets what the watch found and the folder, which belong to one run."""
        reply = self.reply
        reply.killed, reply.cpu_s, reply.waited_s, reply.peak = 0, 0.0, 0.0, 0
        if not self.namespaces:
            _remove_tree(self._box)


_SETUP_FAILED = 211  # exit status of a child whose run never began; its pipe proves that it was not the submission
KILLED, SETUP = 1, 7  # why a run ended: the pool asked; it never began. The other reasons are in watch.py


def _remove_tree(path: str) -> None:
    """Removes as much of a run's folder as possible, however deep or odd, and never raises: the server must go on."""
    with contextlib.suppress(OSError):
        _empty(path)
        os.rmdir(path)


def _empty(path: str) -> None:
    """Empties a folder without recursion and by descriptors, because paths may be longer than the kernel accepts."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    here = os.open(path, flags)
    names, above = os.listdir(here), list[tuple[str, list[str]]]()  # per folder on the path: its name, remaining names
    try:
        while names or above:
            if not names:
                name, names = above.pop()
                below = os.open("..", flags, dir_fd=here)
                os.close(here)
                here = below
                os.rmdir(name, dir_fd=here)
                continue
            name = names.pop()
            try:
                os.unlink(name, dir_fd=here)
            except OSError:
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=here)
                    continue
                with contextlib.suppress(OSError):
                    os.chmod(name, 0o700, dir_fd=here)
                below = os.open(name, flags, dir_fd=here)
                above.append((name, names))
                os.close(here)
                here, names = below, os.listdir(below)
    finally:
        os.close(here)
