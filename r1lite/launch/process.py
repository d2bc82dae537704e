"""Processes of this machine that die with their parent, and `--on local`, which runs ranks and engines as such."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from r1lite.launch import keeper
from r1lite.launch.commands import Job, environment_of, rank_environment
from r1lite.launch.layout import ProcessSpec
from r1lite.launch.running import Running


class LocalProcess:
    """A command in its own session, so that a terminal's Ctrl-C doesn't reach it. It dies with this process.

    Args:
        words: the words of the command.
        variables: environment variables in addition to this process's.
        log: file to which its output is appended.
        folder: its working directory; None: that of this process.
    """

    def __init__(
        self, words: Sequence[str], variables: Mapping[str, str], log: Path, folder: Path | None = None
    ) -> None:
        self._lock = threading.Lock()
        with open(log, "ab") as output:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, *words],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
                cwd=folder,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        """See `Process.poll`."""
        with self._lock:
            if self._keeper.returncode is None:
                # While it isn't reaped, no other process can get its group's number, so killing the group is safe.
                if os.waitid(os.P_PID, self._keeper.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    return None
                self._end_group()
            return self._reaped()

    def signal(self, number: int) -> None:
        """See `Process.signal`."""
        self._keeper.send_signal(number)

    def kill(self) -> None:
        """See `Process.kill`."""
        with self._lock:
            if self._keeper.returncode is None:
                self._end_group()
                self._reaped()

    def _reaped(self) -> int:
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        code = self._keeper.wait()
        return code if code >= 0 else 128 - code

    def _end_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._keeper.pid, signal.SIGKILL)


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Free ports at an address of this machine."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((host, 0))
        return [int(one.getsockname()[1]) for one in sockets]


_HOST = "127.0.0.1"


class LocalLauncher:
    """Starts the processes of a job.

    Args:
        folder: folder of the logs.
    """

    def __init__(self, job: Job, specs: Sequence[ProcessSpec], folder: Path) -> None:
        self._job, self._folder = job, folder
        self._ranks = [spec for spec in specs if spec.kind == "rank"]
        self.engines = [spec for spec in specs if spec.kind == "engine"]
        # Passed in the environment, because other users can see arguments.
        self.token = secrets.token_urlsafe(32) if self.engines else ""
        self._ports = dict(zip(self.engines, free_ports(len(self.engines)), strict=True))

    def start_engine(self, spec: ProcessSpec) -> tuple[Running, str]:
        """See `Launcher.start_engine`."""
        port = self._ports[spec]
        words = self._job.engine_words(_HOST, port)
        return self._start(spec, words, environment_of(spec, self.token)), f"http://{_HOST}:{port}"

    def start_ranks(self, urls: Sequence[str], *, again: bool) -> list[Running]:
        """See `Launcher.start_ranks`."""
        words = self._job.rank_words(urls, resume=again and self._job.has_begun())
        (port,) = free_ports(1)
        size = len(self._ranks)
        return [self._start(spec, words, rank_environment(spec, size, _HOST, port, self.token)) for spec in self._ranks]

    def _start(self, spec: ProcessSpec, words: Sequence[str], variables: dict[str, str]) -> Running:
        log = self._folder / spec.log
        return Running.begun(spec, log, lambda: LocalProcess(words, variables, log))

    def close(self) -> None:
        """Does nothing: the processes have ended, or end with this one."""
