"""What ends a run with an error and what does not: refusals, deaths, caches that are not emptied."""

import contextlib
import errno
import os
import socket
import threading
import time

import pytest
from fleet_cases import PROMPTS, SAMPLING, SEEDS, check, once, weights

from r1lite.rollout import EngineError
from r1lite.rollout.client import Client, Unreachable

pytest_plugins = ["fleet_fixtures"]


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_refusal_by_a_living_server_stops_the_run(status, fakes, engine_of):
    engine = engine_of(fakes(plan=once(*[f"say {status}"] * 9)), fakes(plan=once(*[f"say {status}"] * 9)))
    engine.load_weights(weights(1), version=1)
    with pytest.raises(EngineError, match=rf"refused a prompt of 2 tokens, status {status}"):
        engine.generate(PROMPTS[:1], SEEDS[:1], SAMPLING)


def test_a_server_that_only_fails_ends_the_run_in_time(fakes, engine_of):
    engine = engine_of(fakes(plan=lambda path: "500" if path == "v1/completions" else None), timeout_s=0.5)
    engine.load_weights(weights(1), version=1)
    started = time.monotonic()
    with pytest.raises(EngineError, match=r"a prompt of 2 tokens was given up after \d+ tries: .* status 500"):
        engine.generate(PROMPTS[:2], SEEDS[:2], SAMPLING)
    assert time.monotonic() - started < 4


def test_a_prompt_that_kills_servers_ends_the_run(fakes, engine_of):
    servers = [fakes(plan=lambda path: "die" if path == "v1/completions" else None, down_s=0.05) for _ in range(2)]
    engine = engine_of(*servers, timeout_s=0.5)
    engine.load_weights(weights(1), version=1)
    with pytest.raises(EngineError, match=r"given up after|no vLLM server has answered"):
        engine.generate(PROMPTS[:1], SEEDS[:1], SAMPLING)


@pytest.mark.parametrize("fault", ["die", "die in the body", "die with 500"])
def test_a_death_while_caches_are_emptied(fault, fakes, engine_of, sums):
    servers = [fakes(), fakes()]
    engine = engine_of(*servers)
    engine.load_weights(weights(1), version=1)
    servers[0].plan = once(fault, path="reset_prefix_cache")
    engine.forget()
    check(engine, sums, 1)
    assert engine.deaths == 1


@pytest.mark.parametrize("fault", ["reset", "no body", "503"])
def test_a_cache_that_was_not_emptied_is_asked_for_again_and_then_an_error(fault, fakes, engine_of):
    server = fakes()
    engine = engine_of(server, timeout_s=0.5)
    engine.load_weights(weights(1), version=1)
    server.calls.clear()
    server.plan = once(fault, path="reset_prefix_cache")
    engine.forget()
    assert server.calls.count("reset_prefix_cache") == 2
    server.plan = lambda path: fault if path == "reset_prefix_cache" else None
    with pytest.raises(EngineError, match="did not empty its prefix cache"):
        engine.forget()


def test_a_server_that_refuses_to_empty_its_cache_is_an_error_at_once(fakes, engine_of):
    server = fakes()
    engine = engine_of(server)
    engine.load_weights(weights(1), version=1)
    server.plan = once("say 500", path="reset_prefix_cache")
    with pytest.raises(EngineError, match="did not empty its prefix cache"):
        engine.forget()


def test_at_a_server_that_dies_the_others_do_it(fakes, engine_of, sums):
    first, second = fakes(plan=once("die", skip=1), down_s=60), fakes()
    engine = engine_of(first, second)
    engine.load_weights(weights(1), version=1)
    with engine.at(first.url):
        check(engine, sums, 1)
    assert engine.urls == [second.url]
    assert engine.deaths == 1


def test_one_that_could_not_say_at_first_what_it_is_now_is_still_known_for_another(fakes, engine_of, monkeypatch):
    """It was asked twice: at first it said its other version, and no more."""
    first, second = fakes(down_s=60), fakes()
    engine = engine_of(first, second)
    engine.load_weights(weights(1), version=1)
    first.stop()
    engine.load_weights(weights(2), version=2)
    fakes(first.port, version="0.26.0", plan=once("reset", path="is_paused"))

    def go_on():
        for _ in range(50):
            engine.generate(PROMPTS, SEEDS, SAMPLING)
            time.sleep(0.05)

    with pytest.raises(EngineError, match=r"came back as another server: vLLM 0\.26\.0 \(before: 0\.32\.0\)"):
        go_on()


def test_an_old_server_that_does_not_say_when_it_began_is_refused(fakes, engine_of):
    engine = engine_of(fakes(version="0.26.0"))
    engine.servers[0].client.get = lambda path, timeout_s: "other 1\n"
    with pytest.raises(EngineError, match="does not say when it was started"):
        engine.load_weights(weights(1), version=1)


def no_file(number):
    """Makes every connection fail for want of an open file."""

    def connect(connection):
        raise OSError(number, os.strerror(number))

    return "http.client.HTTPConnection.connect", connect


def no_thread(which):
    """Makes every start of such a thread fail."""
    start = threading.Thread.start

    def limited(thread):
        if isinstance(thread, threading.Timer) if which == "alarm" else thread.name.startswith(which):
            raise RuntimeError("can't start new thread")
        start(thread)

    return "threading.Thread.start", limited


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (no_file(errno.EMFILE), r"open no further connection .*: raise its limit .*ulimit -n"),
        (no_file(errno.ENFILE), r"open no further connection .*: raise its limit .*ulimit -n"),
        (no_thread("r1lite-rollout"), r"start no further thread \(can't start new thread\): .*ulimit -u"),
        (no_thread("alarm"), r"start no further thread \(can't start new thread\): .*ulimit -u"),
    ],
)
def test_a_limit_of_this_process_is_named_and_no_fault_of_the_servers(
    fault, named, fakes, engine_of, sums, monkeypatch
):
    engine = engine_of(fakes(), fakes())
    engine.load_weights(weights(1), version=1)
    with monkeypatch.context() as patched:
        patched.setattr(*fault)
        with pytest.raises(EngineError, match=named):
            engine.generate(PROMPTS, SEEDS, SAMPLING)
    assert (engine.deaths, len(engine.urls)) == (0, 2)
    check(engine, sums, 1)


@pytest.mark.parametrize(("soft", "hard", "wanted"), [(1024, 4096, [2176]), (1024, 1500, [1500]), (8192, 8192, [])])
def test_the_limit_of_open_files_allows_all_connections(soft, hard, wanted, fakes, engine_of, monkeypatch):
    given = []
    monkeypatch.setattr("resource.getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr("resource.setrlimit", lambda kind, limits: given.append(limits))
    engine_of(fakes(), fakes())
    assert given == [(limit, hard) for limit in wanted]


def longer(choice):
    choice["token_ids"] *= 200
    choice["logprobs"]["token_logprobs"] *= 200


def shorter(choice):
    choice["token_ids"].pop()
    choice["logprobs"]["token_logprobs"].pop()


def emptied(choice):
    choice["token_ids"], choice["logprobs"]["token_logprobs"] = [], []


LIES = {
    "too long": (longer, r"answered with \d+ tokens instead of at most"),
    "ended by nothing": (lambda choice: choice.update(finish_reason="stop"), "nothing in its .* tokens ends it"),
    "cut off early": (shorter, "cut a completion off|nothing in its"),
    "empty": (emptied, "cut a completion off after 0 of|nothing in its 0 tokens"),
    "the same index": (lambda choice: choice.update(index=0), "or incomplete ones"),
    "a truth as an id": (lambda choice: choice["token_ids"].__setitem__(0, True), "True is no token id"),
    "a text as a number": (
        lambda choice: choice["logprobs"]["token_logprobs"].__setitem__(0, "-1.5"),
        "'-1.5' is no log-probability",
    ),
    "no number": (
        lambda choice: choice["logprobs"]["token_logprobs"].__setitem__(0, float("nan")),
        "nan as a token's log-probability",
    ),
    "above 0": (lambda choice: choice["logprobs"]["token_logprobs"].__setitem__(0, 5.0), "5.0 as a token's"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_completion_that_the_request_cannot_have_is_an_error_that_names_the_server(lie, fakes, engine_of):
    change, said = LIES[lie]
    server = fakes()
    engine = engine_of(server)
    engine.load_weights(weights(1), version=1)
    client = engine.servers[0].client
    post = client.post

    def lied(path, body=None, **limits):
        answer = post(path, body, **limits)
        if path == "v1/completions":
            for choice in answer["choices"]:
                change(choice)
        return answer

    client.post = lied
    with pytest.raises(EngineError, match=said) as error:
        engine.generate(PROMPTS[:1], SEEDS[:1], SAMPLING)
    assert server.url in str(error.value)


@pytest.mark.parametrize("count", ["NaN", "+Inf", "many"])
def test_a_count_that_is_no_number_is_no_count(count, fakes, engine_of):
    server = engine_of(fakes()).servers[0]
    server._doctor.get = lambda path, timeout_s: f'{server.counters[0]}{{engine="0"}} {count}\n'
    assert server.tokens(1.0) is None


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"-5\r\nhello\r\n0\r\n\r\n", "negative"), (b"%x\r\n" % 3_000_000 + b"[" * 3_000_000, "longer than 2,000 bytes")],
)
def test_an_answer_in_impossible_pieces_or_of_any_length_is_no_answer(body, said):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Unreachable, match=said):
            Client(f"http://127.0.0.1:{listening.getsockname()[1]}").post("v1", {}, timeout_s=10, largest=2000)
        thread.join()
