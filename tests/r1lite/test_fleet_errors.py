"""What ends a run with an error and what does not: refusals, deaths, caches that are not emptied."""

import time

import pytest
from fleet_cases import PROMPTS, SAMPLING, SEEDS, check, once, weights

from r1lite.rollout import EngineError

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
