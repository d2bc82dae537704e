"""Engines and clients that are closed in the middle of anything end at once, and addresses that are none."""

import contextlib
import threading
import time

import pytest
from fleet_cases import GIVING, PROMPTS, SAMPLING, SEEDS, weights

from r1lite.rollout import EngineError
from r1lite.rollout.client import Client, Unreachable

pytest_plugins = ["fleet_fixtures"]


@pytest.mark.parametrize(
    ("path", "doing"),
    [
        *((path, "load") for path in GIVING),
        *((path, "sample") for path in ("weight_info", "v1/completions", "is_paused", "health")),
    ],
)
def test_closing_in_the_middle_of_anything(path, doing, fakes, engine_of):
    """However long that would have taken."""
    server = fakes()
    engine = engine_of(server, timeout_s=60.0)
    engine.load_weights(weights(1), version=1)
    reached, ended = threading.Event(), []

    def plan(asked):
        if asked == path:
            reached.set()
            return "hang"
        return "reset" if path in ("is_paused", "health") and asked == "v1/completions" else None

    def work():
        try:
            if doing == "load":
                engine.load_weights(weights(2), version=2)
            engine.generate(PROMPTS, SEEDS, SAMPLING)
        except Exception as error:
            ended.append(error)

    server.plan = plan
    thread = threading.Thread(target=work)
    thread.start()
    assert reached.wait(5)
    started = time.monotonic()
    engine.close()
    thread.join(3)
    assert time.monotonic() - started < 3
    assert not thread.is_alive()
    assert isinstance(ended[0], EngineError), ended
    assert "closed" in str(ended[0])


def test_closing_between_the_servers_and_the_older_files(fakes, engine_of, monkeypatch):
    engine = engine_of(fakes())
    engine.load_weights(weights(1), version=1)
    keep_only = engine._files.keep_only
    monkeypatch.setattr(engine._files, "keep_only", lambda folder: (engine.close(), keep_only(folder)))
    with pytest.raises(EngineError, match="closed"):
        engine.load_weights(weights(2), version=2)


def test_closing_with_groups_that_have_not_begun(fakes, engine_of):
    """What the pool of threads has not begun is over too: nobody waits for it for ever."""
    server, many, reached, ended = fakes(), 200, threading.Event(), []

    def plan(asked):
        if asked == "v1/completions":
            reached.set()
            return "hang"
        return None

    server.plan = plan
    engine = engine_of(server, timeout_s=60.0)
    engine.load_weights(weights(1), version=1)

    def work():
        try:
            engine.generate([PROMPTS[0]] * many, [[p] for p in range(many)], SAMPLING)
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert reached.wait(5)
    engine.close()
    thread.join(10)
    assert not thread.is_alive()
    assert "closed" in str(ended[0])


@pytest.mark.parametrize("doing", ["load", "sample"])
def test_closing_while_all_are_dead(doing, fakes, engine_of):
    server = fakes(down_s=60)
    engine = engine_of(server, timeout_s=60.0)
    engine.load_weights(weights(1), version=1)
    server.die()
    ended = []

    def work():
        with contextlib.suppress(EngineError):
            engine.load_weights(weights(2), version=2) if doing == "load" else engine.generate(PROMPTS, SEEDS, SAMPLING)
            ended.append("without an error")
        ended.append("in time")

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    engine.close()
    thread.join(3)
    assert ended == ["in time"]


def test_a_closed_client_asks_nothing_more(fakes):
    client = Client(fakes().url)
    assert client.get("version", timeout_s=5) == {"version": "0.32.0"}
    client.close()
    with pytest.raises(Unreachable, match="closed here"):
        client.get("version", timeout_s=5)


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://127.0.0.1:x"])
def test_a_port_that_is_none(url):
    with pytest.raises(ValueError, match=r"[Pp]ort"):
        Client(url)


def test_a_name_that_can_not_be_a_host(fakes):
    with pytest.raises(Unreachable):
        Client("http://a..b:80").get("health", timeout_s=1)
