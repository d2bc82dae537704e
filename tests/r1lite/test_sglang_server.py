"""SGLang servers, by a scripted one: the same completions whatever happens, and a word for what can't be used.

No real SGLang is asked here, nor was one anywhere.
"""

import random
import threading
import time

import pytest
import torch
from engine_contract import CONTRACT, OF_A_MODEL, Case, load_nano
from fleet_cases import PROMPTS, SAMPLING, SEEDS, check, once, weights
from fleet_for_tests import DEADLY, LIGHT, STUCK
from sglang_for_tests import FakeSGLang

from r1lite.config import EvalConfig, GRPOConfig, load
from r1lite.errors import UserError
from r1lite.rollout import EngineError, Sampling, eos_ids
from r1lite.rollout.build import Request, start
from r1lite.rollout.client import Client, Unreachable
from r1lite.rollout.server import TOKEN
from r1lite.rollout.sglang_server import sampling_values, sglang_fleet

pytest_plugins = ["fleet_fixtures"]


@pytest.fixture
def servers(fakes):
    return lambda *arguments, **settings: fakes(*arguments, kind=FakeSGLang, **settings)


@pytest.fixture
def fleet(engine_of):
    return lambda *made, **settings: engine_of(*made, **{"connect": sglang_fleet, "untested": True, **settings})


@pytest.mark.parametrize("check_of_contract", [c for c in CONTRACT if c not in OF_A_MODEL], ids=lambda c: c.__name__)
def test_contract(check_of_contract, contract_case):
    check_of_contract(contract_case)


@pytest.fixture(scope="module")
def contract_case():
    model, tokenizer = load_nano()
    size = model.config.vocab_size
    made = [FakeSGLang(context=1026, vocabulary=size, delay=0.02) for _ in range(2)]
    settings = {"dtype": torch.float32, "context": 1024, "vocabulary": size, "timeout_s": 20.0, "start_wait_s": 5.0}
    urls = [fake.url for fake in made]
    engine = sglang_fleet(urls, tokenizer, eos_ids(model, tokenizer), untested=True, **settings)
    case = Case(engine, model, tokenizer, scripted=True)
    case.push()
    yield case
    engine.close()
    for fake in made:
        fake.stop()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (2, 3))])
def test_whatever_happens_the_completions_are_the_same(seed, servers, fleet, sums, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.server._BUSY_S", 2.0)
    draw, turn, on, done = random.Random(seed), threading.Lock(), [False], []

    def plan(path):
        with turn:
            if not on[0] or len(done) >= 60 or draw.random() > 0.12:
                return None
            done.append((path, fault := draw.choice([*LIGHT, *DEADLY, "abort"])))
            return fault

    engine = fleet(*(servers(delay=0.01, plan=plan) for _ in range(3)), timeout_s=30.0)
    on[0] = True
    for step in range(1, 6):
        engine.load_weights(weights(step), version=step)
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


GIVING = (
    *("pause_generation", "update_weight_version", "update_weights_from_disk", "flush_cache", "continue_generation"),
    "model_info",
)


@pytest.mark.parametrize("fault", [*LIGHT, *DEADLY])
def test_a_fault_while_weights_are_given(fault, servers, fleet, sums):
    server = servers(down_s=0.05)
    engine = fleet(server)
    for step, path in enumerate(GIVING, start=1):
        server.plan = once(fault, path=path)
        engine.load_weights(weights(step), version=step)
        check(engine, sums, step, PROMPTS[:2], SEEDS[:2])
    assert engine.servers[0].alive


@pytest.mark.parametrize("fault", [*LIGHT, *DEADLY, "abort"])
def test_a_fault_of_the_only_server_is_got_over(fault, servers, fleet, sums):
    server = servers(down_s=0.05)
    engine = fleet(server)
    engine.load_weights(weights(1), version=1)
    for path in ("generate", "model_info"):
        server.plan = once(fault, path=path, skip=1)
        check(engine, sums, 1, PROMPTS[:3], SEEDS[:3])


@pytest.mark.parametrize("fault", STUCK)
def test_an_answer_that_does_not_come_is_asked_of_another(fault, servers, fleet, sums):
    engine = fleet(servers(plan=once(fault, path="generate")), servers(), timeout_s=0.7)
    engine.load_weights(weights(1), version=1)
    check(engine, sums, 1)


@pytest.mark.parametrize("counts", [True, False])
def test_a_scheduler_that_hangs_is_set_aside(counts, servers, fleet, sums):
    """Counted tokens tell it; without --enable-metrics, that /health_generate gets nothing from the scheduler."""
    said = []
    stuck, other = servers(counts=counts), servers(counts=counts)
    engine = fleet(stuck, other, stall_s=1.5, say=said.append, timeout_s=60.0)
    engine.load_weights(weights(1), version=1)
    stuck.running.clear()
    check(engine, sums, 1)
    assert engine.urls == [other.url]
    stuck.running.set()
    deadline = time.monotonic() + 30
    while not engine.servers[0].alive and time.monotonic() < deadline:
        check(engine, sums, 1, PROMPTS[:1], SEEDS[:1])
    with engine.at(stuck.url):
        check(engine, sums, 1)
    assert f"{stuck.url} answers again, has the weights of version 1 and is in use again" in said


def test_one_that_somebody_pauses_in_the_middle_is_asked_again(servers, fleet, sums):
    """Its completions are cut off, and say so."""
    server, other = servers(delay=0.3), servers(delay=0.3)
    engine = fleet(server, other)
    engine.load_weights(weights(1), version=1)
    outside = Client(server.url)
    for delay, path, body in ((0.1, "pause_generation", {"mode": "abort"}), (0.6, "continue_generation", {})):
        threading.Timer(delay, outside.post, (path, body), {"timeout_s": 5}).start()
    check(engine, sums, 1)
    assert server.aborted > 0


def changing(server, change):
    """From now on, its answers' last completion is changed."""
    choices = server.choices

    def changed(body, *, cut):
        status, answers = choices(body, cut=cut)
        change(answers[-1])
        return status, answers

    server.choices = changed


def test_completions_of_other_weights_are_not_taken(servers, fleet, sums):
    """They are stamped with another version, by a server that names the right one when it is asked."""
    server, stamps = servers(), ["r1lite-other"]
    engine = fleet(server)
    engine.load_weights(weights(1), version=1)
    changing(server, lambda answer: stamps and answer["meta_info"].update(weight_version=stamps.pop()))
    check(engine, sums, 1, PROMPTS[:1], SEEDS[:1])
    assert stamps == []
    span = {"version": "r1lite-other", "start": 0, "end": 1}
    changing(server, lambda answer: answer["meta_info"].update(weight_versions=[span]))
    with pytest.raises(Unreachable, match="sampled from weights"):
        engine.servers[0].complete(PROMPTS[0], [1], SAMPLING)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda answer: answer["output_ids"].pop(), "an incomplete completion"),
        (lambda answer: answer["meta_info"]["output_token_logprobs"].pop(), "an incomplete completion"),
        (lambda answer: answer["meta_info"].update(completion_tokens=99), "an incomplete completion"),
        (lambda answer: answer["meta_info"].pop("output_token_logprobs"), "without token ids and log-probabilities"),
        (lambda answer: answer.update(output_ids=["x"] * 6), "without token ids and log-probabilities"),
        (lambda answer: answer["meta_info"].update(finish_reason="stop"), "without token ids and log-probabilities"),
    ],
)
def test_answers_that_are_none(change, message, servers, fleet):
    server = servers()
    engine = fleet(server)
    engine.load_weights(weights(1), version=1)
    changing(server, change)
    with pytest.raises(EngineError, match=message):
        engine.generate(PROMPTS[:1], SEEDS[:1], SAMPLING)


def test_a_missing_completion_is_an_error(servers, fleet):
    server = servers()
    engine = fleet(server)
    engine.load_weights(weights(1), version=1)
    choices = server.choices
    server.choices = lambda body, *, cut: (200, choices(body, cut=cut)[1][1:])
    with pytest.raises(EngineError, match="2 completions of 3"):
        engine.generate(PROMPTS[:1], SEEDS[:1], SAMPLING)


def test_what_is_asked():
    values = sampling_values(Sampling(0.7, 9, "</think>"), [1, 2], {})
    assert (values["temperature"], values["stop"], values["stop_token_ids"]) == (0.7, ["</think>"], [1, 2])
    assert (values["top_p"], values["top_k"], values["min_p"], values["n"]) == (1.0, -1, 0.0, 1)
    values = sampling_values(Sampling(0, 9, "<|end|>"), [1], {"<|end|>": 7})
    assert (values["temperature"], values["stop"], values["stop_token_ids"]) == (0.0, [], [1, 7])
    for cut in ({"top_p": 0.9}, {"top_k": 5}, {"min_p": 0.1}):
        with pytest.raises(EngineError, match="cut by top_p, top_k or min_p"):
            sampling_values(Sampling(1.0, 9, **cut), [1], {})


def test_a_token_goes_with_every_call(servers, fleet, sums, monkeypatch):
    server = servers(key="secret")
    with pytest.raises(UserError, match="requires a token"):
        fleet(server)
    monkeypatch.setenv(TOKEN, "wrong")
    with pytest.raises(UserError, match="requires a token"):
        fleet(server)
    monkeypatch.setenv(TOKEN, "secret")
    engine = fleet(server)
    engine.load_weights(weights(1), version=1)
    check(engine, sums, 1)
    monkeypatch.setenv(TOKEN, "two\nlines")
    with pytest.raises(UserError, match="characters that an HTTP header does not allow"):
        fleet(server)


@pytest.mark.parametrize(
    ("about", "settings", "message"),
    [
        ({}, {"untested": False}, r"SGLang 0\.5\.23 follow the sources .* never tested .* --engine-untested"),
        ({"seeded": False}, {}, "start it with --enable-deterministic-inference"),
        ({"context": 101}, {}, "accepts 99 tokens of prompt and completion.* start it with --context-length 102"),
    ],
)
def test_servers_that_do_not_fit_are_refused(about, settings, message, servers, fleet):
    with pytest.raises(UserError, match=message):
        fleet(servers(**about), **settings)


def test_a_server_of_vllm_is_refused(fakes, fleet):
    with pytest.raises(UserError, match=r"no server answers there .* sglang\.launch_server"):
        fleet(fakes(), start_wait_s=0.1)


def test_weights_that_it_can_not_read_are_an_error(servers, fleet, monkeypatch):
    def unreadable(folder):
        raise OSError("no such file")

    engine = fleet(servers())
    monkeypatch.setattr("sglang_for_tests.checksum", unreadable)
    with pytest.raises(EngineError, match=r"did not load the weights .*no such file.*--engine-weights-dir"):
        engine.load_weights(weights(1), version=1)


def test_weights_that_it_says_it_loaded_and_did_not_are_an_error(servers, fleet):
    server = servers()
    engine = fleet(server)
    server.on_update_weights_from_disk = lambda body: (200, {"success": True})
    with pytest.raises(EngineError, match=r"says that it loaded weights, but still holds 'r1lite-.*-begun-1'"):
        engine.load_weights(weights(1), version=1)


def test_the_engine_is_named_in_a_configuration(servers):
    model, tokenizer = load_nano()
    server = servers(context=1026, vocabulary=model.config.vocab_size)
    flags = ["--engine", "sglang-server", "--engine-url", server.url, "--engine-untested", "--model", "nano"]
    started = start(Request(load(GRPOConfig, flags), "nano", model, tokenizer, torch.float32, 1024))
    assert (started.line, started.version, started.name) == ("SGLang 0.5.23, 1 server", "0.5.23", "sglang-server")
    started.engine.close()
    cut = load(GRPOConfig, [*flags, "--top-k", "5", "--biased-sampling"])
    with pytest.raises(UserError, match="--top-k: SGLang samples from the cut distribution"):
        start(Request(cut, "nano", model, tokenizer, torch.float32, 1024))
    assert load(EvalConfig, flags).engine == "sglang-server"
    with pytest.raises(UserError, match="needs --engine-url"):
        load(GRPOConfig, flags[:2])
