"""The server: routes, limits, token, back-pressure, shutdown."""

import asyncio
import collections
import concurrent.futures
import contextlib
import http.client
import json
import random
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from verifiers import resolve
from verifiers.__main__ import main
from verifiers.commands.serve import _connections, _example
from verifiers.server.requests import BadRequest, flaw_of, read_json, row_item

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
TESTS = Path(__file__).resolve().parents[1]
GOOD, BAD = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"


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


@pytest.fixture(scope="module")
def port():
    options = {"tags": {"use": "format", "policy": "lenient"}, "code": {"time_s": 2, "memory_mib": 256}}
    flags = ["--reward", "math + 0.1*format", "--allow", "tags", "code", "--options", json.dumps(options)]
    flags += ["--max-body-mib", "0.1", "--max-rows", "50"]
    with serving(*flags) as (number, _):
        yield number


def rows(*texts):
    return [{"id": i, "completion": text, "reference": 4} for i, text in enumerate(texts)]


def test_verify(port):
    code, answer = ask(port, "POST", "/v1/verify", {"rows": rows(GOOD, BAD, "4")})
    assert code == 200
    assert [v["reward"] for v in answer["verdicts"]] == [pytest.approx(1.1), pytest.approx(0.1), pytest.approx(1.0)]
    assert [v["id"] for v in answer["verdicts"]] == [0, 1, 2]
    assert answer["verdicts"][1]["verdicts"]["math"]["reason"] == "different"
    assert answer["versions"]["format"] == resolve("format").version


def test_the_example_of_the_readme(port):
    text = (TESTS.parent / "verifiers" / "README.md").read_text(encoding="utf-8").split("## Over HTTP")[1]
    body = json.loads(text.split("-d '")[1].split("'\n")[0])
    shown = json.loads(text.split("```json\n")[1].split("```")[0])
    code, answer = ask(port, "POST", "/v1/verify", body)

    def bare(reply):  # versions change with the verifiers
        verdicts = reply["verdicts"][0]["verdicts"].values()
        return {**reply, "versions": sorted(reply["versions"])}, [verdict.pop("version") for verdict in verdicts]

    assert code == 200
    assert bare(answer)[0] == bare(shown)[0]


def test_what_it_prints_is_a_line_that_works():
    """The server prints its address and a call. The test makes an equivalent call, and runs curl if it is installed."""
    with serving("--reward", "math + 0.1*format") as (port, process):
        head = [process.stderr.readline() for _ in range(4)][1:]  # after the formula
        assert head[0].startswith(f"listening on http://127.0.0.1:{port} ")
        name, call = head[2].split(": ", 1)
        assert name == "try"
        words = shlex.split(call)
        assert words[:3] == ["curl", "-s", f"http://127.0.0.1:{port}/v1/verify"]
        key, _, value = words[words.index("-H") + 1].partition(": ")
        status, reply = ask(port, "POST", "/v1/verify", words[words.index("-d") + 1].encode(), {key: value})
        assert (status, reply["verdicts"][0]["reward"]) == (200, 1.1)
        if shutil.which("curl"):
            told = subprocess.run(["sh", "-c", call], capture_output=True, text=True)
            assert json.loads(told.stdout) == reply


def test_the_line_has_the_token_and_an_address_that_can_be_called(tmp_path):
    line = _example("http://0.0.0.0:8770", tmp_path / "to ken")
    assert line.startswith("curl -s http://127.0.0.1:8770/v1/verify ")
    assert f"Authorization: Bearer $(cat '{tmp_path / 'to ken'}')" in line
    assert "http://[::1]:8770/" in _example("http://[::]:8770", None)


def test_the_readmes_openrlhf_bodies(port):
    text = (TESTS.parent / "verifiers" / "README.md").read_text(encoding="utf-8")
    asked, told = re.search(r"/get_reward -H .*? -d '(.*?)'\n```\n\n```json\n(.*?)```", text, re.DOTALL).groups()
    assert ask(port, "POST", "/get_reward", asked.encode()) == (200, json.loads(told))


def test_openapi(port):
    """The page is served, and the schema has the bodies that the routes take."""
    assert "openapi.json" in ask(port, "GET", "/docs")[1]
    paths = ask(port, "GET", "/openapi.json")[1]["paths"]
    assert set(paths) == {"/v1/verify", "/get_reward", "/slime", "/healthz", "/metrics"}
    schema = paths["/v1/verify"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]["rows"]["items"]["properties"]) >= {"completion", "reference", "tests"}
    body = paths["/get_reward"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {"query", "prompts", "labels"}


def test_verify_with_another_reward(port):
    body = {"reward": "tags", "rows": rows(f"so {GOOD}")}  # its option was set when the server started
    assert ask(port, "POST", "/v1/verify", body)[1]["verdicts"][0]["reward"] == 1.0
    body = {"verifier": "math", "rows": [{"id": "x", "completion": "4"}]}
    verdict = ask(port, "POST", "/v1/verify", body)[1]["verdicts"][0]
    assert verdict["reward"] is None
    assert "has no answer" in verdict["error"]


STDIN = {"style": "stdin", "inputs": ["1"], "outputs": ["1"]}
ONE = {"completion": "4", "reference": "4"}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"reward": "os:system", "rows": []}, 422, "'os:system' is not served; served: code, format, math, tags"),
        ({"verifier": "verifiers.match:Exact", "rows": []}, 422, "is not served"),
        ({"reward": "exact", "rows": []}, 422, "'exact' is not served"),  # ours, and not allowed
        ({"reward": "rm:/etc", "rows": []}, 422, "'rm:/etc' is not served"),
        ({"reward": "math", "verifier": "format", "rows": []}, 422, "not both"),
        ({"reward": "math *", "rows": []}, 422, "can't read the reward formula"),
        ({"reward": "-" * 1900 + "math", "rows": []}, 422, "nested too deeply"),
        ({"reward": "(" * 900 + "math" + ")" * 900, "rows": []}, 422, "can't read the reward formula"),
        ({"reward": "1", "rows": []}, 422, "names no verifier"),
        ({"reward": "math\ud800", "rows": []}, 422, "lone surrogate"),
        ({"reward": ["math"], "rows": []}, 422, "reward: "),
        ({"reward": "a", "config": {"a": {"use": "os:system"}}, "rows": []}, 422, "'a' is not served"),
        ({"verifier": "code", "config": {"code": {"isolation": "rlimit-only"}}, "rows": []}, 422, "config.code"),
        ({"verifier": "code", "config": {"code": {"processes": 8}}, "rows": []}, 422, "options are fixed"),
        ({"verifier": "code", "config": {"code": {"use": ["code"]}}, "rows": []}, 422, "config.code.use"),
        ({"verifier": "code", "config": {"code": {"time_s": 3}}, "rows": []}, 422, "at most 2"),
        ({"verifier": "code", "config": {"code": {"time_s": 0}}, "rows": []}, 422, "above 0"),
        ({"verifier": "code", "config": {"code": {"time_s": True}}, "rows": []}, 422, "config.code.time_s"),
        ({"verifier": "math", "config": {"math": {"time_s": 1}}, "rows": []}, 422, "none to lower"),
        ({"config": {"nobody": {}}, "rows": []}, 422, "has no such verifier"),
        ({"config": [], "rows": []}, 422, "config"),
        ({"rows": rows("4"), "path": "/etc"}, 422, "path: Extra inputs"),
        ({"rows": {}}, 422, "rows: "),
        ([], 422, "must be an object"),
        (b"4", 422, "must be an object"),
        ({"rows": [{"completion": 4}]}, 422, "rows[0].completion: "),
        ({"rows": [{"text": "4"}]}, 422, "required"),
        ({"rows": [{**ONE, "reference": True}]}, 422, "rows[0].reference: the gold must be text or a number, got true"),
        ({"rows": [{**ONE, "token_ids": [1.5]}]}, 422, "rows[0].token_ids.0"),
        ({"rows": [{**ONE, "id": True}]}, 422, "rows[0].id"),
        ({"verifier": "code", "rows": [{**ONE, "tests": {**STDIN, "checker": "subprocess:call"}}]}, 422, "checker"),
        (
            {"verifier": "code", "rows": [{**ONE, "tests": {**STDIN, "time_s": 99}}]},
            422,
            "more than this server allows",
        ),
        (b"{", 422, "JSON"),
        (b"", 422, "JSON"),
        (b'\xff{"rows": []}', 422, "not UTF-8"),
        (b"[" * 50_000, 422, "nested too deeply"),
        (b'{"rows": [], "rows": []}', 422, "occurs twice"),
        (b'{"rows": [], "config": {"math": {"time_s": NaN}}}', 422, "NaN is not JSON"),
        ({"rows": rows(*["4"] * 51)}, 413, "at most 50"),
        ({"rows": rows("x" * 200_000)}, 413, "larger than 0.1 MiB"),
    ],
)
def test_bad_requests(port, body, code, message):
    found, answer = ask(port, "POST", "/v1/verify", body)
    assert (found, message in json.dumps(answer)) == (code, True), answer


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b'{"completion": "4", "reference": NaN}', "NaN is not JSON"),
        (b'{"completion": "4", "reference": -Infinity}', "-Infinity is not JSON"),
        (b'{"completion": "4", "reference": 1e999}', "out of range"),
        (b'{"completion": "4", "reference": %s}' % (b"9" * 5000), "5000 digits"),
        (b'{"completion": "4", "reference": "nan"}', "missing value"),
        (b'{"completion": "4", "reference": {}}', "got {}"),
        (b'{"completion": "4", "reference": []}', "got []"),
        (b'{"completion": "4", "reference": true}', "got true"),
        (b'{"completion": "4", "reference": " \\t"}', "the gold is empty"),
        (b'{"completion": "4", "reference": "4", "meta": {"a": [NaN]}}', "NaN is not JSON"),
        (b'{"completion": "\\ud800", "reference": "4"}', "lone surrogate"),
        (b'{"completion": "4", "reference": "4", "meta": {"\\udfff": 1}}', "lone surrogate"),
        (b'{"completion": "5", "completion": "4", "reference": "4"}', "'completion' occurs twice"),
        (b'{"completion": "4", "reference": "4", "meta": {"a": %s}}' % (b"[" * 90 + b"]" * 90), "deeper than 64"),
        (b'{"completion": ["4"], "reference": "4"}', "completion"),
        (b"null", "dictionary"),
        (b"17", "dictionary"),
    ],
)
def test_a_bad_row_leaves_the_others_their_verdicts(port, row, message):
    body = (
        b'{"rows": [{"id": "a", "completion": "4", "reference": "4"}, %s, {"completion": "5", "reference": "4"}]}' % row
    )
    code, answer = ask(port, "POST", "/v1/verify", body)
    assert code == 200, answer
    first, bad, last = answer["verdicts"]
    assert (first["id"], first["reward"], last["reward"]) == ("a", 1.0, 0.0)
    assert bad["reward"] is None
    assert bad["error"].startswith("rows[1]")
    assert message in bad["error"]


def test_code_with_lower_limits(port):
    loop = "```python\nwhile True: pass\n```"
    body = {"verifier": "code", "config": {"code": {"time_s": 0.2}}, "rows": [{"completion": loop, "tests": STDIN}]}
    code, answer = ask(port, "POST", "/v1/verify", body)
    assert (code, answer["verdicts"][0]["verdicts"]["code"]["reason"]) == (200, "TLE"), answer
    body = {"verifier": "code", "rows": [{"completion": "```python\nprint(input())\n```", "tests": STDIN}]}
    assert ask(port, "POST", "/v1/verify", body)[1]["verdicts"][0]["reward"] == 1.0


def test_content_type_and_host(port):
    """Refuses a web page's plain form, and a host name that an attacker's DNS points to this machine."""
    body = {"rows": rows("4")}
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert ask(port, "POST", "/v1/verify", body, {"Content-Type": kind})[0] == 415
    for host in ("localhost", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert ask(port, "POST", "/v1/verify", body, {"Host": host})[0] == 200, host
    for host in ("evil.example", f"evil.example:{port}", "", "localhost.evil.example", "127.0.0.1.evil.example"):
        assert ask(port, "POST", "/v1/verify", body, {"Host": host})[0] == 421, host


CALLED = {"inputs": ["1"], "outputs": ["[2]"], "fn_name": "f"}  # APPS' form, whose result may be wrapped in a list
RIGHT, WRONG = (f"```python\ndef f(x):\n    return x + {number}\n```" for number in (1, 2))


@pytest.fixture(scope="module")
def code_port():
    with serving("--reward", "code", "--options", '{"code": {"time_s": 2, "servers": 1}}') as (number, _):
        yield number


def test_openrlhf_s_labels_are_tests_too(code_port):
    body = {"query": [f"p{RIGHT}", f"p{WRONG}", f"p{RIGHT}"], "prompts": ["p"] * 3}
    code, answer = ask(code_port, "POST", "/get_reward", {**body, "labels": [json.dumps(CALLED), CALLED, CALLED]})
    assert (code, answer.get("rewards")) == (200, [1.0, 0.0, 1.0]), answer
    for bad, message in (
        ({**CALLED, "inputs": 5}, "labels[1]: tests need the lists"),
        ({**STDIN, "time_s": 3}, "labels[1].time_s: 3 is more than this server allows"),
        ({**STDIN, "checker": "subprocess:call"}, "labels[1].checker: 'subprocess:call' is not served"),
    ):
        code, answer = ask(code_port, "POST", "/get_reward", {**body, "labels": [CALLED, bad, CALLED]})
        assert (code, message in answer["detail"]) == (422, True), answer


def test_slime_s_label_is_tests_too(code_port):
    body = {"prompt": "p", "response": RIGHT, "label": json.dumps(CALLED)}
    assert ask(code_port, "POST", "/slime", body) == (200, {"code": 1.0, "unscored": 0.0, "reward": 1.0})
    code, answer = ask(code_port, "POST", "/slime", {**body, "label": {**STDIN, "memory_mib": 4096}})
    assert (code, "label.memory_mib: 4096 is more" in answer["detail"]) == (422, True), answer


def test_checkers_of_a_request(code_port):
    program = {"program": "def check(given, expected, got):\n    return got == 2"}
    called = {"style": "function", "entry_point": "f", "args": [[1]], "outs": [[2]]}
    rows = [{"completion": RIGHT, "tests": {**called, "checker": checker}} for checker in ("item", program, "exact")]
    answer = ask(code_port, "POST", "/v1/verify", {"rows": rows})[1]
    assert [verdict["reward"] for verdict in answer["verdicts"]] == [1.0, 1.0, 0.0], answer


def test_openrlhf_route(port):
    prompt = "<user>2+2?"
    body = {"query": [f"{prompt}{GOOD}</s>", f"{prompt}{BAD}"], "prompts": [prompt] * 2, "labels": ["4", "4"]}
    code, answer = ask(port, "POST", "/get_reward", body)
    assert code == 200
    assert answer["rewards"] == [pytest.approx(1.1), pytest.approx(0.1)]
    assert answer["scores"] == [1.0, pytest.approx(0.1 / 1.1)]
    assert answer["extra_logs"] == {"math": 0.5, "format": 1.0, "unscored": 0.0}
    assert ask(port, "POST", "/get_reward", {**body, "labels": ["4"]})[0] == 422
    for bad in (float("nan"), True, {}, "nan", ""):
        code, answer = ask(port, "POST", "/get_reward", {**body, "labels": ["4", bad]})
        assert (code, "labels[1]" in answer["detail"]) == (422, True), answer
    assert "query[0]" in ask(port, "POST", "/get_reward", {**body, "query": [4, "4"]})[1]["detail"]
    code, answer = ask(port, "POST", "/get_reward", {**body, "labels": []})
    assert code == 422
    assert "2 of 2 rows could not be scored" in answer["detail"]


def test_slime_route(port):
    """slime's remote_rm sends one sample and retries on every reply that is not a success."""
    body = {"prompt": [{"role": "user", "content": "2+2?"}], "response": f"{GOOD}<|im_end|>", "label": "4"}
    assert ask(port, "POST", "/slime", body) == (
        200,
        {"math": 1.0, "format": 1.0, "unscored": 0.0, "reward": pytest.approx(1.1)},
    )
    assert ask(port, "POST", "/slime", {**body, "prompt": "2+2?", "response": BAD})[1]["reward"] == pytest.approx(0.1)
    naming = [{"role": "user", "content": "2+2? Think within <think></think>"}]
    assert ask(port, "POST", "/slime", {**body, "prompt": naming})[1]["reward"] == pytest.approx(1.1)
    for bad in ({"label": None}, {"label": ""}, {"label": True}, {"response": 5}, {"prompt": [5]}):
        assert ask(port, "POST", "/slime", {**body, **bad})[0] == 422, bad
    assert ask(port, "POST", "/slime", {"response": GOOD})[0] == 422
    with serving("--reward", "math", "--unscored", "-1") as (other, _):
        for label in (None, ""):
            code, answer = ask(other, "POST", "/slime", {**body, "label": label})
            assert (code, answer) == (200, {"math": 0.0, "unscored": 1.0, "reward": -1.0})


def test_metrics(port):
    ask(port, "POST", "/v1/verify", {"rows": rows(GOOD)})
    code, text = ask(port, "GET", "/metrics")
    assert code == 200
    assert 'verifiers_verdicts_total{reason="equal",verifier="math"}' in text
    assert "verifiers_queue_rows 0" in text
    assert ask(port, "GET", "/nowhere")[0] == 404


def test_token(tmp_path):
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    with serving("--token-file", str(secret), "--host", "0.0.0.0") as (port, _):
        assert ask(port, "GET", "/healthz")[0] == 200
        for header in ({}, {"Authorization": "Bearer wrong"}):
            assert ask(port, "GET", "/metrics", headers=header)[0] == 401
            assert ask(port, "POST", "/v1/verify", {"rows": []}, header)[0] == 401
        header = {"Authorization": "Bearer s3cret"}
        assert ask(port, "POST", "/v1/verify", {"rows": rows("4")}, header)[0] == 200


def test_hangs_a_full_queue_deadlines_and_a_graceful_end():
    flags = (
        "--reward",
        "pool_trouble_for_tests:trouble",
        "--timeout",
        "1",
        "--max-queue-rows",
        "40",
        "--request-timeout",
        "3",
    )
    with serving(*flags) as (port, process):
        warm = ask(port, "POST", "/v1/verify", {"rows": rows("1", "hang", "crash", "x")})[1]["verdicts"]
        assert [row["reward"] for row in warm] == [1.0, None, None, 0.0]
        assert "no verdict within 1 s" in warm[1]["error"]
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            late = threads.submit(ask, port, "POST", "/v1/verify", {"rows": rows(*["hang"] * 5)})
            time.sleep(0.3)
            waiting = threads.submit(ask, port, "POST", "/v1/verify", {"rows": rows(*["1"] * 39)})
            time.sleep(0.3)
            assert ask(port, "POST", "/v1/verify", {"rows": rows("1", "1")})[0] == 429
            code, answer = late.result()
            assert code == 504, answer
            assert waiting.result()[0] in (200, 504)
            last = threads.submit(ask, port, "POST", "/v1/verify", {"rows": rows("hang", "1")})
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            assert last.result()[0] in (200, 504)  # answered, not cut off
        assert process.wait(20) in (0, -signal.SIGTERM)


def test_a_lane_outlives_any_error(monkeypatch):
    """Otherwise each later request would wait for its deadline."""
    from verifiers import Completion, Problem, Reward
    from verifiers.server import lanes

    def scored():
        done = threading.Event()
        job = lanes.Job(Reward("format"), [(Problem(), Completion(GOOD))], done.set)
        alone.submit(job)
        assert done.wait(60)
        return job.scores[0]

    alone = lanes.Lanes(count=1, max_rows=10, timeout_s=30, memory_mib=None)
    try:
        with monkeypatch.context() as broken:
            broken.setattr(lanes, "Pool", lambda *_, **__: [][0])
            assert scored().error.startswith("IndexError")
        assert scored().reward == 1.0
    finally:
        alone.close()


def test_mistakes_of_use(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: pytest.fail("it serves"))
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 1024))
    (tmp_path / "empty").write_text("\n")
    for flags, message in (
        (["--host", "0.0.0.0"], "give --token-file"),
        (["--token-file", str(tmp_path / "empty")], "is empty"),
        (["--reward", "mth"], "did you mean 'math'"),
        (["--allow", "mth"], "did you mean 'math'"),
        (["--options", '{"format": {}, "exact": {}}'], "'exact', which is not served"),
        (["--host", "no.such.host.invalid", "--token-file", __file__], "can't listen on"),
        (["--max-connections", "1024"], "need more than 1024 open files"),
    ):
        assert main(["serve", *flags]) == 2, flags
        assert message in capsys.readouterr().err
    for flags in (
        ["--workers", "0"],
        ["--timeout", "nan"],
        ["--memory", "-1"],
        ["--unscored", "inf"],
        ["--port", "99999"],
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["serve", *flags])
    capsys.readouterr()
    from verifiers.server.loopback import is_loopback

    assert is_loopback("localhost")
    assert is_loopback("::1")
    assert not is_loopback("example.org")


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
