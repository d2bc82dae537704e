"""A base in 4 bits below an adapter: engines and checkpoints get what it computes with, and it resumes exactly."""

import sys
from pathlib import Path

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer

from r1lite.cli import main
from r1lite.config import GRPOConfig
from r1lite.errors import UserError
from r1lite.grpo.learner import PolicyLearner
from r1lite.model.batch import Row, micro_batches
from r1lite.model.lora import adapter_of, adapter_state, add_adapter, has_adapter, merged_weights
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.model.quantized import parameter_count, quantization, quantized_layers, scale_bytes
from r1lite.rollout import EngineError
from r1lite.rollout.trust import TrustedEngine
from r1lite.run.bad_batches import BadBatches
from r1lite.training.loading import load_model

pytest.importorskip("peft")
pytest.importorskip("bitsandbytes")
ROOT = Path(__file__).resolve().parents[2]
ROWS = [Row((5, 6, 7), (8, 9, 10, 11)), Row((5, 6, 7), (12, 13)), Row((20, 21), (22, 23, 24))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("base")
    make_tiny_model(hidden_size=64, intermediate_size=128).save_pretrained(place)
    make_tiny_tokenizer().save_pretrained(place)
    return place


def loaded(folder, **settings):
    config = GRPOConfig(
        model=str(folder), device="cpu", dtype="float32", lora_rank=4, base_quantization="nf4", **settings
    )
    model, _ = load_model(config)
    return model.eval()


def adapted(folder):
    model = loaded(folder)
    add_adapter(model, GRPOConfig(lora_rank=4))
    generator = torch.Generator().manual_seed(3)
    for name, value in adapter_state(model).items():
        if "lora_B" in name:
            value.copy_(torch.randn(value.shape, generator=generator) * 0.05)
    return model


def logprobs(model):
    (batch,) = micro_batches(ROWS, 10_000, 0, "cpu")
    with torch.no_grad():
        return Policy(model, pad_id=0).logprobs(batch)


def test_linear_layers_but_the_head_are_packed_and_counted(folder):
    plain = make_tiny_model(hidden_size=64, intermediate_size=128)
    model = loaded(folder)
    packed = quantized_layers(model)
    assert len(packed) == 2 * 7
    assert parameter_count(model) == parameter_count(plain)
    wide = sum(p.numel() * p.element_size() for p in plain.model.layers.parameters())
    held = sum(p.numel() * p.element_size() + scale_bytes(p) for p in model.model.layers.parameters())
    assert held < wide / 4
    assert scale_bytes(plain.lm_head.weight) == 0
    assert (logprobs(model) - logprobs(plain)).abs().max() > 0.01, "nothing was quantized"


def test_engines_and_checkpoints_get_what_it_computes_with(folder):
    """So the canary's tolerance is that of any model: rounding alone is left."""
    model = adapted(folder)
    without, merged = (make_tiny_model(hidden_size=64, intermediate_size=128) for _ in range(2))
    without.load_state_dict(dict(adapter_of(model).base()))
    merged.load_state_dict(dict(merged_weights(model)))
    assert torch.allclose(logprobs(without), logprobs_before(model), atol=1e-4)
    assert torch.allclose(logprobs(merged), logprobs(model), atol=1e-4)
    assert not torch.allclose(logprobs(merged), logprobs(without), atol=1e-2)


def logprobs_before(model):
    (batch,) = micro_batches(ROWS, 10_000, 0, "cpu")
    with torch.no_grad():
        return Policy(model, pad_id=0).before_adapter().logprobs(batch)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_transformers_is_asked_for(dtype):
    asked = quantization("nf4", dtype)
    assert (asked.load_in_4bit, asked.bnb_4bit_quant_type, asked.bnb_4bit_use_double_quant) == (True, "nf4", True)
    assert asked.bnb_4bit_compute_dtype == dtype


def test_what_is_missing_is_said(folder, monkeypatch):
    with pytest.raises(ValueError, match="--base-quantization nf4 needs --lora-rank"):
        GRPOConfig(base_quantization="nf4")
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(UserError, match=r"--base-quantization nf4 needs bitsandbytes .* pip install 'r1lite\[qlora\]'"):
        loaded(folder)


class Whole:
    """An engine that takes complete weights only."""

    shares_weights, runs_aside = False, True

    def load_weights(self, weights, *, version):
        pytest.fail("they were merged")


def test_nothing_is_merged_for_an_engine(folder):
    model = adapted(folder)
    engine = TrustedEngine(
        *(Whole(), None, lambda: merged_weights(model)), pad_id=0, adapter=lambda: adapter_of(model), say=pytest.fail
    )
    with pytest.raises(EngineError, match=r"takes complete weights only\. Leave --base-quantization off"):
        engine.push()


def test_a_moving_reference_follows_the_adapter(folder):
    policy = Policy(adapted(folder), pad_id=0)
    reference, config = policy.frozen_copy(), GRPOConfig(kl_coef=0.1, reference_decay=0.5)
    optimizer = Optimizer.configured(policy.model, config)
    learner = PolicyLearner(config, policy, optimizer, reference, bad=BadBatches(Path("unused")))
    for value in adapter_state(policy.model).values():
        value.add_(1)
    learner._move_reference(0)
    for name, value in adapter_state(reference.model).items():
        assert torch.allclose(value, adapter_state(policy.model)[name] - 0.5, atol=1e-6)


def test_a_run_resumes_exactly_and_its_model_opens_whole(folder, sums_path, tmp_path, monkeypatch):
    from transformers import AutoModelForCausalLM

    monkeypatch.syspath_prepend(ROOT / "tests")
    flags = [
        *("grpo", "--model", str(folder), "--source", str(sums_path), "--template", "short", "--quiet", "--lr", "1e-2"),
        *("--max-completion-tokens", "8", "--prompts-per-step", "2", "--group-size", "4", "--eval-problems", "2"),
        *("--eval-sample-problems", "1", "--eval-samples", "2", "--reward", "reward_for_tests:digits", "--threads"),
        *("1", "--save-every", "1", "--lora-rank", "4", "--base-quantization", "nf4", "--kl-coef", "0.01"),
    ]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main([*flags, "--steps", "3", "--out", str(whole)]) == 0
    assert main([*flags, "--steps", "2", "--out", str(parts)]) == 0
    assert main(["grpo", "--resume", "--trust", "--out", str(parts), "--steps", "3", "--quiet"]) == 0
    for name in ("rollouts/step-000003.jsonl.gz", "checkpoints/step-000003/model.safetensors"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes(), name
    opened = AutoModelForCausalLM.from_pretrained(whole / "checkpoints" / "step-000003", dtype=torch.float32)
    assert not quantized_layers(opened)
    assert not has_adapter(opened)
    assert getattr(opened.config, "quantization_config", None) is None
    base = make_tiny_model(hidden_size=64, intermediate_size=128)
    base.load_state_dict(dict(adapter_of(adapted(folder)).base()))
    assert 1e-3 < (logprobs(opened) - logprobs(base)).abs().max() < 5  # learnt, from the weights that were dequantized
