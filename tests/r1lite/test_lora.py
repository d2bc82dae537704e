"""Adapters: little learns, the reference is the model without them, and a run with them continues exactly."""

import json
import signal
import time
from pathlib import Path

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer

from r1lite.cli import main
from r1lite.config import GRPOConfig
from r1lite.errors import UserError
from r1lite.model import vocabulary_size
from r1lite.model.batch import Row, micro_batches
from r1lite.model.lora import adapter_state, add_adapter, has_adapter, merged_weights
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.rl import logprobs, tiles
from r1lite.run.checkpoint import latest, save

pytest.importorskip("peft")
ROOT = Path(__file__).resolve().parents[2]
STEPS = 6


def adapted(rank=4, **changes):
    """A tiny model whose adapter says something."""
    model = make_tiny_model(**changes)
    add_adapter(model, GRPOConfig(lora_rank=rank))
    generator = torch.Generator().manual_seed(3)
    for name, value in adapter_state(model).items():
        if "lora_B" in name:
            value.copy_(torch.randn(value.shape, generator=generator) * 0.05)
    return model


def rows():
    generator = torch.Generator().manual_seed(1)
    prompts = [(5, 6, 7), (8, 9)]
    return [
        Row(prompts[n % 2], tuple(torch.randint(2, 48, (3 + 2 * n,), generator=generator).tolist())) for n in range(6)
    ]


def test_the_reference_is_the_model_without_its_adapter():
    (batch,) = micro_batches(rows(), 10_000, 0, "cpu")
    plain = Policy(make_tiny_model(), pad_id=0)
    policy = Policy(adapted(), pad_id=0)
    reference = policy.before_adapter()
    assert reference.model is policy.model
    for first, second in ((plain, reference), (plain, reference)):
        assert torch.equal(first.logprobs(batch), second.logprobs(batch))
        assert not torch.allclose(first.logprobs(batch), policy.logprobs(batch), atol=1e-2)
    fresh = make_tiny_model()
    add_adapter(fresh, GRPOConfig(lora_rank=4))
    assert torch.equal(Policy(fresh, pad_id=0).logprobs(batch), plain.logprobs(batch))


def test_merged_weights_say_what_the_adapted_model_says():
    (batch,) = micro_batches(rows(), 10_000, 0, "cpu")
    model = adapted()
    plain = make_tiny_model()
    merged = dict(merged_weights(model))
    assert set(merged) == set(plain.state_dict())
    plain.load_state_dict(merged)
    torch.testing.assert_close(
        Policy(plain, pad_id=0).logprobs(batch), Policy(model, pad_id=0).logprobs(batch), atol=1e-5, rtol=1e-5
    )
    assert dict(Policy(model, pad_id=0).named_weights()).keys() == merged.keys()


@pytest.mark.parametrize("checkpointing", [False, True])
def test_any_micro_batches_in_tiles_have_one_gradient(checkpointing, monkeypatch):
    """And only the adapter learns."""
    monkeypatch.setattr(logprobs, "_TILED_FROM_NARROW", 0)
    monkeypatch.setattr(tiles, "_CPU_TILE", (5, 7))
    found = []
    for budget in (1, 40, 10_000):
        policy = Policy(adapted(), pad_id=0, gradient_checkpointing=checkpointing)
        optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)
        assert sum(p.numel() for p in optimizer.parameters) == sum(
            v.numel() for v in adapter_state(policy.model).values()
        )
        for batch in micro_batches(rows(), budget, 0, "cpu"):
            torch.where(batch.loss_mask, policy.logprobs(batch), 0.0).sum().backward()
        assert all((p.grad is not None) == p.requires_grad for p in policy.model.parameters())
        found.append(torch.cat([p.grad.flatten() for p in optimizer.parameters]))
    for other in found[1:]:
        assert float((other - found[0]).abs().max()) <= 1e-5 * float(found[0].abs().max())


def test_what_cannot_be_adapted_is_said():
    with pytest.raises(UserError, match="--lora-targets nothing_like_it"):
        add_adapter(make_tiny_model(), GRPOConfig(lora_rank=2, lora_targets="nothing_like_it"))
    model = make_tiny_model()
    assert "rank 2" in add_adapter(model, GRPOConfig(lora_rank=2, lora_targets="q_proj, v_proj"))
    assert {name.split(".")[4] for name in adapter_state(model)} == {"q_proj", "v_proj"}
    assert has_adapter(model)
    assert not has_adapter(make_tiny_model())


def test_adapted_embeddings_are_counted():
    model = make_tiny_model(tie_word_embeddings=False)
    add_adapter(model, GRPOConfig(lora_rank=2, lora_targets="embed_tokens"))
    assert vocabulary_size(model) == 48
    assert Policy(model, pad_id=0).shares_prompts == Policy(make_tiny_model(), pad_id=0).shares_prompts


@pytest.mark.parametrize("targets", ["all-linear", "q_proj,down_proj", "embed_tokens,v_proj"])
def test_peft_loads_the_adapter_of_a_checkpoint(targets, tmp_path):
    from peft import PeftModel

    shape = {"tie_word_embeddings": False}  # adapters of tied embeddings make peft warn
    model = make_tiny_model(**shape)
    add_adapter(model, GRPOConfig(lora_rank=4, lora_alpha=6, lora_targets=targets))
    generator = torch.Generator().manual_seed(3)
    for name, value in adapter_state(model).items():
        if "lora_B" in name or "embedding_A" in name:
            value.copy_(torch.randn(value.shape, generator=generator) * 0.05)
    place = save(tmp_path, 1, model=model, tokenizer=make_tiny_tokenizer(), state={}, keep=1, base="me/model")
    (batch,) = micro_batches(rows(), 10_000, 0, "cpu")
    loaded = PeftModel.from_pretrained(make_tiny_model(**shape), place / "adapter")
    assert loaded.peft_config["default"].base_model_name_or_path == "me/model"
    said = Policy(loaded.base_model.model, pad_id=0).logprobs(batch)
    torch.testing.assert_close(said, Policy(model, pad_id=0).logprobs(batch), atol=1e-6, rtol=1e-6)
    assert not torch.allclose(said, Policy(make_tiny_model(**shape), pad_id=0).logprobs(batch), atol=1e-3)
    assert latest(tmp_path)[0] == (1, place)
    (place / "adapter" / "adapter_config.json").unlink()
    assert latest(tmp_path)[0] is None  # like any other file of it


def arguments(tiny_path, sums_path, out, *more):
    flags = [
        *("--template", "short", "--max-completion-tokens", "12", "--steps", str(STEPS), "--lr", "1e-2"),
        *("--prompts-per-step", "4", "--group-size", "4", "--eval-problems", "4", "--eval-sample-problems", "2"),
        *("--eval-samples", "2", "--minibatches", "2", "--kl-coef", "0.01", "--reward", "reward_for_tests:digits"),
        *("--threads", "1", "--save-every", "2", "--lora-rank", "4", "--quiet"),
    ]
    return ["grpo", "--model", str(tiny_path), "--source", str(sums_path), *flags, "--out", str(out), *more]


def test_a_killed_run_continues_exactly_and_its_model_opens(tiny_path, sums_path, tmp_path, forks, monkeypatch):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    monkeypatch.syspath_prepend(ROOT / "tests")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert main(arguments(tiny_path, sums_path, whole)) == 0
    process = forks.start(arguments(tiny_path, sums_path, broken))
    deadline = time.monotonic() + 600
    while not (broken / "rollouts" / "step-000003.jsonl.gz").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert main(["grpo", "--resume", "--trust", "--out", str(broken), "--quiet"]) == 0
    for step in range(1, STEPS + 1):  # in this order, so that a failure says where it began
        name = f"rollouts/step-{step:06d}.jsonl.gz"
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), f"step {step}"
    name = f"checkpoints/step-{STEPS:06d}/model.safetensors"
    assert (broken / name).read_bytes() == (whole / name).read_bytes()
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert 0 < lines[0]["kl"] < lines[-1]["kl"]  # the reference stays behind
    place = whole / "checkpoints" / f"step-{STEPS:06d}"
    opened = AutoModelForCausalLM.from_pretrained(place)
    assert not has_adapter(opened)
    assert "`adapter` holds the adapter alone" in (place / "README.md").read_text()
    assert json.loads((place / "adapter" / "adapter_config.json").read_text())["base_model_name_or_path"] is None
    below = AutoModelForCausalLM.from_pretrained(tiny_path)
    merged = PeftModel.from_pretrained(below, place / "adapter").merge_and_unload().state_dict()
    for name, value in opened.state_dict().items():
        torch.testing.assert_close(merged[name], value, atol=1e-6, rtol=1e-6)
    before = AutoModelForCausalLM.from_pretrained(tiny_path)
    changed = [name for name, value in opened.state_dict().items() if not torch.equal(value, before.state_dict()[name])]
    assert changed and all("proj.weight" in name for name in changed)  # noqa: PT018
