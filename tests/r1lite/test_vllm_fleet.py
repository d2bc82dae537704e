"""vLLM servers that are down, slow, wrong, dead or back again, as stand-ins that answer without a model."""

import contextlib
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from conftest import make_tiny_tokenizer

from r1lite.errors import UserError
from r1lite.rollout import EngineError, Sampling
from r1lite.rollout.client import Client, Unreachable
from r1lite.rollout.vllm_server import vllm_fleet


class Fake:
    """A server that speaks vLLM's routes; its completions are its weights' label and the seed."""

    def __init__(self, port=0, **quirks):
        self.quirks = {"version": "0.32.0", "context": 160, **quirks}
        self.label, self.calls, self.served = "default", [], 0
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                status, value = fake.route(self.path.strip("/").partition("?")[0], body)
                data = (value if isinstance(value, str) else json.dumps(value)).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):  # it was given up
                    self.wfile.write(data)

            do_GET = do_POST = answer

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def route(self, path, body):
        self.calls.append(path)
        if isinstance(status := self.quirks.get(path), int):
            return status, "no"
        if "says " + path in self.quirks:
            return 200, self.quirks["says " + path]
        if path == "v1/models":
            return 200, {"data": [{"id": "policy", "max_model_len": self.quirks["context"]}]}
        if path == "update_weight_version":
            self.label = body["new_version"]
        if path == "collective_rpc" and not list(Path(body["kwargs"]["weights_path"]).glob("*.safetensors")):
            return 500, "no weights there"
        if path == "v1/completions":
            self.served += 1
            time.sleep(self.quirks.get("delay", 0.0))
            if self.served > self.quirks.get("dies_after", 1e9):
                self.quirks["health"] = 503  # what vLLM says from then on
                return 500, "EngineDeadError"
            version = int(self.label.rpartition("-")[2])
            ids = [[(body["seed"] + i) % 40 + 2, version + 2] for i in range(body["n"])]
            choices = [
                {"index": i, "token_ids": row, "logprobs": {"token_logprobs": [-1.0, -2.0]}, "finish_reason": "length"}
                for i, row in enumerate(ids)
            ]
            return 200, {"choices": choices[:: self.quirks.get("order", 1)]}
        known = {
            "health": "",
            "version": {"version": self.quirks["version"]},
            "weight_info": {"weight_version": self.label},
        }
        return 200, known.get(path, {})

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def fakes():
    made = []

    def fake(*arguments, **quirks):
        made.append(Fake(*arguments, **quirks))
        return made[-1]

    yield fake
    for server in made:
        server.stop()


@pytest.fixture
def engine_of(tmp_path):
    made = []

    def engine(*servers, **settings):
        settings = {"timeout_s": 2.0, "start_wait_s": 0.0, "context": 100, "vocabulary": 48, **settings}
        urls = [server if isinstance(server, str) else server.url for server in servers]
        found = vllm_fleet(urls, make_tiny_tokenizer(), [1], dtype=torch.float32, weights_dir=str(tmp_path), **settings)
        made.append(found)
        return found

    yield engine
    for found in made:
        found.close()
    assert list(tmp_path.iterdir()) == []


GARBAGE = ("<html>", "[]", "{}", "null", "NaN", '{"data": [1]}', "[" * 100_000)
WEIGHTS = {"a": torch.ones(3)}
PROMPTS, SEEDS = [[5, 6]] * 8, [[10 * p, 10 * p + 1] for p in range(8)]


def sample(engine):
    return engine.generate(PROMPTS, SEEDS, Sampling(1.0, 2))


def expected(version):
    return [[((seed % 40) + 2, version + 2) for seed in row] for row in SEEDS]


def ids(groups):
    return [[completion.token_ids for completion in group] for group in groups]


def test_groups_in_order_over_two_servers(fakes, engine_of):
    servers = [fakes(delay=0.02), fakes(delay=0.02, order=-1)]  # choices may come in any order
    engine = engine_of(*servers)
    engine.load_weights(WEIGHTS.items(), version=3)
    groups = sample(engine)
    assert ids(groups) == expected(3)
    assert {c.policy_version for group in groups for c in group} == {3}
    assert [server.served for server in servers] == [4, 4]  # a group is one request, to the one with less to do


def test_a_server_that_dies_is_left_out(fakes, engine_of):
    servers = [fakes(dies_after=1), fakes()]
    engine = engine_of(*servers)
    engine.load_weights(WEIGHTS.items(), version=1)
    assert ids(sample(engine)) == expected(1)
    assert engine.deaths >= 1


def test_a_server_that_comes_back_gets_the_weights_before_it_serves(fakes, engine_of, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.servers._LOOK_EVERY_S", 0.0)
    first, second = fakes(), fakes()
    engine = engine_of(first, second)
    engine.load_weights(WEIGHTS.items(), version=1)
    sample(engine)
    port = first.server.server_port
    first.stop()
    engine.load_weights(WEIGHTS.items(), version=2)
    assert ids(sample(engine)) == expected(2)
    again = fakes(port)  # with the weights it was started with
    for _ in range(5):
        assert ids(sample(engine)) == expected(2)
    assert again.served
    assert again.calls.index("collective_rpc") < again.calls.index("v1/completions")


def test_a_restart_between_two_requests_is_noticed(fakes, engine_of):
    server = fakes()
    engine = engine_of(server)
    engine.load_weights(WEIGHTS.items(), version=1)
    server.label = "default"
    assert ids(sample(engine)) == expected(1)


def test_an_older_vllm_is_known_by_when_it_began(fakes, engine_of):
    server = fakes(version="0.26.0")
    metrics = ["process_start_time_seconds 5.0"]
    route = server.route
    server.route = lambda path, body: (200, metrics[0]) if path == "metrics" else route(path, body)
    engine = engine_of(server)
    server.label = "x-1"
    engine.load_weights(WEIGHTS.items(), version=1)
    sample(engine)
    assert server.calls.count("collective_rpc") == 1
    assert "weight_info" not in server.calls
    metrics[0] = "process_start_time_seconds 9.0"
    sample(engine)
    assert server.calls.count("collective_rpc") == 2


def test_another_run_that_takes_a_server_over_is_noticed(fakes, engine_of):
    server = fakes()
    mine, other = engine_of(server), engine_of(server)
    mine.load_weights(WEIGHTS.items(), version=1)
    other.load_weights(WEIGHTS.items(), version=1)
    with pytest.raises(EngineError, match="was given the weights of another run"):
        sample(mine)


def test_no_server_left(fakes, engine_of):
    server = fakes(dies_after=2)
    engine = engine_of(server, timeout_s=0.5)
    server.quirks["health"] = 503
    engine.load_weights(WEIGHTS.items(), version=1)
    with pytest.raises(EngineError, match=r"no vLLM server has answered for 0.5 s .* continue with --resume"):
        sample(engine)


def test_a_slow_server_is_given_up(fakes, engine_of):
    engine = engine_of(fakes(delay=1.5), fakes(), timeout_s=0.5)
    engine.load_weights(WEIGHTS.items(), version=1)
    assert ids(sample(engine)) == expected(1)


@pytest.mark.parametrize(
    ("quirks", "message"),
    [
        ({"version": "0.28.0"}, "not a version this was tested with"),
        ({"is_paused": 404}, "takes no weights; start it with `r1lite serve-engine`"),
        ({"context": 50}, "start it with --context 100"),
        ({"v1/models": 404}, "this is not a vLLM server"),
        ({"health": 503}, "no server answers there"),
        (
            {"says server_info": {"vllm_config": {"model_config": {"dtype": "torch.float16"}}}},
            "computes in float16, and",
        ),
        ({"version": 302}, "this is not a vLLM server: status 302"),
        *(({"says version": said}, "this is not a vLLM server") for said in GARBAGE),
        *(({"says v1/models": said}, "this is not a vLLM server") for said in GARBAGE),
        ({"says v1/models": {"data": [{"id": "policy", "max_model_len": "many"}]}}, "this is not a vLLM server"),
        ({"says v1/models": {"data": [{"id": "policy"}]}}, "not a vLLM server: its answer lacks 'max_model_len'"),
    ],
)
def test_servers_that_cannot_be_used_are_refused(quirks, message, fakes, engine_of):
    with pytest.raises(UserError, match=message):
        engine_of(fakes(**quirks))


def test_servers_of_different_versions_are_refused(fakes, engine_of):
    servers = [fakes(), fakes(version="0.26.0")]
    with pytest.raises(UserError, match=r"different versions of vLLM \(0\.26\.0 at .*, 0\.32\.0 at "):
        engine_of(*servers)
    assert engine_of(*servers, untested=True).urls == [server.url for server in servers]


def choice(**changes):
    whole = {"index": 0, "token_ids": [3, 4], "logprobs": {"token_logprobs": [-1.0, -2.0]}, "finish_reason": "length"}
    return {**whole, **changes}


@pytest.mark.parametrize(
    ("path", "said", "message"),
    [
        *(("v1/completions", said, "without token ids and log-probabilities") for said in GARBAGE),
        ("v1/completions", {"choices": [choice(token_ids="ab")] * 2}, "without token ids and log-prob"),
        ("v1/completions", {"choices": [choice(token_ids=[1.5, 2])] * 2}, "without token ids and log-prob"),
        ("v1/completions", {"choices": [choice(logprobs={"token_logprobs": [None, 1]})] * 2}, "without token ids"),
        (
            "v1/completions",
            {"choices": [choice(token_ids=[3, 48]), choice(index=1)]},
            "token 48, which the model does not have",
        ),
        (
            "v1/completions",
            {"choices": [choice(token_ids=[3, -1]), choice(index=1)]},
            "token -1, which the model does not have",
        ),
        ("v1/completions", {"choices": [choice()]}, "with 1 completions of 2"),
        *(("weight_info", said, "does not say which weights it holds") for said in GARBAGE),
        ("reset_prefix_cache", {"success": False}, "did not empty its prefix cache"),
    ],
)
def test_garbage_with_a_good_status_is_one_message(path, said, message, fakes, engine_of):
    server = fakes()
    engine = engine_of(server)
    server.quirks[f"says {path}"] = said

    def step():
        for version in (1, 2):
            engine.load_weights(WEIGHTS.items(), version=version)
            sample(engine)

    with pytest.raises(EngineError, match=message):
        step()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"])
def test_a_server_that_answers_in_drops_is_given_up(answer):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip():
            with contextlib.suppress(OSError), listening.accept()[0] as taken:
                taken.sendall(answer)
                while True:
                    taken.sendall(b" ")
                    time.sleep(0.05)

        threading.Thread(target=drip, daemon=True).start()
        started = time.monotonic()
        with pytest.raises(Unreachable, match=r"no answer within 0\.4 s"):
            Client(f"http://127.0.0.1:{listening.getsockname()[1]}").get("health", timeout_s=0.4)
        assert time.monotonic() - started < 5


def test_every_server_can_be_asked_alone(fakes, engine_of):
    servers = [fakes() for _ in range(3)]
    engine = engine_of(*servers)
    engine.load_weights(WEIGHTS.items(), version=1)
    for asked in servers:
        before = [server.served for server in servers]
        with engine.at(asked.url):
            assert ids(sample(engine)) == expected(1)
        after = [server.served for server in servers]
        assert [b - a for a, b in zip(before, after, strict=True)] == [8 * (server is asked) for server in servers]


def test_a_server_that_comes_back_as_another_stops_the_run(fakes, engine_of, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.servers._LOOK_EVERY_S", 0.0)
    first, second = fakes(), fakes()
    engine = engine_of(first, second)
    engine.load_weights(WEIGHTS.items(), version=1)
    first.stop()
    engine.load_weights(WEIGHTS.items(), version=2)
    fakes(first.server.server_port, version="0.26.0")

    def go_on():  # it is looked for beside the groups
        for _ in range(200):
            sample(engine)

    with pytest.raises(EngineError, match=r"came back as another server: vLLM 0\.26\.0 \(before: 0\.32\.0\)"):
        go_on()


@pytest.mark.parametrize("url", ["127.0.0.1:8100", "ftp://a", "http://"])
def test_addresses_that_are_none(url, engine_of):
    with pytest.raises(UserError, match="is not an address like"):
        engine_of(url)


def test_nobody_there(engine_of):
    with pytest.raises(UserError, match="no server answers there"):
        engine_of("http://127.0.0.1:9")


def test_a_server_of_another_model_says_so(fakes, engine_of):
    engine = engine_of(fakes(collective_rpc=500))
    with pytest.raises(EngineError, match=r"did not load the weights .* Is its model .* another one"):
        engine.load_weights(WEIGHTS.items(), version=1)


def test_nothing_is_sampled_before_there_are_weights(fakes, engine_of):
    with pytest.raises(EngineError, match="given no weights yet"):
        sample(engine_of(fakes()))


@pytest.mark.parametrize("delay", [0.0, 0.2])
def test_closing_ends_a_stream(delay, fakes, engine_of):
    engine = engine_of(fakes(delay=delay))
    engine.load_weights(WEIGHTS.items(), version=1)
    stream = engine.stream(PROMPTS, SEEDS, Sampling(1.0, 2))
    next(stream)
    time.sleep(0.3 - delay)
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        list(stream)
