"""Completions that arrive while others are sampled: streams that are left, interrupted, taken over or killed."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fleet_cases import PROMPTS, SAMPLING, SEEDS, check, weights
from fleet_for_tests import sampled
from servers_for_tests import free_port

from r1lite.rollout import EngineError, Sampling
from r1lite.rollout.continued import seed_after, stretches

pytest_plugins = ["fleet_fixtures"]


def test_leaving_early_buries_nobody(fakes, engine_of, sums):
    servers = [fakes(delay=0.1), fakes(delay=0.1)]
    engine = engine_of(*servers)
    engine.load_weights(weights(1), version=1)
    for _ in range(5):
        stream = engine.stream(PROMPTS, SEEDS, SAMPLING)
        next(stream)
        stream.close()
        assert [server.load for server in engine.servers] == [0, 0]
    assert engine.deaths == 0
    assert len(engine.urls) == 2
    check(engine, sums, 1)


def test_a_stream_that_is_left_disturbs_no_other(fakes, engine_of, sums):
    engine = engine_of(fakes(delay=0.1))
    engine.load_weights(weights(1), version=1)
    left = engine.stream(PROMPTS[:2], [[1], list(range(0, 40, 2))], SAMPLING)
    next(left)  # the other group is twenty requests
    closing = threading.Timer(0.15, left.close)
    closing.start()
    check(engine, sums, 1)
    closing.join()
    assert engine.deaths == 0


def test_a_server_taken_over_while_it_samples_gives_nothing_of_the_other_run(fakes, engine_of):
    """The other run's weights load for a while, in which the server still goes by this run's name for its own."""
    server = fakes()
    mine, other = engine_of(server), engine_of(server)
    mine.load_weights(weights(1), version=1)
    asked = threading.Event()

    def plan(path):
        if path == "v1/completions":
            asked.set()
        return "slow" if path in ("collective_rpc", "v1/completions") else None

    server.plan = plan
    taking = threading.Thread(target=lambda: (asked.wait(5), other.load_weights(weights(2), version=2)))
    taking.start()
    with pytest.raises(EngineError, match="weights of another run in the middle of this one"):
        mine.generate(PROMPTS[:2], SEEDS[:2], SAMPLING)
    taking.join()


def test_newer_weights_in_the_middle_of_a_stream(fakes, engine_of, sums):
    """Every group is of one version whole, and says which."""
    engine = engine_of(fakes(delay=0.03), fakes(delay=0.03))
    engine.load_weights(weights(1), version=1)
    stream = engine.stream(PROMPTS * 3, SEEDS * 3, SAMPLING)
    found = [next(stream)]
    for version in (2, 3):
        engine.load_weights(weights(version), version=version)
        found.append(next(stream))
    found += stream
    for place, group in found:
        (version,) = {c.policy_version for c in group}
        expected = [
            tuple(sampled(sums[version], PROMPTS[place % 12], seed, tokens=6, ends=[1])[0])
            for seed in SEEDS[place % 12]
        ]
        assert [c.token_ids for c in group] == expected
    assert engine.deaths == 0


def test_what_newer_weights_interrupt_is_sampled_on_by_them(fakes, engine_of, sums):
    """Each stretch is what its version samples after the tokens before it, with a seed that follows from the first."""
    sampling = Sampling(1.0, 40, across_weights=True)
    engine = engine_of(fakes(delay=0.3), fakes(delay=0.3))
    engine.load_weights(weights(1), version=1)
    stream = engine.stream(PROMPTS, SEEDS, sampling)
    giving = threading.Thread(
        target=lambda: [(time.sleep(0.1), engine.load_weights(weights(v), version=v)) for v in (2, 3)]
    )
    giving.start()
    seen = set()
    for place, group in stream:
        for seed, found in zip(SEEDS[place], group, strict=True):
            parts = stretches(found)
            seen.add(len(parts))
            assert found.policy_version == parts[0][1]
            assert len(found.logprobs) == len(found.token_ids)
            ends = [*(start for start, _ in parts[1:]), len(found.token_ids)]
            for (start, version), end in zip(parts, ends, strict=True):
                ids, logprobs, _ = sampled(
                    sums[version],
                    [*PROMPTS[place], *found.token_ids[:start]],
                    seed_after(seed, start),
                    tokens=40 - start,
                    ends=[1],
                )
                assert (tuple(ids[: end - start]), tuple(logprobs[: end - start])) == (
                    found.token_ids[start:end],
                    found.logprobs[start:end],
                )
            assert (found.finish_reason == "stop") == (found.token_ids[-1] == 1)
            assert found.finish_reason == "stop" or len(found.token_ids) == 40
    giving.join()
    assert max(seen) > 1
    assert engine.deaths == 0


def test_a_process_killed_with_groups_in_flight(engine_of, sums):
    ports = [free_port() for _ in range(2)]
    script = Path(__file__).resolve().parents[1] / "fleet_for_tests.py"

    def start(port):
        return subprocess.Popen([sys.executable, "-S", str(script), str(port), "0.1"])

    running = [start(port) for port in ports]
    try:
        engine = engine_of(*(f"http://127.0.0.1:{port}" for port in ports), start_wait_s=20.0, timeout_s=20.0)
        engine.load_weights(weights(1), version=1)
        first, prompts, seeds = engine.servers[0], PROMPTS * 4, SEEDS * 4
        busy, complete = threading.Event(), first.complete
        first.complete = lambda *arguments: (busy.set(), complete(*arguments))[1]
        killer = threading.Thread(target=lambda: (busy.wait(20), time.sleep(0.05), running[0].kill()))
        killer.start()
        check(engine, sums, 1, prompts, seeds)
        killer.join()
        assert [server.alive for server in engine.servers] == [False, True]
        assert engine.deaths == 1
        engine.load_weights(weights(2), version=2)
        running.append(start(ports[0]))
        deadline = time.monotonic() + 20
        while not first.alive and time.monotonic() < deadline:
            check(engine, sums, 2, PROMPTS[:1], SEEDS[:1])
            time.sleep(0.05)
        with engine.at(first.url):
            check(engine, sums, 2)
        assert (first.alive, engine.deaths) == (True, 1)
    finally:
        for process in running:
            process.kill()
            process.wait()
