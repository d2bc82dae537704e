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


class Running:
    """A server process."""

    def __init__(self, folder, port, *more):
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self.log = open(folder / f"server-{port}-{time.time():.0f}.log", "w")  # noqa: SIM115
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "r1lite", "serve-engine", "--port", str(port), "--threads", "1"),
                *("--rows", "16", *more),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()
