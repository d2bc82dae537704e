"""A process of this machine that dies with its parent."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from r1lite.launch import keeper


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
