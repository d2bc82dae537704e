"""Memory that runs out halves the micro-batches; the gradient stays that of the whole step."""

import dataclasses
import functools

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer

from r1lite.config import GRPOConfig, PPOConfig
from r1lite.errors import RunError
from r1lite.grpo.critic import LearningCritic, make_value_model
from r1lite.grpo.learner import PolicyLearner
from r1lite.grpo.minibatch import halves
from r1lite.model.optimizer import Optimizer
from r1lite.model.out_of_memory import is_out_of_memory
from r1lite.model.policy import Policy
from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFEngine
from r1lite.run.bad_batches import BadBatches
from r1lite.types import Group, Rollout
from verifiers import Problem, Score

PROMPTS = [(5, 6, 7), (8, 9), (10, 11, 12, 13)]
GROUP = 4
CPU_WORDS = "[enforce fail at alloc_cpu.cpp:119] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 1"
SETTINGS = {"updates_per_rollout": 2, "kl_coef": 0.1, "entropy_coef": 0.01, "entropy_target": 9.0, "max_grad_norm": 1e9}


@functools.cache
def groups():
    engine = HFEngine(make_tiny_model(), make_tiny_tokenizer())
    seeds = [[GROUP * p + g for g in range(GROUP)] for p in range(len(PROMPTS))]
    rows = engine.generate(PROMPTS, seeds, Sampling(1.0, 12))
    return [
        Group(
            Problem(id=str(p)),
            "",
            PROMPTS[p],
            tuple(Rollout(c, Score(float((p + 2 * g) % 5)), 0.0, None, None) for g, c in enumerate(row)),
        )
        for p, row in enumerate(rows)
    ]


class Recorder:
    """A learner that keeps the gradient of each update."""

    def __init__(self, tmp_path, config_class=GRPOConfig, **settings):
        config = config_class(**{"lr": 1e-3, "max_completion_tokens": 12, "steps": 10, **settings})
        policy = Policy(make_tiny_model(), pad_id=0)
        optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=config.max_grad_norm)
        critic = None
        if config_class is PPOConfig:
            critic = LearningCritic(config, make_value_model(config, policy, None), BadBatches(tmp_path / "bad"))
        reference = policy.frozen_copy() if config.kl_coef else None
        self.learner = PolicyLearner(
            config, policy, optimizer, reference, critic=critic, bad=BadBatches(tmp_path / "bad")
        )
        self.gradients = []
        step = optimizer.step

        def recording(lr):
            self.gradients.append(torch.cat([p.grad.flatten().clone() for p in optimizer.parameters]))
            return step(lr)

        optimizer.step = recording


def fail_at(recorder, where, call, error):
    """The `call`-th time that `where` is reached, once."""
    model = recorder.learner.policy.model
    seen = [0]

    def failing(*given):
        seen[0] += 1
        if seen[0] == call:
            raise error

    if where == "forward":
        model.model.layers[1].register_forward_pre_hook(failing)
    elif where == "early in backward":
        model.model.layers[1].mlp.down_proj.weight.register_post_accumulate_grad_hook(failing)
    else:
        model.model.layers[0].self_attn.q_proj.weight.register_post_accumulate_grad_hook(failing)
    return seen


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """What is learnt where memory suffices: (gradients, metrics)."""
    whole = Recorder(tmp_path_factory.mktemp("unbroken"), **SETTINGS, micro_batch_tokens=60)
    _, metrics = whole.learner.learn(groups(), 0)
    return whole.gradients, metrics


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError(CPU_WORDS)])
@pytest.mark.parametrize(
    ("where", "call"),
    [
        ("forward", 1),
        ("forward", 4),
        ("forward", 9),
        ("forward", 17),
        ("early in backward", 1),
        ("late in backward", 1),
        ("late in backward", 3),
        ("late in backward", 6),
    ],
)
def test_the_gradient_is_that_of_the_whole_step(where, call, error, tmp_path, unbroken):
    whole, expected = unbroken
    broken = Recorder(tmp_path, **SETTINGS, micro_batch_tokens=60)
    seen = fail_at(broken, where, call, error)
    _, metrics = broken.learner.learn(groups(), 0)
    assert seen[0] > call
    assert metrics["out_of_memory"] == 1
    assert metrics["micro_batch_tokens"] < 60 == expected["micro_batch_tokens"]
    assert len(broken.gradients) == len(whole) == 2
    first, other = whole[0], broken.gradients[0]
    assert float((first - other).abs().max()) <= 1e-5 * float(first.abs().max())
    second, other = whole[1], broken.gradients[1]  # AdamW has blown up roundings of small gradients by now
    assert float((second - other).abs().max()) <= 1e-2 * float(second.abs().max())
    for key in ("loss", "kl", "policy_kl", "clipped_low", "clipped_high", "mismatch_kl"):
        assert metrics[key] == pytest.approx(expected[key], rel=1e-2, abs=1e-5), key


def test_with_a_critic_too(tmp_path):
    settings = {"lr": 1e-3, "micro_batch_tokens": 60}
    whole = Recorder(tmp_path, PPOConfig, **settings)
    _, expected = whole.learner.learn(groups(), 0)
    broken = Recorder(tmp_path, PPOConfig, **settings)
    fail_at(broken, "late in backward", 2, torch.OutOfMemoryError("CUDA out of memory"))
    _, metrics = broken.learner.learn(groups(), 0)
    assert metrics["out_of_memory"] == 1
    torch.testing.assert_close(broken.gradients[0], whole.gradients[0], rtol=1e-4, atol=1e-6)
    for key in ("value_loss", "critic_grad_norm", "value_mean", "return_mean"):
        assert metrics[key] == pytest.approx(expected[key], rel=1e-4), key


def test_it_is_remembered_and_kept(tmp_path):
    broken = Recorder(tmp_path, micro_batch_tokens=60, lr=1e-12)
    fail_at(broken, "forward", 1, torch.OutOfMemoryError("CUDA out of memory"))
    _, first = broken.learner.learn(groups(), 0)
    _, second = broken.learner.learn(groups(), 1)
    assert (second["out_of_memory"], second["micro_batch_tokens"]) == (0, first["micro_batch_tokens"])
    again = Recorder(tmp_path, micro_batch_tokens=60)
    again.learner.load_state_dict(broken.learner.state_dict())
    assert again.learner.budget.tokens == first["micro_batch_tokens"]
    asked = Recorder(tmp_path, micro_batch_tokens=80)  # as when --resume names another number
    asked.learner.load_state_dict(broken.learner.state_dict())
    assert asked.learner.budget.tokens == 80
    old = broken.learner.state_dict()
    del old["asked_micro_batch_tokens"]
    asked.learner.load_state_dict(old)
    assert asked.learner.budget.tokens == first["micro_batch_tokens"]


def test_nothing_smaller_is_left(tmp_path):
    broken = Recorder(tmp_path)

    def always(*given):
        raise torch.OutOfMemoryError("CUDA out of memory")

    broken.learner.policy.model.model.register_forward_pre_hook(always)
    with pytest.raises(RunError, match=r"single completion.*--gradient-checkpointing"):
        broken.learner.learn(groups(), 0)


def test_other_errors_are_not_taken_for_it(tmp_path):
    broken = Recorder(tmp_path)
    fail_at(broken, "late in backward", 1, RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        broken.learner.learn(groups(), 0)
    assert not is_out_of_memory(RuntimeError("memory format"))
    assert is_out_of_memory(MemoryError())
    # Where kernels or pinned memory find no room.
    assert is_out_of_memory(torch.AcceleratorError("CUDA error: out of memory\nCUDA kernel errors might be"))
    assert is_out_of_memory(RuntimeError("CUDA driver error: out of memory"))
    assert not is_out_of_memory(torch.AcceleratorError("CUDA error: an illegal memory access was encountered"))
    with pytest.raises(RuntimeError) as real:  # what this machine's allocator really says
        torch.empty(1 << 60)
    assert is_out_of_memory(real.value)


def test_halves_hold_every_row_with_what_is_known_of_it(tmp_path):
    recorder = Recorder(tmp_path, **SETTINGS)
    _, (minibatch,) = recorder.learner._credit(groups(), 0)
    (micro_batch,) = minibatch.micro_batches
    first, second = halves(micro_batch)
    assert first.indices + second.indices == micro_batch.indices
    for half, offset in ((first, 0), (second, len(first.indices))):
        for row in range(len(half.indices)):
            mask, whole = half.inputs.loss_mask[row], micro_batch.inputs.loss_mask[offset + row]
            assert torch.equal(half.inputs.token_ids[row][mask], micro_batch.inputs.token_ids[offset + row][whole])
            prompts = half.inputs.prompts, micro_batch.inputs.prompts
            assert (
                prompts[0][half.inputs.prompt_of_row[row]] == prompts[1][micro_batch.inputs.prompt_of_row[offset + row]]
            )
            for field in dataclasses.fields(micro_batch):
                value, known = getattr(half, field.name), getattr(micro_batch, field.name)
                if isinstance(known, torch.Tensor):
                    mine, theirs = value[row], known[offset + row]
                    assert torch.equal(mine[mask], theirs[whole]) if mine.ndim else torch.equal(mine, theirs)
