"""Weights over gloo into real vLLM servers: exact after every change, and whole after every end in the middle."""

import json
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from engine_contract import CONTRACT, Case, closing_ends_a_stream_under_way, load_nano
from servers_for_tests import Fresh, Running, free_port
from wire_for_tests import FakeGloo

from r1lite.errors import UserError
from r1lite.rollout import EngineError, Sampling, eos_ids
from r1lite.rollout.client import Client, Refused
from r1lite.rollout.proof import WeightProof
from r1lite.rollout.senders import Calls, ExternalSender, GlooSender
from r1lite.rollout.vllm_server import VLLMServer, vllm_fleet
from r1lite.rollout.vllm_support import installed
from r1lite.rollout.weight_memory import WeightMemory

pytestmark = [
    pytest.mark.skipif(installed() is None or not installed().stamps_completions, reason="vLLM 0.32 is not installed"),
    pytest.mark.filterwarnings("default"),  # vLLM's own
]

TENSORS = 30  # that vLLM makes of nano's
COMPARED = 14  # of these: vLLM's CPU backend packs the linear layers
BIASES = 4  # of these: with AMX they are float32 beside weights in bfloat16


def engine_for(urls, model, tokenizer, **settings):
    settings = {"dtype": torch.float32, "timeout_s": 120.0, "transport": "gloo", **settings}
    return vllm_fleet(
        urls,
        tokenizer,
        eos_ids(model, tokenizer),
        context=1024,
        vocabulary=model.config.vocab_size,
        start_wait_s=500.0,
        **settings,
    )


class _Engines:
    """vLLM's own nccl engines on both sides, with a list in place of NCCL."""

    def __init__(self, monkeypatch, shapes):
        from vllm.distributed.weight_transfer import nccl_engine

        from r1lite.rollout.vllm_receivers import Nccl

        self.sent, self.loaded = [], {}
        monkeypatch.setattr(nccl_engine, "open_trainer_endpoint", lambda about: SimpleNamespace(destroy=lambda: None))
        monkeypatch.setattr(nccl_engine, "worker_init_process_group", lambda *_: SimpleNamespace(destroy=lambda: None))
        monkeypatch.setattr(
            nccl_engine,
            "packed_nccl_broadcast_producer",
            lambda iterator, post_iter_func, **_: self.sent.extend(map(post_iter_func, iterator)),
        )
        monkeypatch.setattr(nccl_engine, "packed_nccl_broadcast_consumer", self.consume)
        reload = "vllm.model_executor.model_loader.reload"
        monkeypatch.setattr(f"{reload}.initialize_layerwise_reload", lambda model: None)
        monkeypatch.setattr(f"{reload}.finalize_layerwise_reload", lambda model, config: None)
        model = SimpleNamespace(load_weights=lambda weights: self.loaded.update(weights))
        config = SimpleNamespace(
            parallel_config=SimpleNamespace(), model_config=SimpleNamespace(dtype=torch.float32, hf_config=None)
        )
        self.receiver = Nccl(None, config, torch.device("cpu"), model)
        self.receiver.staging._expected = shapes

    def consume(self, iterator, post_unpack_func, **_):
        expected = list(iterator)
        deadline = time.monotonic() + 10
        while len(self.sent) < len(expected) and time.monotonic() < deadline:
            time.sleep(0.01)
        post_unpack_func([(name, tensor) for (name, _), tensor in zip(expected, self.sent, strict=True)])
        self.sent.clear()


class _FakeNccl(FakeGloo):
    receiver = None

    def transfer(self, path, body):
        receiver = self.receiver
        if path == "init_weight_transfer_engine":
            receiver.init_transfer_engine(receiver.parse_init_info(body["init_info"]))
        elif path == "start_weight_update":
            receiver.start_weight_update()
        elif path == "update_weights":
            receiver.update_weights(body["update_info"])
        elif path == "finish_weight_update":
            receiver.finish_weight_update()
            self.label = body["weight_version"]
        else:
            return super().transfer(path, body)
        return 200, {}


def test_nccl_engines_of_vllm_are_asked_as_they_want_to_be(monkeypatch):
    """What its sources ask for, without NCCL: this shows nothing of the transport."""
    shapes = {"a": (3, 4), "b": (5,)}
    engines, server = _Engines(monkeypatch, shapes), _FakeNccl(shapes=shapes)
    server.receiver = engines.receiver
    sender = ExternalSender(Client(server.url), timeout_s=20.0, backend="nccl", device="cpu")
    memory = WeightMemory(torch.float32, delta=False)
    try:
        for version in range(2):
            weights = {name: torch.full(shape, float(version)) for name, shape in shapes.items()}
            sender.send(memory.keep(weights.items(), f"r1lite-x-{version}"))
            assert server.label == f"r1lite-x-{version}"
            assert all(torch.equal(engines.loaded[name], weight) for name, weight in weights.items())
        with pytest.raises(Refused, match=r"weights refused: b \(6,\) of float32, where the model has \(5,\)"):
            sender.send(memory.keep([("a", torch.ones(3, 4)), ("b", torch.ones(6))], "r1lite-x-2"))
        assert server.label == "r1lite-x-1"
        assert engines.loaded["b"].shape == (5,)
    finally:
        sender.close()
        server.stop()


@pytest.fixture(scope="module")
def gloo_servers(tmp_path_factory, forks):
    folder = tmp_path_factory.mktemp("servers")
    made = [Running(forks, folder, free_port(), "--weight-transport", "gloo") for _ in range(2)]
    yield made
    for server in made:
        server.kill()


@pytest.fixture(scope="module")
def case(gloo_servers):
    model, tokenizer = load_nano()
    case = Case(engine_for([server.url for server in gloo_servers], model, tokenizer), model, tokenizer)
    case.push()
    yield case
    case.engine.close()


def proven(case, version=0, dtype=torch.float32, proof=None):
    """How many tensors of each server are the model's, byte for byte; fails where one is not."""
    proof = proof or WeightProof(dtype)
    held = case.engine.weight_digests()
    return [proof.check(one, case.model.state_dict().items(), where=url, version=version) for url, one in held]


def change(model, share=0.01, by=1e-3):
    with torch.no_grad():
        for weight in model.parameters():
            weight[torch.rand(weight.shape) < share] += by


@pytest.mark.parametrize(
    "check", [c for c in CONTRACT if c is not closing_ends_a_stream_under_way], ids=lambda check: check.__name__
)
def test_contract(check, case):
    check(case)


def test_all_tensors_are_exact_after_whole_updates_and_after_changes(case):
    proof = WeightProof(torch.float32)
    for _ in range(3):
        before = case.engine.bytes_given
        change(case.model)
        case.push()
        assert proven(case, proof=proof) == [COMPARED] * 2
        whole = 2 * sum(weight.nbytes for weight in case.model.state_dict().values())
        assert 0 < case.engine.bytes_given - before < 0.1 * whole
    with torch.no_grad():
        case.model.model.norm.weight += 1  # and the proof does see a difference
    with pytest.raises(EngineError, match=r"model.norm.weight have different bytes"):
        proven(case, proof=proof)
    case.push()
    assert proven(case, proof=proof) == [COMPARED] * 2


def test_the_prefix_cache_is_emptied(case):
    prompt = [[5 + i % 200 for i in range(200)]]
    case.engine.generate(prompt, [[1]], Sampling(0.0, 1))
    with torch.no_grad():
        case.model.model.layers[0].self_attn.v_proj.weight *= 1.5
    case.push()
    (own,) = case.engine.generate(prompt, [[1]], Sampling(0.0, 1))[0]
    with torch.no_grad():
        logits = case.model(torch.tensor(prompt)).logits[0, -1]
    assert abs(own.logprobs[0] - torch.log_softmax(logits, -1)[own.token_ids[0]].item()) < 1e-4


def test_a_model_of_another_precision_or_shape_is_refused_by_name(case, monkeypatch):
    model, tokenizer = case.model, case.engine.tokenizer
    urls = [case.engine.servers[0].url]
    with pytest.raises(UserError, match="this server computes in float32, and this run in bfloat16"):
        engine_for(urls, model, tokenizer, dtype=torch.bfloat16)
    monkeypatch.setattr(VLLMServer, "check_dtype", lambda self, said: None)  # as if the server did not report it
    other = engine_for(urls, model, tokenizer, dtype=torch.bfloat16)
    with pytest.raises(EngineError, match=r"of bfloat16, where the model has \(\d+, \d+\) of float32"):
        other.load_weights(model.state_dict().items(), version=1)
    other.close()
    wrong = {**model.state_dict(), "model.norm.weight": torch.ones(7)}
    with pytest.raises(EngineError, match=r"model.norm.weight \(7,\) of float32, where the model has"):
        case.engine.load_weights(wrong.items(), version=1)
    case.push()
    assert proven(case) == [COMPARED] * 2


_TRAINER = """
import sys, time, torch
from r1lite.rollout.client import Client
from r1lite.rollout.senders import GlooSender
import r1lite.rollout.weight_memory
from engine_contract import load_nano
r1lite.rollout.weight_memory.BUCKET_BYTES = 1 << 19
sender = GlooSender(Client(sys.argv[1]), timeout_s=8.0)
model, _ = load_nano()
memory = r1lite.rollout.weight_memory.WeightMemory(torch.float32)
snapshot = memory.keep(((n, w + 1) for n, w in model.state_dict().items()), "r1lite-dead-1")
class Late:
    def __len__(self): return 50
    def __init__(self, own): self.own, self.count = own, 0
    def __getitem__(self, at):
        self.count += 1
        if self.count == 20:
            print("here", flush=True)
            time.sleep(600)
        return self.own[at]
payloads = sender._payloads
sender._payloads = lambda about, own, going: payloads(about, Late(own), going)
sender.send(snapshot)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_trainer_that_ends_in_the_middle_leaves_the_former_weights(number, case, gloo_servers, tmp_path, forks):
    case.push()
    url = case.engine.servers[0].url
    calls = Calls(Client(url), timeout_s=60.0)
    label = calls.weights_held()
    said = tmp_path / "said"
    said.touch()
    trainer = forks.start([url], code=_TRAINER, output=said)
    try:
        while "here" not in said.read_text():
            assert trainer.poll() is None, said.read_text()
            time.sleep(0.01)
        trainer.send_signal(number)
        began = time.monotonic()
        with case.engine.at(url):  # the trainer's deadline is 8 s
            group = case.engine.generate(case.prompts()[:1], [[1, 2]], Sampling(1.0, 8))[0]
        assert time.monotonic() - began < 20
        assert len(group) == 2
        assert calls.weights_held() == label
        assert calls.client.get("is_paused", timeout_s=10.0) == {"is_paused": False}
        assert proven(case) == [COMPARED] * 2
    finally:
        trainer.kill()
        trainer.wait()
    change(case.model)
    case.push()
    assert proven(case) == [COMPARED] * 2


def test_bfloat16_changes_are_exact_in_a_server_started_as_by_users(tmp_path):
    model, tokenizer = load_nano()
    server = Running(Fresh, tmp_path, free_port(), "--weight-transport", "gloo", "--dtype", "bfloat16")
    try:
        case = Case(engine_for([server.url], model, tokenizer, dtype=torch.bfloat16), model, tokenizer)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
        given = []
        for _ in range(3):
            before = case.engine.bytes_given
            case.push()
            given.append(case.engine.bytes_given - before)
            # Without bfloat16 instructions nothing is packed.
            assert proven(case, dtype=torch.bfloat16) in ([COMPARED], [COMPARED - BIASES], [TENSORS])
            ids = torch.randint(5, 200, (2, 32))
            model(ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        assert max(given[1:]) < 0.5 * given[0]
        case.engine.close()
    finally:
        server.kill()


FLAGS = [
    *("grpo", "--engine", "vllm-server", "--weight-transport", "gloo", "--model", "nano", "--device", "cpu"),
    *("--threads", "1", "--quiet", "--prompts-per-step", "4", "--group-size", "4", "--steps", "3"),
    *("--eval-problems", "4", "--eval-sample-problems", "2", "--eval-samples", "2", "--no-report"),
    *("--score-workers", "0"),
]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_runs_of_several_ranks_send_to_both_servers(ranks, case, gloo_servers, few_problems, tmp_path, forks):
    words = [*FLAGS, *(part for server in gloo_servers for part in ("--engine-url", server.url))]
    words += ["--source", str(few_problems), "--out", str(tmp_path / "run")]
    if ranks == 1:
        code, out, err = forks.run(words)
    else:
        launch = ["--standalone", "--nproc-per-node", ranks, "-m", "r1lite", *words, "--shard", "full"]
        code, out, err = forks.run(launch, code="from torch.distributed.run import main; main()")
    assert code == 0, out[-2000:] + err[-2000:]
    steps = [json.loads(line) for line in Path(tmp_path, "run/metrics.jsonl").read_text().splitlines()]
    assert [step["proven_weights"] for step in steps] == [COMPARED, None, None]
    assert max(step["canary_logprob_max"] for step in steps) < 1e-3
    case.engine.servers[0]._label = case.engine.servers[1]._label = None
    case.push()


def test_a_server_that_is_killed_in_the_middle_is_done_without(case, gloo_servers, tmp_path, forks, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.weight_memory.BUCKET_BYTES", 1 << 19)
    case.push()
    sent, payloads = threading.Event(), GlooSender._payloads

    def slowly(self, about, own, going):
        if self._url == gloo_servers[0].url and not sent.is_set():
            half = [size if i < 20 else 0 for i, size in enumerate(about["sizes"])]
            payloads(self, {**about, "sizes": half}, own, going)
            sent.set()
            gloo_servers[0].kill()
        payloads(self, about, own, going)

    monkeypatch.setattr(GlooSender, "_payloads", slowly)
    for server in case.engine.servers:
        server.sender.close()  # so that all weights go
    began = time.monotonic()
    case.push()
    assert sent.is_set()
    assert time.monotonic() - began < 30
    assert [server.alive for server in case.engine.servers] == [False, True]
    assert proven(case) == [COMPARED]
    gloo_servers[0] = Running(forks, tmp_path, gloo_servers[0].port, "--weight-transport", "gloo")
    deadline = time.monotonic() + 120
    while not case.engine.servers[0].alive and time.monotonic() < deadline:
        case.generate(Sampling(1.0, 4))
        time.sleep(0.5)
    assert proven(case) == [COMPARED] * 2
