"""The fleet of servers under every fault: what it returns is what undisturbed servers would, and it ends in time."""

import random
import threading
import time

import pytest
import torch
from engine_contract import CONTRACT, OF_A_MODEL, Case, load_nano
from fleet_cases import GIVING, PROMPTS, SAMPLING, SEEDS, check, once, weights
from fleet_for_tests import DEADLY, LIGHT, STUCK, FakeVLLM

from r1lite.rollout import eos_ids
from r1lite.rollout.vllm_server import vllm_fleet

pytest_plugins = ["fleet_fixtures"]


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
