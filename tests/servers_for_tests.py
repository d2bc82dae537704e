"""A real vLLM server for tests."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Fresh:
    """In the place of `Forks`: a fresh interpreter, as users start it."""

    @staticmethod
    def start(argv, *, output, session):
        command = [sys.executable, "-m", "r1lite", *map(str, argv)]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        with open(output, "ab") as log:
            return subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=session)


class Running:
    """A server and its processes, which are forks that have imported vLLM already."""

    def __init__(self, forks, folder, port, *more):
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        log = folder / f"server-{port}-{time.time():.0f}.log"
        log.touch()
        self.process = forks.start(
            ["serve-engine", "--port", port, "--threads", "1", "--rows", "16", *more],
            output=log,
            session=True,
        )

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
