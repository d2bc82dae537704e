"""Passes over a rollout, problems that are retired, exact KL of a policy, and cut distributions."""

import functools
import random

import pytest
import torch
from conftest import make_tiny_model
from test_learner import BAD, make_groups

from r1lite.config import GRPOConfig, load
from r1lite.grpo.choice import Retired
from r1lite.grpo.learner import PolicyLearner
from r1lite.grpo.minibatch import make_minibatches, reshuffled
from r1lite.model.batch import Row, micro_batches
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.training.resolve import resolve_config
from r1lite.types import Group, Prompt, Rollout
from verifiers import Completion, Problem, Score

CUT = functools.partial(micro_batches, pad_id=0, device="cpu")


def made(policy, count=2):
    groups = make_groups(policy)
    return make_minibatches(
        groups,
        count,
        counts=lambda rollout: rollout.score.reward is not None,
        has_gradient=lambda index: index != (0, 2),
        max_tokens=40,
        cut=CUT,
    )


def known(minibatches, name):
    """What every completion has of it, by index."""
    return {
        index: getattr(one, name)[row][one.inputs.valid_mask[row]].tolist()
        for minibatch in minibatches
        for one in minibatch.micro_batches
        for row, index in enumerate(one.indices)
    }


def test_later_passes_have_the_same_completions_in_other_minibatches():
    policy = Policy(make_tiny_model(), pad_id=0)
    first = made(policy)
    for minibatch in first:
        for one in minibatch.micro_batches:
            one.old_logprobs = policy.logprobs(one.inputs).detach()
            one.advantages = torch.arange(one.num_rows).float()
    second = reshuffled(first, random.Random(3), max_tokens=30, cut=CUT)
    assert [set(m.counted) for m in second] != [set(m.counted) for m in first]
    assert len(second) == len(first)
    for name in ("engine_logprobs", "old_logprobs"):
        assert known(second, name) == known(first, name)
    sums = [sum(getattr(m, name) for m in part) for part in (first, second) for name in ("num_tokens", "num_rows")]
    assert sums[:2] == sums[2:]
    # A recomputed log-probability is the kept one: tokens and prompts belong together still.
    for minibatch in second:
        assert {p for one in minibatch.micro_batches for p, _ in one.indices} <= set(minibatch.counted)
        for one in minibatch.micro_batches:
            again = policy.logprobs(one.inputs).detach()
            mask = one.inputs.loss_mask
            torch.testing.assert_close(again[mask], one.old_logprobs[mask])


def test_passes_are_shuffled_by_the_seed(monkeypatch):
    def weights(seed):
        policy = Policy(make_tiny_model(), pad_id=0)
        optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)
        config = GRPOConfig(
            minibatches=2, updates_per_rollout=3, lr=1e-2, prompts_per_step=4, group_size=4, seed=seed, importance="off"
        )
        learner = PolicyLearner(config, policy, optimizer, None, bad=BAD)
        learner.learn(make_groups(Policy(make_tiny_model(), pad_id=0)), 0)
        return torch.cat([p.detach().flatten() for p in policy.model.parameters()])

    monkeypatch.setattr(PolicyLearner, "_check_mismatch", lambda self, total, step: None)
    first, again, other = weights(0), weights(0), weights(1)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_updates_stop_at_a_distance_from_the_reference(monkeypatch):
    monkeypatch.setattr(PolicyLearner, "_check_mismatch", lambda self, total, step: None)

    def updates(stop_kl):
        policy = Policy(make_tiny_model(), pad_id=0)
        optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)
        config = GRPOConfig(
            updates_per_rollout=4, lr=3e-3, kl_coef=0.01, stop_kl=stop_kl, stop_kl_to="reference", importance="off"
        )
        reference = policy.frozen_copy()
        with torch.no_grad():
            for parameter in reference.model.parameters():
                parameter.mul_(1.05)
        learner = PolicyLearner(config, policy, optimizer, reference, bad=BAD)
        _, metrics = learner.learn(make_groups(policy), 0)
        return metrics["updates"], metrics["stopped_updates"]

    assert updates(1e9) == (4, 0)
    assert updates(1e-9) == (1, 3)  # the first is made all the same: the KL in the loss may lead back


def test_the_policys_exact_kl_and_square_masses():
    torch.manual_seed(0)
    policy = Policy(make_tiny_model().double(), pad_id=0, temperature=0.8)
    reference = policy.frozen_copy()
    for parameter in reference.model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    rows = [Row((3, 4, 5), (6, 7, 8, 9)), Row((3, 4, 5), (9, 8)), Row((5, 6), (11,))]
    (batch,) = micro_batches(rows, 1000, 0, "cpu")
    tiled = policy.with_kl(batch, reference, entropy=True)
    whole, whole_reference = Policy(policy.model, pad_id=0, temperature=0.8), reference
    whole.parts = "not taken apart"
    plain = whole.with_kl(batch, whole_reference, entropy=True)
    mask = batch.loss_mask
    for ours, theirs in zip(tiled, plain, strict=True):
        torch.testing.assert_close(ours[mask].double(), theirs[mask].double(), rtol=1e-5, atol=1e-6)
    assert (tiled[2][mask] > 0).all()
    gradients = []
    for found in (tiled[2], plain[2]):
        policy.model.zero_grad(set_to_none=True)
        found[mask].sum().backward()
        gradients.append([p.grad.clone() for p in policy.model.parameters() if p.grad is not None])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    of_tiles, of_whole = policy.with_square_mass(batch), whole.with_square_mass(batch)
    for ours, theirs in zip(of_tiles, of_whole, strict=True):
        torch.testing.assert_close(ours[mask].double(), theirs[mask].double(), rtol=1e-5, atol=1e-6)


def test_logits_in_float32_of_hidden_states_in_bfloat16():
    rows = [Row((3, 4, 5), (6, 7, 8, 9)), Row((3, 4), (9, 8))]
    (batch,) = micro_batches(rows, 1000, 0, "cpu")
    exact, low, head = (
        Policy(make_tiny_model(), pad_id=0, **options).logprobs(batch)[batch.loss_mask].detach()
        for options in ({}, {"dtype": torch.bfloat16}, {"dtype": torch.bfloat16, "fp32_head": True})
    )
    assert 0 < (head - exact).abs().max() < (low - exact).abs().max()


def test_solved_problems_are_retired():
    prompts = [Prompt(Problem(id=f"p{n}"), "", (n,)) for n in range(8)]
    retired = Retired(0.9)

    def group(n, *correct):
        rollouts = tuple(Rollout(Completion("x"), Score(0.0), 0.0, c, None) for c in correct)
        return Group(prompts[n].problem, "", (n,), rollouts)

    retired.observe([group(0, True, True), group(1, True, False), group(2, None, None), group(3, True, None)])
    assert retired.solved == {"p0", "p3"}
    for step in range(6):
        chosen = [prompt.problem.id for prompt in retired.choose(prompts, step, 4, 0)]
        assert len(chosen) == len(set(chosen)) == 4
        assert not retired.solved & set(chosen)
    again = Retired(0.9)
    again.load_state_dict(retired.state_dict())
    assert again.choose(prompts, 3, 4, 0) == retired.choose(prompts, 3, 4, 0)
    retired.solved = {prompt.problem.id for prompt in prompts}
    assert len(retired.choose(prompts, 0, 4, 0)) == 4  # all come again


@pytest.mark.parametrize(
    ("flags", "importance"),
    [
        ("", "off"),
        ("--top-p 0.9 --biased-sampling", "token"),
        ("--preset lite_ppo", "token"),
        ("--top-p 0.9 --biased-sampling --importance off", "off"),
    ],
)
def test_a_cut_distribution_is_corrected_for(flags, importance):
    config, _ = resolve_config(load(GRPOConfig, ["--model", "nano", *flags.split()]))
    assert config.importance == importance
