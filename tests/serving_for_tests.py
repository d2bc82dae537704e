"""A server of verifiers in a process of its own, and requests to it."""

import contextlib
import http.client
import json
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent
GOOD, BAD = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"
STDIN = {"style": "stdin", "inputs": ["1"], "outputs": ["1"]}
_OPTIONS = {"tags": {"use": "format", "policy": "lenient"}, "code": {"time_s": 2, "memory_mib": 256}}
FLAGS = ["--reward", "math + 0.1*format", "--allow", "tags", "code", "--options", json.dumps(_OPTIONS)]
FLAGS += ["--max-body-mib", "0.1", "--max-rows", "50"]


@contextlib.contextmanager
def serving(*flags, open_files=1024):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = f"import sys; sys.path[:0] = {[str(TESTS.parent), str(TESTS)]!r}; from verifiers.__main__ import main; "
    process = subprocess.Popen(
        [sys.executable, "-c", f"{script} sys.exit(main())", "serve", "--port", str(port), "--workers", "1", *flags],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files)),
    )
    with process:
        try:
            for _ in range(4000):  # a loaded machine takes its time
                with contextlib.suppress(OSError):
                    if ask(port, "GET", "/healthz")[0] == 200:
                        break
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.05)
            yield port, process
        finally:
            process.terminate()
            process.wait(30)


def ask(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        text = response.read().decode()
        return response.status, json.loads(text) if "json" in response.headers["content-type"] else text


def rows(*texts):
    return [{"id": i, "completion": text, "reference": 4} for i, text in enumerate(texts)]
