"""Commands in forks of one process that has imported torch: each begins in milliseconds and is a process of its own.

`Forks.start` works as `subprocess.Popen` does, as far as tests need it.

    python forks_for_tests.py DESCRIPTOR    serves requests out of this socket until it closes
"""

import atexit
import contextlib
import ctypes
import gc
import json
import multiprocessing.util
import os
import pickle
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LENGTH, _DEATH_SIGNAL = 1 << 20, 1

_RANKS = "import sys, {0}, world_for_tests; world_for_tests.launch(sys.argv[1], int(sys.argv[2]), {0}.run_all)"


class Process:
    """A command that was started. Its output lies in files until it is asked for."""

    def __init__(self, pid, ended, out, err):
        self.pid, self.returncode = pid, None
        self._ended, self._files = ended, (out, err)

    def poll(self):
        """The exit code as `subprocess` has it; None while it runs."""
        return self._wait(0)

    def wait(self, timeout=None):
        if self._wait(timeout) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return self.returncode

    def _wait(self, seconds):
        if self.returncode is None and select.select([self._ended], [], [], seconds)[0]:
            self.returncode = pickle.loads(os.read(self._ended, 100))
            os.close(self._ended)
        return self.returncode

    def communicate(self, timeout=None):
        """(standard output, standard error) at its end."""
        self.wait(timeout)
        return tuple(Path(file).read_text(encoding="utf-8", errors="replace") for file in self._files)

    def send_signal(self, number):
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


class Forks:
    """The process that forks, begun with the first command."""

    def __init__(self, folder):
        self._folder, self._socket, self._server = Path(folder), None, None

    def start(self, argv, *, code=None, cwd=None, paths=(), env=None):
        """Runs `r1lite ARGV`, or this code with ARGV as its arguments.

        Args:
            paths: what PYTHONPATH would hold, before the project's folder and tests/.
            env: further variables of the environment.
        """
        if self._server is None:
            self._launch()
        out, err = (tempfile.mkstemp(dir=self._folder)[1] for _ in range(2))
        ended, theirs = os.pipe()
        job = {"argv": [*map(str, argv)], "code": code, "cwd": str(cwd or os.getcwd()), "out": out, "err": err}
        job |= {"paths": [*map(str, paths)], "env": env or {}}
        socket.send_fds(self._socket, [json.dumps(job).encode()], [theirs])
        os.close(theirs)
        return Process(int(self._socket.recv(100)), ended, out, err)

    def start_ranks(self, folder, jobs, size=2, module="world_for_tests", **options):
        """Runs a module's jobs one after the other on so many ranks; the process is their launcher."""
        path = Path(folder) / f"jobs-{size}.json"
        path.write_text(json.dumps(jobs))
        return self.start([path, size], code=_RANKS.format(module), **options)

    def run(self, argv, *, timeout=600, **options):
        """The same to its end: (exit code, standard output, standard error)."""
        process = self.start(argv, **options)
        out, err = process.communicate(timeout)
        return process.returncode, out, err

    def _launch(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        )
        theirs.close()

    def close(self):
        if self._server is not None:
            self._socket.close()
            self._server.wait(60)


def serve(control):
    """Forks for each request. Returns: its job, in the fork."""
    import preloaded  # noqa: F401

    gc.collect()
    gc.freeze()  # a collection in a fork would copy all of it
    running = {}  # by descriptor of the process: its pid, where its end is told
    while True:
        for ready in select.select([control, *running], [], [])[0]:
            if ready is not control:
                pid, told = running.pop(ready)
                os.write(told, pickle.dumps(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
                os.close(told)
                os.close(ready)
                continue
            request, descriptors, _, _ = socket.recv_fds(control, _LENGTH, 1)
            if not request:
                os._exit(0)
            pid = os.fork()
            if not pid:
                return json.loads(request)
            running[os.pidfd_open(pid)] = pid, descriptors[0]
            control.send(str(pid).encode())


def become(job):
    """In the fork: what a fresh interpreter would have begun with."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, job["out"], os.O_WRONLY),
        (2, job["err"], os.O_WRONLY),
    ):
        opened = os.open(path, flags | os.O_APPEND * bool(number))
        os.dup2(opened, number)
    os.closerange(3, 1 << 16)
    os.chdir(job["cwd"])
    sys.path[:0] = job["paths"]
    os.environ.update(job["env"])
    os.environ["PYTHONPATH"] = os.pathsep.join([*job["paths"], os.environ["PYTHONPATH"]])
    multiprocessing.util.spawnv_passfds = fork_of_this
    if job["code"] is None:
        sys.argv = ["r1lite", *job["argv"]]
        to_its_end(lambda: runpy.run_module("r1lite", run_name="__main__", alter_sys=True))
    sys.argv = ["-c", *job["argv"]]
    to_its_end(lambda: run_code(job["code"]))


def fork_of_this(_, argv, descriptors):
    """An interpreter that `multiprocessing` starts, the server of its own forks for one, has all imported too."""
    pid = os.fork()
    if pid:
        return pid
    atexit._clear()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    kept = sorted({2, *descriptors})
    for low, high in zip(kept, [*kept[1:], 1 << 16], strict=True):
        os.closerange(low + 1, high)
    code = argv.index("-c") + 1
    sys.argv = ["-c", *argv[code + 1 :]]
    to_its_end(lambda: run_code(argv[code]))


def run_code(code):
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


def to_its_end(work):
    """Does this, then exits as an interpreter does."""
    code = 1
    try:
        work()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
    # As the interpreter ends, but for the modules, whose end would copy all that was imported.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    become(serve(socket.socket(fileno=int(sys.argv[1]))))
