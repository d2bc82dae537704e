"""prime-rl, over HTTP.

PrimeIntellect's verifiers 0.4.0 is the real one where it is installed, in an interpreter of its own, PRIME_PYTHON.
"""

import asyncio
import importlib
import importlib.util
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from serving_for_tests import serving

GOOD, BAD = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"
CLIENT = Path(__file__).resolve().parents[2] / "verifiers" / "adapters" / "prime_client.py"


@pytest.fixture(scope="module")
def url():
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    with serving("--reward", "math + 0.1*format", "--allow", "format") as (port, _):
        yield f"http://127.0.0.1:{port}"


def client():
    spec = importlib.util.spec_from_file_location("a_copied_file", CLIENT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_prime_client(url):
    copied = client()
    ask = lambda *args, **kwargs: asyncio.run(copied.verified(*args, url=url, **kwargs))  # noqa: E731
    assert ask(GOOD, "4", prompt="2+2?") == pytest.approx(1.1)
    assert ask(BAD, 4) == pytest.approx(0.1)
    assert ask(GOOD, "4", reward="format") == 1.0
    for given, why in (((GOOD, None), "answer"), ((GOOD, ""), "422"), ((GOOD, "4", "x"), "not served")):
        with pytest.raises(copied.UnscoredError, match=why):
            ask(*given[:2], **({"reward": "exact"} if len(given) == 3 else {}))
    with pytest.raises(copied.UnscoredError):
        asyncio.run(copied.verified(GOOD, "4", url="http://127.0.0.1:9", timeout_s=2))


def test_a_reply_that_is_cut_off_is_no_reward():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):  # closed with data unread, the connection would be reset
                    pass

        threading.Thread(target=answer, daemon=True).start()
        copied = client()
        with pytest.raises(copied.UnscoredError, match="IncompleteRead"):
            asyncio.run(copied.verified(GOOD, "4", url=f"http://127.0.0.1:{server.getsockname()[1]}", timeout_s=10))


def test_the_prime_client_needs_nothing_but_the_standard_library():
    code = "import sys; sys.path[:0] = [sys.argv[1]]; import prime_client; print('verifiers' in sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", code, str(CLIENT.parent)]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "False\n"


TASK = """
import asyncio, sys
sys.path[:0] = [sys.argv[1]]
import verifiers.v1 as vf
from prime_client import verified

class SumsData(vf.TaskData):
    answer: str | None

class Sums(vf.Task[SumsData]):
    @vf.reward(weight=1.0)
    async def verified(self, trace: vf.Trace) -> float:
        return await verified(trace.last_reply, self.data.answer, prompt=str(self.data.prompt), url=sys.argv[2])

class Trace:
    def __init__(self, text):
        self.last_reply, self.rewards, self.metrics = text, {}, {}

    def record_reward(self, name, value, weight):
        self.rewards[name] = value * weight

for text, answer in ((sys.argv[3], "4"), ("5", "4"), (sys.argv[3], None)):
    task, trace = Sums(SumsData(idx=0, prompt="2+2?", answer=answer)), Trace(text)
    try:
        asyncio.run(task.score(trace))
    except Exception as error:
        print(type(error).__name__, trace.rewards)
    else:
        print(trace.rewards)
"""


@pytest.mark.skipif(not os.environ.get("PRIME_PYTHON"), reason="PRIME_PYTHON names no Python with their package")
def test_prime_itself(url):
    """prime-rl's own Task.score calls the reward; an error in it leaves the trace without a reward."""
    argv = [os.environ["PRIME_PYTHON"], "-I", "-c", TASK, str(CLIENT.parent), url, GOOD]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    wanted = ["{'verified': 1.1}", "{'verified': 0.0}", "TaskError {'verified': None}"]
    assert done.stdout.splitlines() == wanted, done.stderr
