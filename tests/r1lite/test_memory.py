"""The estimate counts what is there, and says when it may not fit."""

import dataclasses
import json
import sys

import pytest
import torch
from conftest import make_tiny_model

from r1lite.cli import main
from r1lite.config import GRPOConfig, engines
from r1lite.config.engines import EngineSpec
from r1lite.model.lora import add_adapter
from r1lite.model.policy import Policy
from r1lite.rl import tiles
from r1lite.rollout.build import start_transformers
from r1lite.training import memory


def estimated(model, **settings):
    config = GRPOConfig(max_prompt_tokens=20, max_completion_tokens=40, **settings)
    return memory.estimate(config, Policy(model, pad_id=0), [], [], samples_here=True)


def test_weights_moments_and_activations():
    model = make_tiny_model()
    size = 4 * sum(p.numel() for p in model.parameters())
    found = estimated(model)
    assert (found.weights, found.gradients, found.optimizer) == (size, size, 2 * size)
    assert found.embedding == 4 * 48 * 32
    half = estimated(make_tiny_model(), micro_batch_tokens=1000)
    whole = estimated(make_tiny_model(), micro_batch_tokens=2000)
    assert whole.activations == pytest.approx(2 * half.activations, abs=1)
    deeper = estimated(make_tiny_model(num_hidden_layers=4), micro_batch_tokens=1000)
    assert 1.5 * half.activations < deeper.activations < 2 * half.activations


def test_a_gpu_needs_larger_tiles_and_more_for_the_backward_pass():
    model = make_tiny_model(vocab_size=4096)
    few, many = 16, 8192
    assert memory.logits_of(model, few, whole=False, cuda=True) == memory.logits_of(model, few, whole=False, cuda=False)
    here, there = (memory.logits_of(model, many, whole=False, cuda=cuda) for cuda in (False, True))
    rows, columns = tiles._GPU_TILE
    assert here < 4 * rows * columns < there
    assert memory.with_backward(600, cuda=False) == 600
    assert memory.with_backward(600, cuda=True) == 700


def test_sampling_in_half_precision_holds_copies_of_trained_weights():
    config, model = GRPOConfig(max_completion_tokens=40), make_tiny_model()
    linear = sum(m.weight.numel() for m in model.modules() if isinstance(m, torch.nn.Linear))
    trained = memory.sampler_of(config, memory.Layout(), model, 20, torch.bfloat16)
    frozen = memory.sampler_of(config, memory.Layout(), model.requires_grad_(False), 20, torch.bfloat16)
    assert trained - frozen == 2 * linear


def test_an_adapter_needs_less():
    pytest.importorskip("peft")
    model = make_tiny_model()
    add_adapter(model, GRPOConfig(lora_rank=2))
    found = estimated(model)
    assert found.gradients < found.weights / 4
    assert found.embedding == 0


def test_what_does_not_fit_is_said():
    found = estimated(make_tiny_model())
    assert memory.warning(found, found.peak) is None
    assert "--micro-batch-tokens" in memory.warning(found, found.peak - 1)
    many = estimated(make_tiny_model(), rollout_rows=100_000, prompts_per_step=20_000)
    assert "--rollout-rows" in memory.warning(many, many.peak - 1) or many.sampler < many.activations
    assert memory.available(torch.device("cpu")) > 0
    assert memory.peak(torch.device("cpu")) > found.weights
    assert "estimated at most" in memory.compared(found, memory.peak(torch.device("cpu")))


def test_memory_that_torch_keeps_on_a_gpu_is_available(monkeypatch):
    """After an evaluation with this process's model, most of it."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10 << 30, 80 << 30))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 4 << 30)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 69 << 30)
    assert memory.available(torch.device("cuda:1")) == 79 << 30


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are forgotten on Linux only")
def test_the_peak_of_an_earlier_run_in_this_process_is_forgotten():
    large = 400 << 20
    torch.ones(large // 4)
    before = memory.peak_rss()
    memory.forget_peak()
    assert memory.peak_rss() < before - large // 2


def start_with_memory_of_its_own(request):
    return dataclasses.replace(start_transformers(request), held=100 << 20)


def test_what_an_engine_holds_is_not_counted_as_the_trainers(monkeypatch, tmp_path, capsys):
    spec = EngineSpec(start=f"{__name__}:start_with_memory_of_its_own", shares_weights=True)
    monkeypatch.setitem(engines.BUILTIN, "transformers", spec)
    monkeypatch.setattr(memory, "peak", lambda device: 900 << 20)
    flags = ["--model", "nano", "--device", "cpu", "--threads", "1", "--steps", "1", "--prompts-per-step", "2"]
    flags += ["--group-size", "2", "--max-completion-tokens", "16", "--eval-problems", "2", "--no-report"]
    flags += ["--eval-sample-problems", "2", "--eval-samples", "2", "--out", str(tmp_path / "run")]
    assert main(["grpo", "--task", "gsm8k", *flags]) == 0
    assert "; beside it the engine holds 100 MiB" in capsys.readouterr().out
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["memory"]["peak"] == 800
