"""A server that stops or stalls: its groups go to another within the deadline, and the completions stay the same."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from fleet_cases import PROMPTS, SAMPLING, SEEDS, check, once, weights
from servers_for_tests import free_port

from r1lite.rollout import EngineError
from r1lite.rollout.heartbeat import Heartbeat, Waits

pytest_plugins = ["fleet_fixtures"]

STALL_S = 1.5  # a busy machine makes pauses of its own


@pytest.fixture
def said():
    return []


@pytest.fixture
def watched(engine_of, said):
    def engine(*servers, **settings):
        return engine_of(*servers, **{"stall_s": STALL_S, "say": said.append, "timeout_s": 60.0, **settings})

    return engine


def until(true, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_patience_grows_with_the_usual_wait_for_a_token():
    waits = Waits()
    assert waits.patience_s(30) == 60  # nothing is known yet
    waits.add(1.0)
    assert waits.patience_s(30) == 30
    for _ in range(10):
        waits.add(20.0)
    assert waits.patience_s(30) == 100


def test_a_process_that_cannot_ask_does_not_count_a_server_as_stalled():
    asked, stalled = [], []

    def tokens(timeout_s):
        asked.append(timeout_s)
        raise EngineError("this process can start no further thread")

    server = SimpleNamespace(alive=True, load=1, tokens=tokens)
    beat = Heartbeat(server, Waits(), 0.05, lambda *given: stalled.append(given))
    until(lambda: len(asked) > 20)
    beat.close()
    assert stalled == []


def test_a_stalled_engine_gives_its_groups_to_another_and_comes_back(fakes, watched, sums, said):
    stuck, other = fakes(delay=0.1), fakes(delay=0.1)
    engine = watched(stuck, other)
    engine.load_weights(weights(1), version=1)
    check(engine, sums, 1)
    threading.Timer(0.05, stuck.running.clear).start()
    started = time.monotonic()
    check(engine, sums, 1, PROMPTS * 3, SEEDS * 3)
    assert time.monotonic() - started < 10 * STALL_S
    assert [server.alive for server in engine.servers] == [False, True]
    assert engine.deaths == 1
    assert said[0].startswith(f"{stuck.url} has sampled no token for ")
    assert said[0].endswith(" s and is set aside; its groups go to 1 other")
    engine.load_weights(weights(2), version=2)
    check(engine, sums, 2)
    stuck.running.set()
    until(lambda: check(engine, sums, 2, PROMPTS[:1], SEEDS[:1]) or engine.servers[0].alive)
    assert f"{stuck.url} answers again, has the weights of version 2 and is in use again" in said
    with engine.at(stuck.url):
        check(engine, sums, 2)
    assert (engine.deaths, stuck.label) == (1, engine._weights.label)


def test_a_stalled_server_that_still_has_its_weights_gets_them_anew(fakes, watched, sums):
    """It was left paused: only new weights make it sample again."""
    left, other = fakes(), fakes()
    engine = watched(left, other)
    engine.load_weights(weights(1), version=1)
    left.paused = True
    check(engine, sums, 1)
    assert engine.deaths == 1
    until(lambda: check(engine, sums, 1, PROMPTS[:1], SEEDS[:1]) or engine.servers[0].alive)
    with engine.at(left.url):
        check(engine, sums, 1)
    assert (left.paused, left.calls.count("collective_rpc")) == (False, 2)


def test_the_only_server_that_stalls_ends_the_run_in_time(fakes, watched, sums):
    server = fakes()
    engine = watched(server)
    engine.load_weights(weights(1), version=1)
    server.running.clear()
    started = time.monotonic()
    with pytest.raises(EngineError, match=r"every vLLM server has stalled, and none has continued for 1\.5 s.*stall-s"):
        engine.generate(PROMPTS, SEEDS, SAMPLING)
    assert time.monotonic() - started < 10 * STALL_S
    engine.close()
    server.running.set()  # with --resume
    again = watched(server)
    again.load_weights(weights(1), version=1)
    check(again, sums, 1)


def test_a_stall_while_weights_are_given(fakes, watched, sums, monkeypatch):
    """Its front answers nothing any more: it is as good as stopped."""
    server, other = fakes(), fakes()
    engine = watched(server, other)
    engine.load_weights(weights(1), version=1)
    server.plan = lambda path: "hang" if server.calls.count("pause") > 1 else None
    started = time.monotonic()
    engine.load_weights(weights(2), version=2)
    assert time.monotonic() - started < 10 * STALL_S
    check(engine, sums, 2)
    assert engine.urls == [other.url]
    server.plan = lambda path: None
    until(lambda: check(engine, sums, 2, PROMPTS[:1], SEEDS[:1]) or engine.servers[0].alive)
    with engine.at(server.url):
        check(engine, sums, 2)


@pytest.mark.parametrize("counts", [True, False])
def test_a_slow_server_that_makes_tokens_is_left_alone(counts, fakes, watched, sums, said):
    """One completion takes longer than the deadline; and so does waiting for one's turn."""
    server = fakes(delay=2.5 * STALL_S, counts=counts)
    engine = watched(server)
    engine.load_weights(weights(1), version=1)
    check(engine, sums, 1, PROMPTS[:2], SEEDS[:2])
    assert (engine.deaths, server.aborted) == (0, 0)
    assert [line for line in said if "count no tokens" not in line] == []
    assert len(said) == (not counts)


def test_one_that_counts_no_tokens_is_noticed_by_its_silence(fakes, watched, sums):
    stuck, other = fakes(counts=False), fakes(counts=False)
    engine = watched(stuck, other)
    engine.load_weights(weights(1), version=1)
    stuck.running.clear()
    check(engine, sums, 1)
    assert engine.urls == [other.url]


def test_a_request_that_is_lost_is_asked_again(fakes, watched, sums):
    server = fakes(plan=once("hang"))
    engine = watched(server)
    engine.load_weights(weights(1), version=1)
    started = time.monotonic()
    check(engine, sums, 1)
    assert time.monotonic() - started < 10 * STALL_S


def test_false_alarms_make_more_patient(fakes, watched, sums):
    server, other = fakes(), fakes()
    engine = watched(server, other)
    engine.load_weights(weights(1), version=1)
    before = engine._beats[server.url].patience_s
    server.running.clear()
    check(engine, sums, 1)
    server.running.set()
    until(lambda: check(engine, sums, 1, PROMPTS[:1], SEEDS[:1]) or engine.servers[0].alive)
    assert engine._beats[server.url].patience_s >= before
    assert engine._beats[server.url].patience_s == 2 * engine._beats[other.url].patience_s


def test_without_a_deadline_nothing_is_watched(fakes, watched, sums):
    server = fakes(delay=0.5)
    engine = watched(server, stall_s=0.0)
    engine.load_weights(weights(1), version=1)
    check(engine, sums, 1, PROMPTS[:2], SEEDS[:2])
    assert "metrics" not in server.calls


@pytest.fixture
def processes():
    script = Path(__file__).resolve().parents[1] / "fleet_for_tests.py"
    running = []

    def start():
        port = free_port()
        running.append(subprocess.Popen([sys.executable, "-S", str(script), str(port), "0.1"]))
        return running[-1], f"http://127.0.0.1:{port}"

    yield start
    for process in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()


def test_a_process_that_is_stopped_with_groups_in_flight(processes, watched, sums, said):
    (first, url), (_, other) = processes(), processes()
    engine = watched(url, other, start_wait_s=20.0)
    engine.load_weights(weights(1), version=1)
    busy, complete = threading.Event(), engine.servers[0].complete
    engine.servers[0].complete = lambda *arguments: (busy.set(), complete(*arguments))[1]
    stopper = threading.Thread(
        target=lambda: (busy.wait(20), time.sleep(0.05), os.kill(first.pid, signal.SIGSTOP)), daemon=True
    )
    stopper.start()
    started = time.monotonic()
    check(engine, sums, 1, PROMPTS * 4, SEEDS * 4)
    stopper.join()
    assert engine.urls == [other]
    engine.load_weights(weights(2), version=2)
    check(engine, sums, 2)
    assert time.monotonic() - started < 20 * STALL_S
    os.kill(first.pid, signal.SIGCONT)
    until(lambda: check(engine, sums, 2, PROMPTS[:1], SEEDS[:1]) or engine.servers[0].alive)
    assert f"{url} answers again, has the weights of version 2 and is in use again" in said
    with engine.at(url):
        check(engine, sums, 2)


def test_the_only_process_that_is_stopped(processes, watched, sums):
    process, url = processes()
    engine = watched(url, start_wait_s=20.0)
    engine.load_weights(weights(1), version=1)
    check(engine, sums, 1, PROMPTS[:2], SEEDS[:2])
    os.kill(process.pid, signal.SIGSTOP)
    started = time.monotonic()
    with pytest.raises(EngineError, match=f"every vLLM server has stalled.*{url}.*Continue with --resume"):
        engine.generate(PROMPTS, SEEDS, SAMPLING)
    assert time.monotonic() - started < 10 * STALL_S
    engine.close()
    os.kill(process.pid, signal.SIGCONT)
    again = watched(url)
    again.load_weights(weights(1), version=1)
    check(again, sums, 1)
