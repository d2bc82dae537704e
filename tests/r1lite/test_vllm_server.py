"""vLLM servers, for real: the contract, a server that dies and one that comes back, a wrong one, a run over HTTP.

Two servers for the whole file. While the first one starts again, what needs only the second is tested.
"""

import copy
import dataclasses
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
import torch
from engine_contract import CONTRACT, Case, closing_ends_a_stream_under_way, forward, load_nano
from servers_for_tests import Running, free_port

from r1lite.cli import main
from r1lite.errors import UserError
from r1lite.model.policy import Policy
from r1lite.rollout import EngineError, Sampling, eos_ids
from r1lite.rollout.trust import TrustedEngine
from r1lite.rollout.vllm_server import vllm_fleet
from r1lite.rollout.vllm_support import installed
from verifiers.rows import rows

pytestmark = [
    pytest.mark.skipif(installed() is None, reason="vLLM is not installed"),
    pytest.mark.filterwarnings("default"),  # vLLM's own
]


@pytest.fixture(scope="module")
def servers(tmp_path_factory, forks):
    folder = tmp_path_factory.mktemp("servers")
    running = [Running(forks, folder, free_port()) for _ in range(2)]
    yield running
    for server in running:
        server.kill()


@pytest.fixture(scope="module")
def model_and_tokenizer():
    return load_nano()


def engine_for(urls, model_and_tokenizer, **settings):
    model, tokenizer = model_and_tokenizer
    settings = {
        "dtype": torch.float32,
        "context": 1024,
        "vocabulary": model.config.vocab_size,
        "timeout_s": 240.0,
        "start_wait_s": 500.0,
        "stall_s": 10.0,
        **settings,
    }
    return vllm_fleet(urls, tokenizer, eos_ids(model, tokenizer), **settings)


@pytest.fixture(scope="module")
def case(servers, model_and_tokenizer):
    case = Case(engine_for([server.url for server in servers], model_and_tokenizer), *model_and_tokenizer)
    with pytest.raises(EngineError, match="given no weights yet"):
        case.generate(Sampling(1.0, 4))
    case.push()
    yield case
    case.engine.close()


@pytest.mark.parametrize(
    "check", [c for c in CONTRACT if c is not closing_ends_a_stream_under_way], ids=lambda check: check.__name__
)
def test_contract(check, case):
    check(case)


def test_both_servers_work_and_each_has_the_weights(case):
    case.push()
    seen = []
    for server in case.engine.servers:
        complete = server.complete
        server.complete = lambda *a, server=server, complete=complete: seen.append(server.url) or complete(*a)
    case.generate(Sampling(1.0, 20), case.prompts() * 3)
    assert set(seen) == {server.url for server in case.engine.servers}
    assert all(server.is_current(case.engine._weights.label) for server in case.engine.servers)


def test_what_new_weights_interrupt_goes_on_with_them(case):
    """Each stretch has the log-probabilities of its version."""
    case.push()
    models = {case.version: copy.deepcopy(case.model)}
    with torch.no_grad():
        for parameter in case.model.parameters():
            parameter.add_(1e-3 * torch.randn(parameter.shape))
    pushing, found = threading.Thread(target=case.push), []
    prompts = case.prompts() * 8  # more than the servers sample at once
    sampling = Sampling(2.0, 200, across_weights=True)  # so hot that many completions are long
    seeds = [[1000 * place + g for g in range(4)] for place in range(len(prompts))]
    for one in case.engine.stream(prompts, seeds, sampling):
        if not found:
            pushing.start()
        found.append(one)
    pushing.join()
    models[case.version] = case.model
    crossed = [(prompts[place], one) for place, group in found for one in group if one.stretches]
    assert crossed
    apart = 0.0  # that the second stretches are from what the first weights say
    for prompt, one in crossed:
        ((_, first), (cut, second)) = one.stretches
        assert (first, second) == tuple(models)
        for version, part in ((first, slice(0, cut)), (second, slice(cut, None))):
            expected = forward(dataclasses.replace(case, model=models[version]), prompt, one, sampling.temperature)
            assert torch.allclose(torch.tensor(one.logprobs)[part], expected[part], atol=2e-4)
        other = forward(dataclasses.replace(case, model=models[first]), prompt, one, sampling.temperature)
        apart = max(apart, float((torch.tensor(one.logprobs) - other)[cut:].abs().max()))
    assert apart > 1e-2


def test_a_lost_weight_stops_the_run_and_is_named(case):
    # The older vLLM keeps a tied head as one weight, which a missing name can't leave behind.
    lost = "lm_head.weight" if installed().knows_weight_versions else "model.norm.weight"
    from r1lite.rollout.canary import Canary

    canary = Canary(Policy(case.model, pad_id=0), tokens=12, seed=0, stop_text=None, tolerance=None)
    engine = TrustedEngine(case.engine, canary, lambda: case.model.state_dict().items(), pad_id=0)
    prompts = case.prompts()[:2]
    engine.generate(prompts, [[1], [2]], Sampling(1.0, 4))
    with torch.no_grad():
        for name, parameter in case.model.state_dict().items():
            if name == lost:
                parameter.add_(0.05 * torch.randn(parameter.shape))
    weights = [(name, weight) for name, weight in case.model.state_dict().items() if name != lost]
    engine.offer(lambda: weights, version=1)
    with pytest.raises(EngineError, match=f"What differs: the weights {lost}"):
        engine.generate(prompts, [[1], [2]], Sampling(1.0, 4))
    case.push()


def test_another_runs_weights_are_noticed(case, servers, model_and_tokenizer):
    other = engine_for([servers[0].url], model_and_tokenizer)
    other.load_weights(case.model.state_dict().items(), version=1)
    other.close()
    if installed().knows_weight_versions:
        with pytest.raises(EngineError, match="weights of another run"):
            case.generate(Sampling(1.0, 4), case.prompts() * 2)
    case.engine.servers[0]._label = None
    case.push()


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"context": 4096}, "start it with --context 4096")],
)
def test_servers_that_do_not_fit_are_refused(settings, message, servers, model_and_tokenizer):
    with pytest.raises(UserError, match=message):
        engine_for([servers[0].url], model_and_tokenizer, **settings)


def test_a_server_that_is_stopped_gives_its_groups_to_another_and_comes_back(case, servers):
    sampling = Sampling(1.0, 300)
    prompts = case.prompts() * 3
    seeds = [[7 * p + g for g in range(2)] for p in range(len(prompts))]
    expected = case.engine.generate(prompts, seeds, sampling)
    first, second = case.engine.servers
    assert case.engine.urls == [first.url, second.url]
    deaths, in_flight, complete = case.engine.deaths, threading.Event(), first.complete
    first.complete = lambda *arguments: (in_flight.set(), complete(*arguments))[1]

    def stop():
        in_flight.wait(120)
        time.sleep(0.05)
        servers[0].signal(signal.SIGSTOP)

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        started = time.monotonic()
        found = case.engine.generate(prompts, seeds, sampling)
        assert time.monotonic() - started < 60
        stopper.join()
        same_completions("with the one that was stopped", found, expected)
        assert [server.alive for server in case.engine.servers] == [False, True]
        assert case.engine.deaths == deaths + 1
        case.push()  # to the one that works
    finally:
        del first.complete
        in_flight.set()
        stopper.join()
        servers[0].signal(signal.SIGCONT)
    deadline = time.monotonic() + 60
    while not first.alive and time.monotonic() < deadline:
        case.generate(Sampling(1.0, 4))
        time.sleep(0.2)
    assert first.is_current(case.engine._weights.label)
    with case.engine.at(first.url):
        same_completions("by the one that came back", case.engine.generate(prompts, seeds, sampling), expected)


def test_a_server_dies_and_another_takes_over(case, servers, tmp_path_factory, forks):
    sampling = Sampling(1.0, 300)
    prompts = case.prompts() * 3
    seeds = [[7 * p + g for g in range(2)] for p in range(len(prompts))]
    expected = case.engine.generate(prompts, seeds, sampling)
    first, second = case.engine.servers
    assert case.engine.urls == [first.url, second.url], "both must live before one is killed"
    deaths, in_flight, complete = case.engine.deaths, threading.Event(), first.complete

    def notice(*arguments):
        in_flight.set()
        return complete(*arguments)

    def kill():
        in_flight.wait(120)
        time.sleep(0.05)  # 300 tokens take longer
        loads.append(first.load)
        servers[0].kill()

    loads = []
    killer = threading.Thread(target=kill)
    killer.start()
    first.complete = notice
    try:
        found = case.engine.generate(prompts, seeds, sampling)
        killer.join()
        assert loads[0] > 0, "it was killed with nothing in flight"
        same_completions("with the one that died", found, expected)
        same_completions("by the one that is left", case.engine.generate(prompts, seeds, sampling), expected)
        living = [server.alive for server in case.engine.servers]
        assert living == [False, True], f"alive: {living}, {first.url} was killed"
        assert case.engine.deaths == deaths + 1, f"{case.engine.deaths - deaths} deaths of one server"
        case.push()  # to the living one
    finally:  # the tests after this one need it
        del first.complete
        in_flight.set()
        killer.join()
        servers[0].kill()
        servers[0] = Running(forks, tmp_path_factory.mktemp("again"), servers[0].port)


def same_completions(which, found, expected):
    """Fails where a completion isn't the expected one, and says where and how."""
    for p, (group, right) in enumerate(zip(found, expected, strict=True)):
        for g, (ours, theirs) in enumerate(zip(group, right, strict=True)):
            if ours.token_ids != theirs.token_ids:
                pairs = zip(ours.token_ids, theirs.token_ids, strict=False)
                at = next((t for t, (a, b) in enumerate(pairs) if a != b), "the end of the shorter")
                lengths = f"{len(ours.token_ids)} and {len(theirs.token_ids)} tokens"
                pytest.fail(f"{which}: completion {g} of prompt {p} differs from token {at} on ({lengths})")


@pytest.fixture(scope="module")
def flags(few_problems):
    return [
        *("grpo", "--engine", "vllm-server", "--model", "nano", "--source", str(few_problems)),
        *("--prompts-per-step", "4", "--group-size", "4", "--threads", "1", "--score-workers", "0"),
        *("--eval-problems", "4", "--eval-sample-problems", "2", "--eval-samples", "2", "--no-report", "--quiet"),
    ]


def records(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def token_ids(path):
    return [row["token_ids"] for _, row in rows(path)]


@pytest.mark.parametrize("staleness", [0, 2])
def test_a_run_over_http_and_its_resumption(servers, flags, tmp_path, staleness):
    """By the second server: the first one is still coming back."""
    flags = [*flags, "--engine-url", servers[1].url, "--max-staleness", str(staleness)]
    out, whole = tmp_path / "run", tmp_path / "whole"
    assert main([*flags, "--steps", "4", "--save-every", "2", "--out", str(whole)]) == 0
    for record in records(whole):
        assert record.get("canary_logprob_max", 0.0) < 1e-4  # the last step may have no engine to sync
        assert record["mismatch_kl"] < (1e-6 if staleness == 0 else 1.0)
    made = [row for _, row in rows(whole / "rollouts" / "step-000003.jsonl.gz")]
    assert {row["policy_version"] for row in made} <= set(range(2 - staleness, 3))
    shutil.copytree(whole, out)
    shutil.rmtree(out / "checkpoints" / "step-000004")
    names = ("step-000003.jsonl.gz", "step-000004.jsonl.gz")
    for name in names:
        (out / "rollouts" / name).unlink()
    assert main(["grpo", "--resume", "--out", str(out), "--quiet"]) == 0
    for name in names:
        assert token_ids(out / "rollouts" / name) == token_ids(whole / "rollouts" / name)
    if staleness:
        again = tmp_path / "again"
        assert main([*flags, "--steps", "4", "--replay-order", str(out), "--out", str(again)]) == 0
        for path in (out / "rollouts").iterdir():
            assert path.read_bytes() == (again / "rollouts" / path.name).read_bytes()


def test_the_dead_server_comes_back_with_the_weights(case):
    case.push()  # the runs before had the other one for themselves
    first = case.engine.servers[0]
    deadline = time.monotonic() + 400
    while not first.alive and time.monotonic() < deadline:
        case.generate(Sampling(1.0, 4))
        time.sleep(0.5)
    assert first.is_current(case.engine._weights.label)
    assert {c.policy_version for group in case.generate(Sampling(1.0, 4)) for c in group} == {case.version}


def test_when_all_are_dead_the_run_stops_and_can_be_resumed(servers, flags, tmp_path, capsys):
    out = tmp_path / "run"
    flags = [*flags, "--engine-url", servers[0].url, "--engine-timeout-s", "4", "--steps", "100000"]
    killer = threading.Thread(target=kill_after, args=(servers[0], out / "rollouts" / "step-000002.jsonl.gz"))
    killer.start()
    assert main([*flags, "--save-every", "1000", "--out", str(out)]) == 1
    killer.join()
    shown = capsys.readouterr().err
    assert "no vLLM server has answered for 4 s" in shown
    assert "Traceback" not in shown
    done = len(records(out))
    assert [path.name for path in (out / "checkpoints").iterdir()] == [f"step-{done:06d}"]
    again = ["grpo", "--resume", "--out", str(out), "--engine-url", servers[1].url, "--steps", str(done + 1), "--quiet"]
    assert main(again) == 0
    assert len(records(out)) == done + 1


def test_when_the_only_server_is_stopped_the_run_ends_in_time_and_can_be_resumed(servers, flags, tmp_path, capsys):
    out = tmp_path / "run"
    flags = [*flags, "--engine-url", servers[1].url, "--engine-stall-s", "8", "--steps", "100000"]
    ended = []

    def stop():
        path, deadline = out / "rollouts" / "step-000002.jsonl.gz", time.monotonic() + 400
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        servers[1].signal(signal.SIGSTOP)
        ended.append(time.monotonic())

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        assert main([*flags, "--save-every", "1000", "--out", str(out)]) == 1
        ended.append(time.monotonic())
        stopper.join()
    finally:
        servers[1].signal(signal.SIGCONT)
    assert ended[1] - ended[0] < 60
    shown = capsys.readouterr()
    assert "every vLLM server has stalled, and none has continued for 8 s" in shown.err
    assert "Traceback" not in shown.err
    done = len(records(out))
    assert main(["grpo", "--resume", "--out", str(out), "--steps", str(done + 1), "--quiet"]) == 0
    assert len(records(out)) == done + 1


def kill_after(server, path):
    deadline = time.monotonic() + 400
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    server.kill()


def test_closing(case):
    case.engine.servers = case.engine.servers[1:]
    case.push()
    closing_ends_a_stream_under_way(case)
    assert not list(Path("/dev/shm").glob(f"r1lite-weights-{os.getpid()}-*"))
