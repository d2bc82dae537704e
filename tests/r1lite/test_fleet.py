"""The fleet of servers under every fault: what it returns is what undisturbed servers would, and it ends in time."""

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from conftest import make_tiny_tokenizer
from engine_contract import CONTRACT, OF_A_MODEL, Case, load_nano
from fleet_for_tests import DEADLY, LIGHT, STUCK, FakeVLLM, checksum, sampled
from servers_for_tests import free_port

from r1lite.rollout import EngineError, Sampling, eos_ids
from r1lite.rollout.continued import seed_after, stretches
from r1lite.rollout.vllm_server import vllm_fleet
from r1lite.rollout.weight_files import WeightFiles

PROMPTS = [[5, 6 + p] for p in range(12)]
SEEDS = [[10 * p, 10 * p + 1, 10 * p + 7] for p in range(12)]  # two requests a group
SAMPLING = Sampling(1.0, 6)


def weights(version):
    return [("a", torch.full((3,), float(version)))]


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    """version -> checksum of its weights."""
    files = WeightFiles(tmp_path_factory.mktemp("sums"), torch.float32)
    found = {version: checksum(files.write(weights(version), "x")) for version in range(10)}
    assert len(set(found.values())) == 10
    return found


@pytest.fixture
def fakes():
    made = []

    def fake(*arguments, kind=FakeVLLM, **settings):
        made.append(kind(*arguments, **settings))
        return made[-1]

    yield fake
    for server in made:
        server.stop()


@pytest.fixture
def engine_of(tmp_path, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.servers._LOOK_EVERY_S", 0.05)
    monkeypatch.setattr("r1lite.rollout.servers._POLL_S", 0.02)
    made, folder = [], tmp_path / "weights"
    folder.mkdir()
    before = set(threading.enumerate())

    def engine(*servers, **settings):
        settings = {"timeout_s": 5.0, "start_wait_s": 5.0, "context": 100, "vocabulary": 48, **settings}
        urls = [getattr(server, "url", server) for server in servers]
        connect = settings.pop("connect", vllm_fleet)
        made.append(connect(urls, make_tiny_tokenizer(), [1], dtype=torch.float32, weights_dir=str(folder), **settings))
        return made[-1]

    yield engine
    for found in made:
        started = time.monotonic()
        found.close()
        assert time.monotonic() - started < 3
        assert [server.load for server in found.servers] == [0] * len(found.servers)
        assert not any(client._open for server in found.servers for client in (server.client, server._doctor))
    assert not list(folder.iterdir())
    deadline = time.monotonic() + 3
    while left := [t for t in threading.enumerate() if t not in before and _is_of_the_engine(t)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def _is_of_the_engine(thread):
    return thread.name.startswith("r1lite") or isinstance(thread, threading.Timer)


def check(engine, sums, version, prompts=PROMPTS, seeds=SEEDS):
    """Samples, and compares with what an undisturbed server gives."""
    found = engine.generate(prompts, seeds, SAMPLING)
    for p, (prompt, row, group) in enumerate(zip(prompts, seeds, found, strict=True)):
        expected = [sampled(sums[version], prompt, seed, tokens=6, ends=[1]) for seed in row]
        assert [(list(c.token_ids), list(c.logprobs), c.finish_reason) for c in group] == expected, f"group {p}"
        assert {c.policy_version for c in group} == {version}


def once(*faults, path="v1/completions", skip=0):
    """A plan: these faults for that path, one after the other, after so many requests without."""
    waiting = [None] * skip + list(faults)
    return lambda asked: waiting.pop(0) if asked == path and waiting else None


@pytest.mark.parametrize("check_of_contract", [c for c in CONTRACT if c not in OF_A_MODEL], ids=lambda c: c.__name__)
def test_contract(check_of_contract, contract_case):
    check_of_contract(contract_case)


@pytest.fixture(scope="module")
def contract_case():
    model, tokenizer = load_nano()
    size = model.config.vocab_size
    fakes = [FakeVLLM(context=1024, vocabulary=size, delay=0.02) for _ in range(2)]
    settings = {"dtype": torch.float32, "context": 1024, "vocabulary": size, "timeout_s": 20.0, "start_wait_s": 5.0}
    engine = vllm_fleet([fake.url for fake in fakes], tokenizer, eos_ids(model, tokenizer), **settings)
    case = Case(engine, model, tokenizer, scripted=True)
    case.push()
    yield case
    engine.close()
    for fake in fakes:
        fake.stop()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.26.0", "0.32.0"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (2, 3))])
def test_whatever_happens_the_completions_are_the_same(seed, version, fakes, engine_of, sums, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.server._BUSY_S", 2.0)
    draw, turn = random.Random(seed), threading.Lock()
    on, budget, done = [False], [60], []

    def plan(path):
        with turn:
            if not on[0] or budget[0] <= 0 or draw.random() > 0.12:
                return None
            budget[0] -= 1
            done.append((path, fault := draw.choice([*LIGHT, *DEADLY, "abort"])))
            return fault

    servers = [fakes(version=version, delay=0.01, plan=plan) for _ in range(3)]
    engine = engine_of(*servers, timeout_s=30.0)  # in which no group can have bad luck all the time
    on[0] = True
    for step in range(1, 6):
        engine.load_weights(weights(step), version=step)
        for place in engine.urls[:1]:
            with engine.at(place):
                check(engine, sums, step, PROMPTS[:2], SEEDS[:2])
        check(engine, sums, step)
        stream = engine.stream(PROMPTS, SEEDS, SAMPLING)
        next(stream)
        stream.close()
    assert done
    on[0] = False
    deadline = time.monotonic() + 10
    while not all(server.alive for server in engine.servers) and time.monotonic() < deadline:
        check(engine, sums, 5, PROMPTS[:1], SEEDS[:1])
        time.sleep(0.05)
    assert len(engine.urls) == 3
    for place in engine.urls:
        with engine.at(place):
            check(engine, sums, 5)


GIVING = ("pause", "update_weight_version", "collective_rpc", "reset_prefix_cache", "resume", "weight_info")


@pytest.mark.parametrize("version", ["0.26.0", "0.32.0"])
@pytest.mark.parametrize("fault", [*LIGHT, *DEADLY])
def test_a_fault_while_weights_are_given(fault, version, fakes, engine_of, sums):
    """At each request of it: the only server comes back, or is asked again, and has the weights or says that not."""
    server = fakes(version=version, down_s=0.05)
    engine = engine_of(server)
    paths = [path for path in GIVING if version == "0.32.0" or "weight_" not in path]
    for step, path in enumerate([*paths, *(["metrics"] * 2 if version == "0.26.0" else [])], start=1):
        server.plan = once(fault, path=path, skip=int(step == len(paths) + 2))
        engine.load_weights(weights(step), version=step)
        check(engine, sums, step, PROMPTS[:2], SEEDS[:2])
    assert engine.servers[0].alive


@pytest.mark.parametrize("fault", [*LIGHT, *DEADLY, "abort"])
def test_a_fault_of_the_only_server_is_got_over(fault, fakes, engine_of, sums):
    server = fakes(down_s=0.05)
    engine = engine_of(server)
    engine.load_weights(weights(1), version=1)
    for path in ("v1/completions", "weight_info"):
        server.plan = once(fault, path=path, skip=1)
        check(engine, sums, 1, PROMPTS[:3], SEEDS[:3])
    lives = fault not in DEADLY
    assert (engine.deaths == 0) == (lives or fault == "restart")


@pytest.mark.parametrize("fault", STUCK)
def test_an_answer_that_does_not_come_is_asked_of_another(fault, fakes, engine_of, sums):
    servers = [fakes(plan=once(fault)), fakes()]
    engine = engine_of(*servers, timeout_s=0.7)
    engine.load_weights(weights(1), version=1)
    check(engine, sums, 1)
    assert engine.deaths == 0  # it answers everything else


def test_an_engine_that_hangs_behind_a_healthy_front_is_left_out(fakes, engine_of, sums, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.server._BUSY_S", 0.3)
    stuck = fakes()
    engine = engine_of(stuck, fakes(), timeout_s=0.7)
    engine.load_weights(weights(1), version=1)
    stuck.plan = lambda path: None if path in ("health", "version", "v1/models", "metrics") else "hang"
    check(engine, sums, 1)
    assert [server.alive for server in engine.servers] == [False, True]
    assert engine.deaths == 1
    stuck.plan = lambda path: None
    while not engine.servers[0].alive:
        check(engine, sums, 1, PROMPTS[:1], SEEDS[:1])
        time.sleep(0.05)
    assert len(engine.urls) == 2


def test_a_busy_server_that_is_slow_to_answer_is_not_taken_for_dead(fakes, engine_of, sums, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.vllm_server.QUICK_S", 0.1)
    server = fakes(plan=lambda path: "slow" if path == "weight_info" else None)
    engine = engine_of(server)
    engine.load_weights(weights(1), version=1)
    check(engine, sums, 1)
    assert engine.deaths == server.aborted == 0
    assert server.calls.count("v1/completions") == 2 * len(PROMPTS)  # nothing was cut off and asked again


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
