"""Weights over a connection, to scripted servers: whole updates and changes, refusals, and every end in the middle."""

import random
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from types import ModuleType, SimpleNamespace

import pytest
import torch
from conftest import make_tiny_tokenizer
from fleet_for_tests import LIGHT, sampled
from torch.distributed import TCPStore
from wire_for_tests import FakeGloo, checksum_of

from r1lite.config import GRPOConfig
from r1lite.errors import UserError
from r1lite.rollout import EngineError, Sampling
from r1lite.rollout.client import Client, Refused, Unreachable
from r1lite.rollout.senders import ExternalSender, GlooSender
from r1lite.rollout.vllm_server import vllm_fleet
from r1lite.rollout.weight_memory import WeightMemory
from r1lite.rollout.wire import Group, Staging, WireError, buckets

PROMPTS = [[5, 6 + p] for p in range(6)]
SEEDS = [[10 * p, 10 * p + 1] for p in range(6)]
SHAPES = {"embed.weight": (40, 25), "layer.weight": (25, 25), "norm.weight": (25,)}


def weights(version, shapes=SHAPES):
    """Of one version to the next a fiftieth of the values changes; those of the norm never do."""
    made = {name: torch.arange(torch.Size(shape).numel()).float().reshape(shape) for name, shape in shapes.items()}
    for name, weight in made.items():
        if name != "norm.weight":
            for passed in range(version):
                weight.view(-1)[passed::50] += 0.5
    return made


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch):
    monkeypatch.setattr("r1lite.rollout.servers._LOOK_EVERY_S", 0.05)
    monkeypatch.setattr("r1lite.rollout.servers._POLL_S", 0.02)
    monkeypatch.setattr("r1lite.rollout.weight_memory.BUCKET_BYTES", 1000)


@pytest.fixture
def fakes():
    made = []

    def fake(**settings):
        made.append(FakeGloo(**{"shapes": SHAPES, **settings}))
        return made[-1]

    yield fake
    for server in made:
        server.stop()


@pytest.fixture
def engine_of(tmp_path):
    made = []

    def engine(*servers, **settings):
        settings = {"timeout_s": 5.0, "start_wait_s": 5.0, "context": 100, "vocabulary": 48, **settings}
        settings = {"dtype": torch.float32, "transport": "gloo", "weights_dir": str(tmp_path), **settings}
        made.append(vllm_fleet([server.url for server in servers], make_tiny_tokenizer(), [1], **settings))
        return made[-1]

    yield engine
    for found in made:
        started = time.monotonic()
        found.close()
        assert time.monotonic() - started < 3
    assert not list(tmp_path.iterdir())


def check(engine, version):
    """Samples, and compares with what an undisturbed server gives."""
    groups = engine.generate(PROMPTS, SEEDS, Sampling(1.0, 6))
    expected = checksum_of(weights(version))
    for prompt, row, group in zip(PROMPTS, SEEDS, groups, strict=True):
        assert [list(one.token_ids) for one in group] == [
            sampled(expected, prompt, seed, tokens=6, ends=[1])[0] for seed in row
        ]
        assert {one.policy_version for one in group} == {version}


def push(engine, version):
    engine.load_weights(weights(version).items(), version=version)


def test_changes_alone_go_over_and_both_servers_have_all(fakes, engine_of):
    servers = [fakes(), fakes()]
    engine = engine_of(*servers)
    given = []
    for version in range(4):
        before = engine.bytes_given
        push(engine, version)
        given.append(engine.bytes_given - before)
        check(engine, version)
        assert [checksum_of(server.staging.tensors) for server in servers] == [checksum_of(weights(version))] * 2
    whole = 2 * sum(weight.nbytes for weight in weights(0).values())
    assert given[0] == whole
    # 20 and 13 values of 4 bytes, with a bit for each value or four bytes for each index, whichever is less
    assert given[1:] == [2 * (min(125, 80) + 80 + min(79, 4 * count) + 4 * count) for count in (13, 13, 13)]
    assert [update["base"] is None for update in servers[0].updates] == [True, False, False, False]
    assert servers[0].updates[1]["forms"] == ["indices", "indices", "same"]


def test_without_delta_each_update_is_whole(fakes, engine_of):
    server = fakes()
    engine = engine_of(server, delta=False)
    for version in range(2):
        push(engine, version)
        check(engine, version)
    assert [update["forms"] for update in server.updates] == [["whole"] * 3] * 2


def test_bfloat16_goes_in_bfloat16(fakes, engine_of):
    server = fakes(dtype="bfloat16")
    engine = engine_of(server, dtype=torch.bfloat16)
    for version in range(3):
        push(engine, version)
        held = server.staging.tensors
        assert all(torch.equal(held[name], weight.bfloat16()) for name, weight in weights(version).items())
    assert engine.bytes_given < 2 * sum(weight.nbytes // 2 for weight in weights(0).values())


@pytest.mark.parametrize(
    ("given", "settings", "message"),
    [
        (
            {**weights(1), "norm.weight": torch.ones(24)},
            {},
            r"norm.weight \(24,\) of float32, where the model has \(25,\)",
        ),
        ({name: w for name, w in weights(1).items() if "norm" not in name}, {}, "norm.weight is missing"),
        ({**weights(1), "more": torch.ones(2)}, {}, "more .* where the model has none"),
        (weights(1), {"dtype": "bfloat16"}, "of float32, where the model has .* of bfloat16"),
    ],
)
def test_an_update_that_the_model_can_not_take_is_refused_before_it_goes_over(
    given, settings, message, fakes, engine_of
):
    server = fakes(**settings)
    engine = engine_of(server)
    if not settings:
        push(engine, 0)
    label, sent = server.label, engine.bytes_given
    with pytest.raises(EngineError, match=message):
        engine.load_weights(given.items(), version=1)
    assert (server.label, engine.bytes_given, server.paused) == (label, sent, False)


def test_a_server_of_another_transport_is_named(fakes, engine_of):
    with pytest.raises(EngineError, match=r"not configured.*--weight-transport"):
        push(engine_of(fakes(configured=False)), 0)


def test_a_server_that_was_started_anew_gets_all_weights(fakes, engine_of):
    server = fakes(plan=lambda path: "restart" if path == "v1/completions" and not restarted.is_set() else None)
    restarted, engine = threading.Event(), None
    restarted.set()
    engine = engine_of(server)
    push(engine, 0)
    server.die()
    deadline = time.monotonic() + 5
    while server.starts < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    push(engine, 1)
    check(engine, 1)
    assert server.updates[-1]["base"] is None


@pytest.mark.parametrize("path", ["init_weight_transfer_engine", "start_weight_update", "finish_weight_update"])
def test_a_server_that_dies_at_a_call_is_done_without_and_comes_back(path, fakes, engine_of):
    waiting = ["die"]
    servers = [fakes(plan=lambda asked: waiting.pop() if asked == path and waiting else None, down_s=0.5), fakes()]
    engine = engine_of(*servers)
    for version in range(2):
        push(engine, version)
        check(engine, version)
    assert not waiting
    deadline = time.monotonic() + 5
    while not all(server.alive for server in engine.servers) and time.monotonic() < deadline:
        check(engine, 1)
        time.sleep(0.05)
    assert [checksum_of(server.staging.tensors) for server in servers] == [checksum_of(weights(1))] * 2


def dies_in(bucket, update):
    """What kills a server before it reads that bucket of that update."""

    def during(server, number):
        if number == bucket and len(server.updates) == update + 1:
            server.die(returns=False)

    return during


@pytest.mark.parametrize(("bucket", "update"), [(0, 0), (2, 0), (0, 1)])
def test_a_server_that_dies_between_two_buckets_is_done_without(bucket, update, fakes, engine_of):
    servers = [fakes(during=dies_in(bucket, update)), fakes()]
    engine = engine_of(*servers)
    for version in range(3):
        push(engine, version)
        check(engine, version)
    assert [server.alive for server in engine.servers] == [False, True]


def test_a_connection_that_is_cut_between_two_buckets_is_made_anew(fakes, engine_of):
    """Both ends live on: the server keeps what it has, and gets all of it once more."""

    def cut(server, number):
        if number == 1 and len(server.updates) == 1:
            server.group.close()

    server = fakes(during=cut)
    engine = engine_of(server)
    for version in range(3):
        push(engine, version)
        check(engine, version)
    assert [one.alive for one in engine.servers] == [True]
    assert len(server.updates) == 4


def test_where_it_was_the_only_one_the_run_ends_by_one_error_in_time(fakes, engine_of):
    engine = engine_of(fakes(during=dies_in(1, 0)), timeout_s=1.0)
    started = time.monotonic()
    with pytest.raises(EngineError, match="no vLLM server has answered for 1 s"):
        push(engine, 0)
    assert time.monotonic() - started < 6


def test_a_server_that_stops_reading_is_left_within_the_deadline(fakes, engine_of, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.senders.COLLECTIVE_S", 0.3)
    shapes = {"w": (1 << 24,)}  # 64 MiB: more than a connection holds
    over = threading.Event()
    engine = engine_of(fakes(during=lambda server, bucket: over.wait(8) and None, shapes=shapes), timeout_s=1.0)
    started = time.monotonic()
    try:
        engine.load_weights([("w", torch.zeros(shapes["w"]))], version=0)
        with pytest.raises(EngineError, match="was given up after 3 tries"):
            engine.generate(PROMPTS[:1], SEEDS[:1], Sampling(1.0, 4))
    finally:
        over.set()
    assert time.monotonic() - started < 20


def test_a_trainer_that_dies_leaves_the_former_weights_and_no_open_update(fakes, engine_of):
    server = fakes()
    first = engine_of(server)
    push(first, 0)
    label, weights_held = server.label, server.weights
    sender, memory = GlooSender(Client(server.url), timeout_s=5.0), WeightMemory(torch.float32)
    group = sender._connect()
    about, _ = memory.keep(weights(1).items(), "r1lite-x").update(None)
    sender._calls.start_weight_update()
    asked = threading.Thread(target=lambda: _quietly(lambda: sender._calls.update_weights(about)))
    asked.start()
    group.broadcast(torch.zeros(next(_sizes(about)), dtype=torch.uint8))
    group.close()  # as the kernel closes a killed process's connections
    asked.join(10)
    assert not asked.is_alive()
    assert (server.label, server.weights, server.staging.ready, server.paused) == (label, weights_held, False, False)
    sender._calls.start_weight_update()  # and one that died between two calls
    push(first, 2)
    check(first, 2)


def _sizes(about):
    for places in buckets(about["sizes"], 1000):
        yield sum(about["sizes"][i] for i in places)


def _quietly(work):
    try:
        work()
    except Exception:
        return


def test_bytes_that_changed_on_the_way_are_noticed():
    memory = WeightMemory(torch.float32)
    about, payloads = memory.keep(weights(0).items(), "a").update(None)
    staging = Staging(lambda: SHAPES, "float32")

    def read(bucket, flipped=True):
        bucket.copy_(torch.cat([payloads[i] for i in next(waiting)]))
        bucket[3] ^= flipped

    waiting = iter(list(buckets(about["sizes"], 1000)))
    with pytest.raises(ValueError, match=r"embed.weight arrived with different bytes"):
        staging.receive(about, read)
    assert not staging.ready
    waiting = iter(list(buckets(about["sizes"], 1000)))
    staging.receive(about, lambda bucket: read(bucket, False))
    assert staging.ready
    about["base"] = "b"
    with pytest.raises(ValueError, match="they are changes to b, but a is here"):
        staging.check(about)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_the_completions_are_the_same(seed, fakes, engine_of, monkeypatch):
    monkeypatch.setattr("r1lite.rollout.server._BUSY_S", 2.0)
    draw, turn, on, budget = random.Random(seed), threading.Lock(), [False], [30]

    def plan(path):
        with turn:
            if not on[0] or budget[0] <= 0 or draw.random() > 0.12:
                return None
            budget[0] -= 1
            return draw.choice([*LIGHT, "restart", "die", "abort"])

    servers = [fakes(delay=0.01, plan=plan) for _ in range(3)]
    engine = engine_of(*servers, timeout_s=30.0)
    on[0] = True
    for version in range(5):
        push(engine, version)
        check(engine, version)
    assert budget[0] < 30


def test_a_group_that_nobody_joins_ends_in_time():
    started = time.monotonic()
    with pytest.raises(WireError):
        Group("127.0.0.1", 1, 1, 2, timeout_s=0.5)
    assert time.monotonic() - started < 10


def test_a_group_whose_other_side_dies_while_it_connects_can_be_left():
    class LeftError(Exception):
        pass

    def going():
        if time.monotonic() - started > 0.5:
            raise LeftError

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    port = listening.getsockname()[1]

    def join_and_die():
        TCPStore("127.0.0.1", port, 2, is_master=False, timeout=timedelta(seconds=6)).set("here/1", "")

    threading.Thread(target=join_and_die).start()
    started = time.monotonic()
    with pytest.raises(LeftError):
        Group("127.0.0.1", port, 0, 2, timeout_s=6.0, listening=listening, going=going)
    assert time.monotonic() - started < 4


def test_older_versions_and_gpus_that_are_not_there_are_refused(fakes, engine_of):
    with pytest.raises(UserError, match=r"vLLM 0.31.0 takes weights by files only"):
        engine_of(fakes(version="0.31.0"))
    with pytest.raises((UserError, EngineError), match=r"it is for GPUs|needs vLLM beside the trainer"):
        engine_of(fakes(), transport="nccl")
    for other in ({"engine": "sglang-server", "engine_url": ("http://127.0.0.1:1",)}, {"engine": "auto"}):
        with pytest.raises(ValueError, match="--weight-transport gloo is for --engine vllm-server"):
            GRPOConfig(**other, weight_transport="gloo")


def test_names_that_the_canary_sends_again_are_all_of_them(fakes, engine_of):
    assert not engine_of(fakes()).takes_parts
    assert engine_of(fakes(), transport="file").takes_parts


@pytest.fixture
def vllms_engines(monkeypatch):
    """Modules in place of vLLM's trainer engines."""
    for name in ("vllm", "vllm.distributed", "vllm.distributed.weight_transfer"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name in ("base", "clients", "factory", "ipc_engine", "nccl_engine"):
        module = ModuleType(f"vllm.distributed.weight_transfer.{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(sys.modules["vllm.distributed.weight_transfer"], name, module, raising=False)
    sys.modules["vllm.distributed.weight_transfer.clients"]._json_safe_update_info = lambda about: about


@pytest.mark.parametrize(("device", "expected"), [("cuda:1", 1), ("cuda", 3), ("cpu", -1)])
def test_vllms_engines_find_the_trainers_gpu(device, expected, vllms_engines, monkeypatch):
    """They take the current GPU, and in a new thread this is the first one."""
    current = threading.local()

    @contextmanager
    def on(number):
        current.gpu = number
        yield

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    sender = ExternalSender(Client("http://127.0.0.1:1"), timeout_s=5.0, backend="nccl", device=device)
    monkeypatch.setattr(torch.cuda, "device", on)
    seen = []
    engine = SimpleNamespace(send_weights=lambda: seen.append(current.gpu))
    monkeypatch.setattr(sender, "_connect", lambda calls: seen.append(current.gpu) or engine)
    sender.send(WeightMemory(torch.float32, delta=False).keep([], "r1lite-x-0"))
    assert seen == [expected, expected]


def test_vllms_engine_waits_in_nccl_only_for_weights_that_the_server_takes(vllms_engines, monkeypatch):
    """It calls `start_weight_update`, and then asks in a thread of its own while it sends."""
    sender = ExternalSender(Client("http://127.0.0.1:1"), timeout_s=5.0, backend="nccl", device="cpu")
    calls, refuses = [], [False, True]

    def post(path, body=None):
        calls.append(path)
        if path == "update_weights":
            assert body["update_info"] == {**about, "check_only": True}
            if refuses.pop(0):
                raise Refused(500, "weights refused: a is missing")

    def send_weights():
        sender._calls.start_weight_update()
        calls.append("NCCL")

    monkeypatch.setattr(sender._calls, "_post", post)
    monkeypatch.setattr(sender, "_connect", lambda _: SimpleNamespace(send_weights=send_weights))
    about = {"names": ["a"], "dtype_names": ["float32"], "shapes": [[3, 4]]}
    snapshot = WeightMemory(torch.float32, delta=False).keep([("a", torch.ones(3, 4))], "r1lite-x-0")
    sender.send(snapshot)
    assert calls == ["start_weight_update", "update_weights", "NCCL"]
    calls.clear()
    with pytest.raises(Refused, match="a is missing"):
        sender.send(snapshot)
    assert calls == ["start_weight_update", "update_weights"]


def test_a_transfer_that_is_given_up_is_aborted_and_tells_the_server_nothing(vllms_engines, monkeypatch):
    """Without the abort it would hold up every later one: vLLM's engines share their streams."""
    sender = ExternalSender(Client("http://127.0.0.1:1"), timeout_s=0.2, backend="nccl", device="cpu")
    aborted, over, made = threading.Event(), threading.Event(), []

    class Engine:
        def __init__(self, calls):
            self.calls = calls
            made.append(self)

        def send_weights(self):
            if len(made) > 1:
                return
            aborted.wait(10)
            with pytest.raises(Unreachable, match="the update was abandoned"):
                self.calls.finish_weight_update()
            over.set()

        def shutdown(self):
            aborted.set()

    monkeypatch.setattr(sender, "_connect", Engine)
    snapshot = WeightMemory(torch.float32, delta=False).keep([], "r1lite-x-0")
    with pytest.raises(Unreachable, match=r"not finished after 0\.2 s"):
        sender.send(snapshot)
    assert over.wait(10)
    sender.send(snapshot)
    assert sender._engine is made[1]


def test_a_transfer_that_never_ends_does_not_keep_the_process():
    program = """
import threading, types
from r1lite.rollout import senders
sender = senders.ExternalSender.__new__(senders.ExternalSender)
sender._calls = senders._CheckedCalls(types.SimpleNamespace(url="http://x"), timeout_s=1.0)
sender._timeout_s, sender._gpu, sender._engine = 0.1, -1, types.SimpleNamespace(send_weights=threading.Event().wait)
try:
    sender.send(types.SimpleNamespace(label="", tensors={}))
except senders.Unreachable as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "http://x: update not finished after 0.1 s", done.stderr
