"""A real vLLM server for tests."""

import os
import signal
import socket
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Running:
    """A server and its processes: forks, which have imported vLLM already."""

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
