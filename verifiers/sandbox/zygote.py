"""The fork-server: a process in namespaces of its own that makes one locked-in child per run.

It gets descriptors and limits, never code, tests or expected values: the child reads its job by itself, so nothing
one run is given can be found in the memory another run inherits. Started with exec, so neither does it hold a copy
of the trainer.

    outer   stays outside, removes what has to be removed when the inner one is gone
    inner   PID 1 of its namespace: everything below dies with it
    child   PID 1 of a namespace per run
"""

from __future__ import annotations

import _sitebuiltins
import builtins
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from typing import Any

from verifiers.sandbox import child, linux, rootfs, seccomp
from verifiers.sandbox.watch import Watch

CONTROL = 3  # descriptor of the socket to the pool
# What the pool sends with the descriptors: flags, CPU s, wall s, memory, processes, file size, disk, inodes, files
REQUEST = struct.Struct("<Idd6Q")
# What it gets: wait status, why it was killed, CPU s, wall s, s spent waiting for a core, peak bytes
REPLY = struct.Struct("<iIdddQ")
READY, DONE = b"R", b"D"
NO_ADDRESS_LIMIT = 1  # request flag: the runtime reserves far more addresses than memory (V8)
# Few: each shared library is five mappings that every fork copies and every exit frees.
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
    """Entry point of the process; `config_text` is the JSON that the pool wrote."""
    config = json.loads(config_text)
    control = socket.socket(fileno=CONTROL)
    try:
        for name in config["trusted"]:  # before the root changes: our own files are not in the new one
            importlib.import_module(name)
        if config["level"] in ("full", "ns"):
            _enter_namespaces(config, control)
        else:
            serve(config, control, None)
    except BaseException as error:  # told to the pool, which raises it where it can be read
        control.send(b"E" + f"{type(error).__name__}: {error}".encode()[:4000])
        os._exit(1)


def _enter_namespaces(config: dict[str, Any], control: socket.socket) -> None:
    root = "/sys"  # where the new tree is put together: always there, and nothing needed lies below it
    everything = (
        linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWNET
        | linux.CLONE_NEWUTS
    )  # fmt: skip
    inner = os.fork()
    if inner:
        control.close()
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
    procfs = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    own = os.getpid()
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        # Only root can bind what lies below folders closed to others; it does that first, then becomes nobody.
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
    linux.die_with_parent()  # after the change of uid, which forgets it
    server = os.fork()  # the first process of the new PID namespace
    if server:
        control.close()
        os.waitpid(server, 0)
        os._exit(0)
    linux.die_with_parent()
    serve(config, control, procfs)


def _map_ids(procfs: int, own: int, uid: int, gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("gid_map", f"0 {gid} 1"), ("uid_map", f"0 {uid} 1")):
        descriptor = os.open(f"{own}/{name}", os.O_WRONLY, dir_fd=procfs)
        os.write(descriptor, text.encode())
        os.close(descriptor)


def _remove_cgroup(folder: str) -> None:
    for _ in range(100):  # the last process leaves it a moment after its death is known
        try:
            os.rmdir(folder)
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)


def serve(config: dict[str, Any], control: socket.socket, procfs: int | None) -> None:
    """Preloads, locks what can be locked once, and forks runs until the pool hangs up."""
    for name in _PRELOAD:
        __import__(name)
    sys.path[:] = [path for path in sys.path if "-packages" not in path]
    if config["packages"]:
        sys.path.append(rootfs.PACKAGES if procfs is not None else config["package_path"])
    for name in config["preload"]:
        __import__(name)
    for name in ("exit", "quit"):  # what `site`, left out for its cost, would have put there
        setattr(builtins, name, _sitebuiltins.Quitter(name, "end of file"))
    if procfs is not None:
        socket.sethostname("sandbox")
        linux.lock_privileges()
    else:
        linux.no_new_privileges()
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_MSGQUEUE, resource.RLIMIT_MEMLOCK):
        resource.setrlimit(kind, (0, 0))
    os.environ["HOME"] = os.environ["TMPDIR"] = rootfs.WORK
    server = _Server(config, control, procfs)
    sys.argv = [""]
    gc.collect()
    gc.freeze()
    gc.disable()
    control.send(READY)
    while server.one_run():
        pass
    if config["box_parent"]:
        _remove_tree(config["box_parent"])
    os._exit(0)


class _Server:
    def __init__(self, config: dict[str, Any], control: socket.socket, procfs: int | None) -> None:
        self.control = control
        self.level = config["level"]
        self.namespaces = procfs is not None
        self.config = config
        self.watch = Watch(procfs)
        self.trouble = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.runs = 0
        self.common = child.common_names()
        self.filter = {
            many: seccomp.installer(seccomp.compiled(namespaces=self.namespaces, processes=many))
            for many in (False, True)
        }
        self.flags = linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWIPC if self.namespaces else 0
        self.scope = linux.landlock_scope() if self.namespaces and linux.landlock_abi() >= 6 else None
        if self.namespaces and self.scope is None:
            self.flags |= linux.CLONE_NEWNET  # keeps abstract sockets of one run from the next
        self.drop_capabilities = linux.drop_capabilities()
        self.close_rest = {first: linux.prepared("close_range", first, 0xFFFFFFFF, 0) for first in (5, 6)}

    def one_run(self) -> bool:
        """Takes a request, runs it, replies. False when the pool is gone."""
        data, ancillary, _, _ = self.control.recvmsg(REQUEST.size, 256)
        if not data:
            return False
        descriptors = list(memoryview(b"".join(item[2] for item in ancillary)).cast("i"))
        if len(data) != REQUEST.size:  # a kill that came after its run had ended
            return True
        request = REQUEST.unpack(data)
        box = None if self.namespaces else self._new_box()
        handle = ctypes.c_int(-1)
        started = time.monotonic()
        pid = linux.fork(self.flags, handle)
        if pid == 0:
            self._become(request, descriptors, box)
        for descriptor in descriptors:
            os.close(descriptor)
        reply = self._wait(pid, handle.value, request, started, box)
        os.close(handle.value)
        if box:
            _remove_tree(box)
        try:
            self.control.send(DONE + REPLY.pack(*reply))
        except OSError:  # the pool is gone
            return False
        return True

    def _new_box(self) -> str:
        self.runs += 1
        box = f"{self.config['box_parent']}/{self.runs}"
        os.mkdir(box, 0o700)
        return box

    def _become(self, request: tuple[Any, ...], descriptors: list[int], box: str | None) -> None:
        """In the child: take the descriptors, lock every door, run the job."""
        try:
            flags, cpu_s, _, memory, processes, file_size, disk, inodes, files = request
            trouble = len(descriptors)
            for target, descriptor in enumerate([*descriptors, self.trouble[1]]):
                os.dup2(descriptor, target)
            if self.scope is not None:
                self.scope()  # its descriptor goes with the next line
            self.close_rest[trouble + 1]()
            os.setsid()  # or kill(0, ...) would reach the fork-server
            if box is None:
                rootfs.mount_box(disk + os.fstat(0).st_size, inodes)  # the input lies there too
            else:
                os.chdir(box)
                linux.die_with_parent()
                if self.level == "landlock":
                    devices = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"]
                    readable = [*rootfs.readable_paths(), "/etc/ld.so.cache", *self.config["packages"].values()]
                    linux.landlock_files(readable, [box], devices)
            self._copy_input(box)
            _limit(flags, cpu_s, memory, processes if self.namespaces else 0, file_size, files)
            if box is not None:
                os.environ["HOME"] = os.environ["TMPDIR"] = box
            self.drop_capabilities()
            self.filter[processes > 1]()
            os.close(trouble)
        except BaseException as error:  # not the submission's doing: the pool raises it
            os.write(trouble, f"{type(error).__name__}: {error}".encode())
            os._exit(_SETUP_FAILED)
        try:
            child.main(self.common)
        except BaseException:  # the submission broke the harness it runs in, or the pool hung up
            os._exit(1)

    def _setup_trouble(self) -> bytes:
        try:
            return os.read(self.trouble[0], 4000)
        except BlockingIOError:
            return b""

    def _copy_input(self, box: str | None) -> None:
        """Standard input as a file of the run, so that /dev/stdin is one too."""
        if box is not None or not (size := os.fstat(0).st_size):
            return
        target = os.open(f"{rootfs.BOX}/stdin", os.O_RDWR | os.O_CREAT, 0o600)
        offset = 0
        while offset < size:
            offset += os.sendfile(target, 0, offset, size - offset)
        os.close(target)
        source = os.open(f"{rootfs.BOX}/stdin", os.O_RDONLY)
        os.dup2(source, 0)
        os.close(source)

    def _wait(
        self, pid: int, handle: int, request: tuple[Any, ...], started: float, box: str | None
    ) -> tuple[int, int, float, float, float, int]:
        _, cpu_s, wall_s, memory, _, _, disk, _, _ = request
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        self.watch.begin(pid, box, started, cpu_s, wall_s, memory if self.level != "full" else 0, disk)
        while True:
            ready = poll.poll(self.watch.next_look_ms())
            names = [descriptor for descriptor, _ in ready]
            if handle in names:
                break
            if CONTROL in names:
                self.control.recv(1)
                self.watch.reason = KILLED
                os.kill(pid, signal.SIGKILL)
                poll.unregister(self.control)
            elif self.watch.look():
                os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        if os.waitstatus_to_exitcode(status) == _SETUP_FAILED and self._setup_trouble():
            self.watch.reason = SETUP
        cpu = usage.ru_utime + usage.ru_stime
        peak = max(usage.ru_maxrss * 1024, self.watch.peak)
        return status, self.watch.reason, max(cpu, self.watch.cpu), time.monotonic() - started, self.watch.waited, peak


_SETUP_FAILED = 211  # exit status of a child that could not lock itself in; its pipe proves that it was no submission
KILLED, SETUP = 1, 7  # why a run ended: the pool asked; it never began. The others stand in watch.py


def _remove_tree(path: str) -> None:
    for folder, folders, files in os.walk(path, topdown=False):
        for name in files:
            os.unlink(os.path.join(folder, name))
        for name in folders:
            inner = os.path.join(folder, name)
            os.unlink(inner) if os.path.islink(inner) else os.rmdir(inner)
    os.rmdir(path)


def _limit(flags: int, cpu_s: float, memory: int, processes: int, file_size: int, files: int) -> None:
    def limit(kind: int, value: int) -> None:
        resource.setrlimit(kind, (value, value))

    if not flags & NO_ADDRESS_LIMIT:
        limit(resource.RLIMIT_AS, memory)
    # The watch looks at the exact CPU clock; this ends a process that escapes its look. PID 1 ignores the soft limit.
    limit(resource.RLIMIT_CPU, int(cpu_s) + 2)
    limit(resource.RLIMIT_FSIZE, file_size)
    limit(resource.RLIMIT_NOFILE, files)
    if processes:
        limit(resource.RLIMIT_NPROC, processes + 1)  # the fork-server counts too
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    stack = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    limit(resource.RLIMIT_STACK, stack)
