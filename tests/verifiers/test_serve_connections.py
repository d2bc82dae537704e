"""Connections to the server: their number, those that stall or hang up, and bodies at random."""

import asyncio
import collections
import contextlib
import http.client
import json
import random
import resource
import socket
import threading
import time
from pathlib import Path

import pytest
from serving_for_tests import FLAGS, GOOD, STDIN, ask, rows, serving

from verifiers.commands.serve import _connections
from verifiers.server.requests import BadRequest, flaw_of, read_json, row_item

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def port():
    with serving(*FLAGS) as (number, _):
        yield number


@pytest.mark.parametrize("limit", [4096, resource.RLIM_INFINITY])
def test_as_many_connections_as_the_limit_on_open_files_allows(monkeypatch, limit):
    monkeypatch.setattr("resource.getrlimit", lambda _: (limit, limit))
    assert _connections(2000, workers=1) == 2000


def wait_until(holds, seconds=60):
    """Polls, with generous time for machines under load."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.1)


def open_connection(port, sent):
    found = socket.create_connection(("127.0.0.1", port), 30)
    found.sendall(sent)
    return found


def is_closed(connection):
    """True if the server has closed the connection; data that it sent before is discarded."""
    connection.setblocking(False)
    try:
        while data := connection.recv(1 << 16):
            assert data
        return True
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


HEAD = b"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n"
STALLED = {
    "nothing sent": b"",
    "half a head": HEAD[:40],
    "no body": HEAD + b"\r\n",
    "half a body": HEAD + b"\r\n" + b'{"rows": [',
    "a refused body": HEAD.replace(b"localhost", b"evil.example") + b"\r\n" + b'{"rows": [',
    "a body that nobody reads": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\nxx",
    "chunks": HEAD.replace(b"Content-Length: 5000", b"Transfer-Encoding: chunked") + b"\r\n5\r\nhello\r\n",
}


def test_stalled_and_trickling_connections_are_closed(port):
    """An occasional byte is not progress: a head has 5 s, a body must send 64 KiB a second after its first 10."""
    stalled = [open_connection(port, sent) for sent in STALLED.values()]
    trickling = [open_connection(port, sent) for sent in (HEAD[:-2], HEAD + b"\r\n")]
    closed = []
    began = time.monotonic()
    while len(closed) < len(stalled + trickling):
        assert time.monotonic() - began < 60
        for connection in [c for c in stalled + trickling if c not in closed]:
            try:
                ended = is_closed(connection) or (connection in trickling and not connection.send(b"x"))
            except (ConnectionError, BlockingIOError):
                ended = True
            if ended:
                connection.close()
                closed.append(connection)
        time.sleep(0.2)


def test_stalled_connections_make_room():
    """Three times as many connections as may be open stall repeatedly; a client is served meanwhile."""
    with serving("--max-connections", "12") as (port, process):
        opened = []
        try:
            for _ in range(3):
                for sent in list(STALLED.values()) * 2:
                    with contextlib.suppress(ConnectionError):
                        opened.append(open_connection(port, sent))
                wait_until(lambda: answers(port), 30)
            assert descriptors(process.pid) < 12 + 40
        finally:
            for connection in opened:
                connection.close()


def answers(port):
    """True if a request is answered; a reply that too many connections are open does not count."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        return ask(port, "POST", "/v1/verify", {"rows": rows("4")})[0] == 200
    return False


def descriptors(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_no_token_no_room_for_bodies(tmp_path):
    """Clients without the token, at 256 descriptors, keep nobody out; what they send is not stored."""
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    with serving("--token-file", str(secret), "--max-body-mib", "8", open_files=256) as (port, process):
        opened = []
        try:
            for _ in range(400):
                with contextlib.suppress(ConnectionError):
                    opened.append(open_connection(port, HEAD + b"\r\n" + b"x" * 100))
            header = {"Authorization": "Bearer s3cret"}

            def served():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    return ask(port, "POST", "/v1/verify", {"rows": rows("4")}, header)[0] == 200
                return False

            wait_until(served, 30)
            assert descriptors(process.pid) <= 256
        finally:
            for connection in opened:
                connection.close()


@pytest.mark.parametrize("closes", [False, True], ids=["keep-alive", "close"])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_a_refusal_reaches_a_client_that_still_writes(port, closes, chunked):
    """The client gets 413 and no reset, although it reads only after it has sent everything."""
    body = b"x" * 350_000  # the limit is 0.1 MiB
    head = b"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Connection: close\r\n" if closes else b""
    if chunked:
        sent = head + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    else:
        sent = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with open_connection(port, sent) as connection:
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"larger than 0.1 MiB" in answer


def test_requests_at_random(port):
    """Sends 600 mutated requests: each is answered, none with 500."""
    rng = random.Random(14)
    row = {"id": "a", "completion": "4", "prompt": "p", "reference": "4", "language": "en", "token_ids": [1]}
    row |= {"tests": {**STDIN, "checker": "tokens"}, "meta": {"k": [1, {"n": None}]}}
    verify = {"reward": "math + 0.1*format + tags", "config": {"math": {}}, "rows": [row, row]}
    openrlhf = {"query": ["p4", "p5"], "prompts": ["p", "p"], "labels": ["4", 4], "more": {}}
    strange = [
        None,
        True,
        0,
        -1,
        10**30,
        1.5,
        1e300,
        "",
        " ",
        "nan",
        "\ud800",
        "\x00\x1b[31m",
        "x" * 3000,
        [],
        {},
        [[]],
    ]
    strange += [{"use": "os:system"}, ["use"], "os:system", float("nan"), float("inf"), "((((", "../../etc/passwd"]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    codes = collections.Counter()
    for _ in range(600):
        path, whole = rng.choice([("/v1/verify", verify), ("/v1/verify", verify), ("/get_reward", openrlhf)])
        body = json.dumps(mutated(rng, whole, strange)).encode()
        if rng.random() < 0.3:
            at, end = sorted(rng.sample(range(len(body) + 1), 2))
            body = body[:at] + rng.choice([b"", b"\xff", b"{", b'"', b"[" * 2000, b"1e999", b",,"]) + body[end:]
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        codes[response.status] += 1
        assert response.status in (200, 413, 422), (body, answer)
        json.loads(answer)
    connection.close()
    assert codes[200] > 20
    assert codes[422] > 100


def mutated(rng, value, strange):
    """Returns a copy with one or two parts replaced, removed or duplicated."""
    found = json.loads(json.dumps(value))
    for _ in range(rng.choice([1, 1, 2])):
        part = found
        while True:
            keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else []
            if not keys:
                break
            key = rng.choice(list(keys))
            if isinstance(part[key], dict | list) and part[key] and rng.random() < 0.75:
                part = part[key]
                continue
            kind = rng.random()
            if kind < 0.7:
                part[key] = rng.choice(strange)
            elif kind < 0.85:
                del part[key]
            elif isinstance(part, dict):
                part[rng.choice(["use", "path", "", "isolation", "checker", "reference", "query"])] = rng.choice(
                    strange
                )
            else:
                part.append(rng.choice(strange))
            break
    return found


def test_a_client_that_hangs_up_in_its_body_leaves_no_traceback():
    with serving("--reward", "math") as (port, process):
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                head = "POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                client.sendall(f"{head}Content-Length: 50\r\n\r\n{{".encode())
        assert ask(port, "POST", "/v1/verify", {"rows": rows(GOOD)})[0] == 200
        process.terminate()
        assert "Traceback" not in process.stderr.read()


def test_a_repeated_key_among_many_is_found_in_linear_time():
    keys = b", ".join(b'"k%d": 1' % number for number in range(200_000))
    before = time.process_time()
    found = read_json(b'{"config": {%s, "k199999": 2}, "rows": []}' % keys)
    assert time.process_time() - before < 10  # it took minutes
    assert flaw_of(found).startswith("the key 'k199999' occurs twice")


def test_a_large_body_is_read_while_others_are_answered(monkeypatch):
    from verifiers.server.app import _read

    class Asked:
        def __init__(self):
            self.headers = {"content-type": "application/json"}

        async def body(self):
            return b" " * 1_000_000

    others = threading.Event()
    monkeypatch.setattr("verifiers.server.requests.read_json", lambda body: others.wait(60))

    async def reads():
        asyncio.get_running_loop().call_later(0.01, others.set)
        return await _read(Asked(), lambda value: value)

    assert asyncio.run(reads())


def test_a_limit_that_no_float_holds_is_an_error_of_its_row():
    row = {"completion": "4", "tests": {"time_s": 10**400}}
    with pytest.raises(BadRequest, match=r"^rows\[3\]\.tests\.time_s: 1000.* is more than this server allows \(10\)"):
        row_item(3, row, reads_gold=False, limits={"time_s": 10})
