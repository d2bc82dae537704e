"""The server: routes, limits, token, back-pressure, shutdown."""

import concurrent.futures
import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verifiers import resolve
from verifiers.__main__ import main
from verifiers.commands.serve import is_loopback

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
TESTS = Path(__file__).resolve().parent
GOOD, BAD = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"


@contextlib.contextmanager
def serving(*flags):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = f"import sys; sys.path[:0] = {[str(TESTS.parent), str(TESTS)]!r}; from verifiers.__main__ import main; "
    process = subprocess.Popen(
        [sys.executable, "-c", f"{script} sys.exit(main())", "serve", "--port", str(port), "--workers", "1", *flags],
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            for _ in range(400):
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
    flags = ("--reward", "math + 0.1*format", "--max-body-mib", "0.1", "--max-rows", "50")
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


def test_verify_with_another_reward(port):
    body = {"reward": "tags", "config": {"tags": {"use": "format", "policy": "lenient"}}, "rows": rows(f"so {GOOD}")}
    assert ask(port, "POST", "/v1/verify", body)[1]["verdicts"][0]["reward"] == 1.0
    body = {"verifier": "math", "rows": [{"id": "x", "completion": "4"}]}
    verdict = ask(port, "POST", "/v1/verify", body)[1]["verdicts"][0]
    assert verdict["reward"] is None
    assert "has no answer" in verdict["error"]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"reward": "os:system", "rows": []}, 422, "'os:system' is not served"),
        ({"reward": "a", "config": {"a": {"use": "os:system"}}, "rows": []}, 422, "'os:system' is not served"),
        ({"reward": "mth", "rows": []}, 422, "not served"),
        ({"reward": "math *", "rows": []}, 422, "can't read the reward formula"),
        ({"rows": [{"completion": 4}]}, 422, "string"),
        ({"rows": [{"text": "4"}]}, 422, "required"),
        (b"{", 422, "JSON"),
        ({"rows": rows(*["4"] * 51)}, 413, "at most 50"),
        ({"rows": rows("x" * 200_000)}, 413, "larger than 0.1 MiB"),
    ],
)
def test_bad_requests(port, body, code, message):
    found, answer = ask(port, "POST", "/v1/verify", body)
    assert (found, message in json.dumps(answer)) == (code, True), answer


def test_openrlhf_route(port):
    prompt = "<user>2+2?"
    body = {"query": [f"{prompt}{GOOD}</s>", f"{prompt}{BAD}"], "prompts": [prompt] * 2, "labels": ["4", "4"]}
    code, answer = ask(port, "POST", "/get_reward", body)
    assert code == 200
    assert answer["rewards"] == [pytest.approx(1.1), pytest.approx(0.1)]
    assert answer["scores"] == [1.0, pytest.approx(0.1 / 1.1)]
    assert answer["extra_logs"] == {"math": 0.5, "format": 1.0}
    assert ask(port, "POST", "/get_reward", {**body, "labels": ["4"]})[0] == 422
    code, answer = ask(port, "POST", "/get_reward", {**body, "labels": []})
    assert code == 500
    assert "2 of 2 rows could not be scored" in answer["detail"]


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


def test_mistakes_of_use(tmp_path, capsys):
    (tmp_path / "empty").write_text("\n")
    for flags, message in (
        (["--host", "0.0.0.0"], "give --token-file"),
        (["--token-file", str(tmp_path / "empty")], "is empty"),
        (["--reward", "mth"], "did you mean 'math'"),
    ):
        assert main(["serve", *flags]) == 2
        assert message in capsys.readouterr().err
    assert is_loopback("localhost")
    assert is_loopback("::1")
    assert not is_loopback("example.org")
