"""The server: routes, requests, token, back-pressure, shutdown."""

import concurrent.futures
import json
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time

import pytest
from serving_for_tests import BAD, FLAGS, GOOD, STDIN, TESTS, ask, rows, serving

from verifiers import resolve
from verifiers.__main__ import main
from verifiers.commands.serve import _example

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def port():
    with serving(*FLAGS) as (number, _):
        yield number


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
