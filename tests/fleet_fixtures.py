"""Fixtures of fleets of simulated servers: the servers and the engine in front of them."""

import threading
import time

import pytest
import torch
from conftest import make_tiny_tokenizer
from fleet_cases import weights
from fleet_for_tests import FakeVLLM, checksum

from r1lite.rollout.vllm_server import vllm_fleet
from r1lite.rollout.weight_files import WeightFiles


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
