"""Commands in forks of one process that has imported torch: each begins in milliseconds and is a process of its own.

`Forks.start` works as `subprocess.Popen` does, as far as tests need it.

    python forks_for_tests.py DESCRIPTOR    serves who connects to this socket, until the last has left
"""

import atexit
import contextlib
import ctypes
import fcntl
import functools
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
_FORK_EXEC, _EXECVE = subprocess._fork_exec, os.execve
_FLAGS = {"-u", "-I", "-S"}  # of an interpreter
_FIXED = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), "OMP_NUM_THREADS": "1"}

_SCRIPT = (
    "import os, runpy, sys; del sys.argv[0]; sys.path.insert(0, os.path.dirname(sys.argv[0])); "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)
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
    """The process that forks: begun with the first command, and shared by all who name the same folder."""

    def __init__(self, folder, shared=None):
        self._folder, self._shared = Path(folder), Path(shared or folder)
        self._socket, self._lock = None, threading.Lock()

    @property
    def environment(self):
        """With these variables another process joins in: `Forks.of_environment`."""
        if self._socket is None:
            self._join()
        return {"TESTS_FORKS": os.pathsep.join([str(self._folder), str(self._shared)])}

    @classmethod
    def of_environment(cls):
        return cls(*os.environ["TESTS_FORKS"].split(os.pathsep))

    def start(
        self, argv, *, code=None, script=None, cwd=None, paths=(), env=None, output=None, session=False, hooks=True
    ):
        """Runs `r1lite ARGV`, or this code, or this file, with ARGV as its arguments.

        Args:
            paths: what PYTHONPATH would hold, before the project's folder and tests/.
            env: further variables of the environment.
            output: a file that exists, to which all that it prints is added.
            session: whether it leads a session, and so a process group, of its own.
            hooks: whether the Python programs that it starts are forks of it.
        """
        with self._lock:
            if self._socket is None:
                self._join()
        if script is not None:
            argv, code = [script, *argv], _SCRIPT
        out, err = [str(output)] * 2 if output else (tempfile.mkstemp(dir=self._folder)[1] for _ in range(2))
        ended, theirs = os.pipe()
        variables = {**os.environ, **_FIXED, **(env or {})}
        variables["PYTHONPATH"] = os.pathsep.join([*map(str, paths), variables["PYTHONPATH"]])
        job = {"argv": [*map(str, argv)], "code": code, "cwd": str(cwd or os.getcwd()), "out": out, "err": err}
        job |= {"paths": [*map(str, paths)], "env": variables, "session": session, "hooks": hooks}
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(job).encode()], [theirs])
            pid = int(self._socket.recv(100))
        os.close(theirs)
        return Process(pid, ended, out, err)

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

    def _join(self):
        with open(self._shared / "forks.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._connect():
                return
            address = self._shared / "forks"
            address.unlink(missing_ok=True)  # of one that has ended
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening, _short(address) as path:
                listening.bind(path)
                listening.listen()
                listening.set_inheritable(True)
                command = [sys.executable, __file__, str(listening.fileno())]
                os.posix_spawn(sys.executable, command, {**os.environ, **_FIXED})
            assert self._connect(), "the process that forks did not start"

    def _connect(self):
        """Whether there is one that answers, which it does when it has imported all."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with _short(self._shared / "forks") as path:
                made.connect(path)
            answers = bool(made.recv(100))
        except OSError:
            answers = False
        if answers:
            self._socket = made
        else:
            made.close()
        return answers

    def close(self):
        """It ends with the last who used it."""
        if self._socket is not None:
            self._socket.close()


@contextlib.contextmanager
def _short(path):
    """The path of a socket, which has room for a hundred characters only."""
    folder = os.open(path.parent, os.O_PATH)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def serve(listening):
    """Forks for each request. Returns: its job, in the fork."""
    import preloaded  # noqa: F401

    gc.collect()
    gc.freeze()  # a collection in a fork would copy all of it
    clients, running = [], {}  # by descriptor of the process: its pid, where its end is told
    while True:
        for ready in select.select([listening, *clients, *running], [], [])[0]:
            if ready is listening:
                clients.append(listening.accept()[0])
                with contextlib.suppress(OSError):  # who asked may have been killed meanwhile, here and below
                    clients[-1].send(b"ready")
                continue
            if ready in running:
                pid, told = running.pop(ready)
                with contextlib.suppress(OSError):
                    os.write(told, pickle.dumps(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
                os.close(told)
                os.close(ready)
                continue
            try:
                request, descriptors, _, _ = socket.recv_fds(ready, _LENGTH, 1)
            except OSError:
                request = b""
            if not request:
                clients.remove(ready)
                ready.close()
                if not clients:
                    os._exit(0)
                continue
            pid = os.fork()
            if not pid:
                return json.loads(request)
            running[os.pidfd_open(pid)] = pid, descriptors[0]
            with contextlib.suppress(OSError):
                ready.send(str(pid).encode())


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
    if job["session"]:
        os.setsid()
    os.chdir(job["cwd"])
    sys.path[:0] = job["paths"]
    os.environ.clear()
    os.environ.update(job["env"])
    if job["hooks"]:
        multiprocessing.util.spawnv_passfds, subprocess._fork_exec = server_of_forks, fork_exec
        os.execve = execve
    if job["code"] is None:
        sys.argv = ["r1lite", *job["argv"]]
        to_its_end(lambda: runpy.run_module("r1lite", run_name="__main__", alter_sys=True))
    sys.argv = ["-c", *job["argv"]]
    to_its_end(lambda: run_code(job["code"]))


def server_of_forks(_, argv, descriptors):
    """In the place of `multiprocessing.util.spawnv_passfds`: its server too has all imported."""
    pid = forked()
    if not pid:
        only(sorted({2, *descriptors}))
        code = argv.index("-c") + 1
        sys.argv = ["-c", *argv[code + 1 :]]
        to_its_end(lambda: run_code(argv[code]))
    return pid


def fork_exec(argv, *given):
    """In the place of what `subprocess` starts: `python -m MODULE`, `-c CODE` and `python FILE` are forks."""
    words = program([os.fsdecode(word) for word in argv])
    if not words:
        return _FORK_EXEC(argv, *given)
    _, _, kept, folder, variables, read, _, _, write, _, errors, _, waited_for, _, session, *_ = given
    pid = forked()
    if pid:
        return pid
    for number, end in enumerate((read, write, errors)):
        if end not in (-1, number):
            os.dup2(end, number)
    only(sorted({2, *kept} - {waited_for}))  # its end tells `subprocess` that the program runs
    if session:
        os.setsid()
    if folder is not None:
        os.chdir(folder)
    become_program(words, variables and dict(pair.split(b"=", 1) for pair in variables))


def execve(path, argv, variables):
    """In the place of `os.execve`: this process goes on as `python -m MODULE`; all else is executed."""
    words = program(argv)
    if words[:1] != ["-m"]:
        _EXECVE(path, argv, variables)
    become_program(words, {os.fsencode(name): os.fsencode(value) for name, value in variables.items()})


def program(words):
    """The words after the interpreter's flags for `-m MODULE ...`, `-c CODE ...` and `FILE ...`; else none."""
    first = next((place for place in range(1, len(words)) if words[place] not in _FLAGS), 0)
    known = words[0] == sys.executable and first and (words[first] in ("-m", "-c") or words[first].endswith(".py"))
    return words[first:] if known else []


def become_program(words, variables):
    """Runs what `program` gave, in this process and to its end."""
    if variables is not None:
        os.environb.clear()
        os.environb.update(variables)
    if words[0] == "-m":
        first, sys.argv = os.getcwd(), words[1:]
        work = functools.partial(runpy.run_module, sys.argv[0], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        first, sys.argv = "", ["-c", *words[2:]]
        work = functools.partial(run_code, words[1])
    else:
        first, sys.argv = str(Path(words[0]).parent), words
        work = functools.partial(runpy.run_path, sys.argv[0], run_name="__main__")
    sys.path[:0] = [first, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    to_its_end(work)


def forked():
    """A fork of this process that has nothing of what it was about: 0 there, its number here."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        atexit._clear()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return pid


def only(kept):
    """Closes all descriptors after the first three but these."""
    for low, high in zip(kept, [*kept[1:], 1 << 16], strict=True):
        os.closerange(low + 1, high)


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
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
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
