"""PPO: what the critic learns and says, warm-up, early stopping, exact continuation, and what is refused."""

import json
import math
import os
import signal
from pathlib import Path

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer

import r1lite.grpo.learner
from r1lite.cli import main
from r1lite.config import PPOConfig
from r1lite.errors import RunError, UserError
from r1lite.grpo.critic import LearningCritic, ValueModel, make_value_model
from r1lite.grpo.learner import PolicyLearner
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.rollout import Sampling
from r1lite.rollout.hf import HFEngine
from r1lite.run.bad_batches import BadBatches
from r1lite.types import Group, Rollout
from verifiers import Problem, Score

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = [(5, 6, 7), (8, 9), (10, 11, 12, 13)]
STEPS = 6


@pytest.fixture(autouse=True)
def reward_is_found(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests")
    torch.set_num_threads(1)


def sampled(model):
    """Three prompts with two completions each; rewards 0 to 5."""
    engine = HFEngine(model, make_tiny_tokenizer())
    rows = engine.generate(PROMPTS, [[2 * p, 2 * p + 1] for p in range(3)], Sampling(1.0, 9))
    return [
        Group(
            Problem(id=str(p)),
            "",
            PROMPTS[p],
            tuple(Rollout(c, Score(float(2 * p + g)), 0.0, None, None) for g, c in enumerate(row)),
        )
        for p, row in enumerate(rows)
    ]


def learner(tmp_path, **settings):
    config = PPOConfig(**{"lr": 1e-2, "max_completion_tokens": 9, "steps": 10, **settings})
    policy = Policy(make_tiny_model(), pad_id=0)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=config.max_grad_norm)
    critic = LearningCritic(config, make_value_model(config, policy, None), BadBatches(tmp_path / "bad"))
    reference = None
    if config.kl_coef:
        reference = policy.frozen_copy()
        with torch.no_grad():
            for parameter in reference.model.parameters():
                parameter.mul_(1.05)
    return PolicyLearner(config, policy, optimizer, reference, critic=critic, bad=BadBatches(tmp_path / "bad"))


def copies(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(module, before):
    return all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_advantages_are_the_papers(tmp_path):
    """Values, KL in the reward, GAE and whitening, recomputed with plain loops from what the models say."""
    made = learner(tmp_path, kl_coef=0.3, gamma=0.9, gae_lambda=0.7, micro_batch_tokens=30)
    with torch.no_grad():
        made.critic.model.head.weight.normal_(generator=torch.Generator().manual_seed(1))
    groups = sampled(made.policy.model)
    advantages, minibatches = made._credit(groups, 0)
    micro_batches = [micro_batch for minibatch in minibatches for micro_batch in minibatch.micro_batches]
    assert len(micro_batches) > 1
    rows = {}
    for micro_batch in micro_batches:
        for b, (p, g) in enumerate(micro_batch.indices):
            length = int(micro_batch.inputs.loss_mask[b].sum())
            ids = (*PROMPTS[p], *groups[p].rollouts[g].completion.token_ids)
            with torch.no_grad():
                out = made.critic.model.backbone.model(torch.tensor([ids]), output_hidden_states=True)
            hidden = out.hidden_states[-1][0, len(PROMPTS[p]) - 1 : -1]
            values = (hidden @ made.critic.model.head.weight[0]).tolist()
            kl = (micro_batch.old_logprobs - micro_batch.ref_logprobs)[b, :length].tolist()
            assert any(abs(k) > 1e-3 for k in kl)
            reward = [-0.3 * k for k in kl]
            reward[-1] += 2 * p + g
            found, after, nothing = [0.0] * length, 0.0, 0.0
            for t in reversed(range(length)):
                delta = reward[t] + 0.9 * after - values[t]
                nothing = delta + 0.9 * 0.7 * nothing
                found[t], after = nothing, values[t]
            rows[p, g] = found
            returns = [a + v for a, v in zip(found, values, strict=True)]
            assert micro_batch.returns[b, :length].tolist() == pytest.approx(returns, abs=2e-4)
    flat = [a for row in rows.values() for a in row]
    mean = sum(flat) / len(flat)
    std = math.sqrt(sum((a - mean) ** 2 for a in flat) / (len(flat) - 1))
    for micro_batch in micro_batches:
        for b, place in enumerate(micro_batch.indices):
            white = [(a - mean) / std for a in rows[place]]
            assert micro_batch.advantages[b, : len(white)].tolist() == pytest.approx(white, abs=2e-4)
            assert float(advantages[place]) == pytest.approx(sum(white) / len(white), abs=2e-4)


@pytest.mark.parametrize("critic", ["own", "shared"])
def test_micro_batches_change_nothing_but_rounding(critic, tmp_path):
    grads = []
    for tokens in (25, 10_000):
        made = learner(
            tmp_path, critic=critic, micro_batch_tokens=tokens, **({"value_coef": 0.5} if critic == "shared" else {})
        )
        with torch.no_grad():
            made.critic.model.head.weight.fill_(0.1)
        _, minibatches = made._credit(sampled(made.policy.model), 0)
        for minibatch in minibatches:
            for micro_batch in minibatch.micro_batches:
                made.critic.accumulate(micro_batch, minibatch.num_tokens)
        named = dict(made.critic.model.backbone.model.named_parameters())
        grads.append(
            {name: p.grad for name, p in named.items() if p.grad is not None} | {"": made.critic.model.head.weight.grad}
        )
    assert set(grads[0]) == set(grads[1])
    assert len(grads[0]) > 20
    for name, grad in grads[0].items():
        assert torch.allclose(grad, grads[1][name], rtol=1e-3, atol=1e-5), name


def test_the_critic_learns_to_predict(tmp_path):
    made = learner(tmp_path, critic_warmup_steps=99, steps=100, lr=3e-3, value_clip=None)
    groups = sampled(made.policy.model)
    before = copies(made.policy.model)
    losses = [made.learn(groups, step)[1] for step in range(40)]
    assert losses[-1]["value_loss"] < 0.1 * losses[0]["value_loss"]
    assert losses[-1]["explained_variance"] > 0.8 > losses[0]["explained_variance"]
    assert losses[0]["updates"] == 0
    assert same(made.policy.model, before)  # held while the critic warms up


@pytest.mark.parametrize("critic", ["own", "shared"])
def test_warm_up_holds_the_policy(critic, tmp_path):
    made = learner(tmp_path, critic=critic, critic_warmup_steps=1)
    groups = sampled(made.policy.model)
    before, head = copies(made.policy.model), copies(made.critic.model.head)
    made.learn(groups, 0)
    assert same(made.policy.model, before)
    assert not same(made.critic.model.head, head)
    made.learn(groups, 1)
    assert not same(made.policy.model, before)


def test_a_shared_critic_costs_a_head_only(tmp_path):
    own, shared = (learner(tmp_path, critic=critic).critic for critic in ("own", "shared"))
    assert [p.shape for p in shared.optimizer.parameters] == [(1, 32), (1,)]
    assert sum(p.numel() for p in own.optimizer.parameters) > 10_000
    assert list(shared.state_dict()["weights"]) == ["head.weight", "head.bias"]


def test_updates_end_when_the_policy_has_moved_far_enough(tmp_path):
    made = learner(tmp_path, updates_per_rollout=6, stop_kl=1e-3)
    _, metrics = made.learn(sampled(made.policy.model), 0)
    assert 0 < metrics["updates"] < 6
    assert metrics["stopped_updates"] == 6 - metrics["updates"]
    assert metrics["policy_kl"] > 1e-3
    assert all(p.grad is None for p in made.optimizer.parameters)
    assert all(p.grad is None for p in made.critic.optimizer.parameters)


@pytest.mark.parametrize(("settings", "passes"), [({"stop_kl": 1e-3}, 2), ({"critic_warmup_steps": 1}, 6)])
def test_losses_are_means_over_all_passes(settings, passes, tmp_path, monkeypatch):
    """Also of a step that --stop-kl ends, and of one in which only the critic learns."""
    made = learner(tmp_path, updates_per_rollout=6, **settings)
    gradient, sums, values = made._gradient, [], []

    def recorded(*given, **named):
        before = sum(made.critic._losses)
        sums.append(gradient(*given, **named))
        values.append(sum(made.critic._losses) - before)
        return sums[-1]

    monkeypatch.setattr(PolicyLearner, "_gradient", lambda self, *given, **named: recorded(*given, **named))
    _, metrics = made.learn(sampled(made.policy.model), 0)
    assert len(sums) >= passes
    assert metrics["loss"] == pytest.approx(sum(one.loss for one in sums) / len(sums))
    assert metrics["value_loss"] == pytest.approx(sum(values) / len(values))


def test_the_schedule_of_the_policy_begins_when_it_learns():
    alone = PPOConfig(steps=60, critic_warmup_steps=20, warmup_steps=10, lr=1e-3, lr_schedule="linear")
    later = PPOConfig(steps=40, warmup_steps=10, lr=1e-3, lr_schedule="linear")
    assert [alone.policy_lr_at(step) for step in range(20, 60)] == [later.policy_lr_at(step) for step in range(40)]
    assert alone.policy_lr_at(0) == alone.policy_lr_at(19) == alone.policy_lr_at(20)


def test_a_critic_without_finite_gradients_stops_the_run(tmp_path):
    made = learner(tmp_path)
    with torch.no_grad():
        made.critic.model.head.bias.fill_(math.nan)
    groups = sampled(made.policy.model)
    for step in range(2):
        before = copies(made.policy.model)
        _, metrics = made.learn(groups, step)
        assert metrics["critic_skipped_updates"] == 1
        assert metrics["skipped_updates"] == 1  # its advantages are none either
        assert same(made.policy.model, before)
    with pytest.raises(RunError, match="3 times in a row"):
        made.learn(groups, 2)
    kept = torch.load(sorted((tmp_path / "bad").iterdir())[0], weights_only=True)
    assert kept["batches"][0]["token_ids"].shape[0] == len(kept["batches"][0]["indices"])


# --- whole runs ------------------------------------------------------------------------------------------------------


def run(out, tiny_path, sums_path, *more):
    return main(
        [
            *("ppo", "--model", str(tiny_path), "--source", str(sums_path), "--out", str(out), "--quiet"),
            *("--template", "short", "--max-completion-tokens", "8", "--steps", str(STEPS), "--lr", "3e-3"),
            *("--prompts-per-step", "4", "--eval-problems", "2", "--eval-sample-problems", "2", "--eval-samples", "2"),
            *("--reward", "reward_for_tests:digits", "--score-workers", "0", "--threads", "1", "--save-every", "2"),
            *more,
        ]
    )


def outcome(out):
    clocks = {"generate_s", "score_s", "train_s", "step_s"}
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    folder = out / "checkpoints" / f"step-{STEPS:06d}"
    state = torch.load(folder / "trainer.pt", weights_only=True)["learner"]
    return (
        {path.name: path.read_bytes() for path in sorted((out / "rollouts").iterdir())},
        [{k: v for k, v in line.items() if k not in clocks} for line in metrics],
        (folder / "model.safetensors").read_bytes(),
        {name: value.tolist() for name, value in state["critic"]["weights"].items()},
        state["kl_coef"],
    )


@pytest.mark.parametrize("critic", ["own", "shared"])
def test_stopped_and_resumed_is_the_same_as_never_stopped(critic, tiny_path, sums_path, tmp_path, monkeypatch):
    flags = ["--critic", critic, "--kl-coef", "0.05", "--kl-target", "0.01", "--kl-horizon", "20"]
    flags += ["--updates-per-rollout", "2", "--minibatches", "2", "--critic-warmup-steps", "1", "--gae-lambda", "0.9"]
    assert run(tmp_path / "whole", tiny_path, sums_path, *flags) == 0
    learn = r1lite.grpo.learner.PolicyLearner.learn
    calls = []

    def stopping(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return learn(self, *arguments)

    monkeypatch.setattr(r1lite.grpo.learner.PolicyLearner, "learn", stopping)
    assert run(tmp_path / "stopped", tiny_path, sums_path, *flags) == 143
    assert max(path.name for path in (tmp_path / "stopped" / "checkpoints").iterdir()) == "step-000003"
    monkeypatch.undo()
    monkeypatch.syspath_prepend(ROOT / "tests")
    assert main(["ppo", "--resume", "--trust", "--out", str(tmp_path / "stopped"), "--quiet"]) == 0
    whole = outcome(tmp_path / "whole")
    assert outcome(tmp_path / "stopped") == whole
    assert len({line["kl_coef"] for line in whole[1]}) > 1  # it does adapt


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--critic-model", "OTHER"], "has another tokenizer than the policy"),
        (["--critic-model", "/nowhere"], "/nowhere: no such folder"),
        (["--critic", "shared", "--critic-model", "TINY"], "a shared critic uses the policy's backbone"),
        (["--value-coef", "0.1"], "for --critic own set --critic-lr"),
        (["--critic-warmup-steps", "6"], "must be < --steps 6: the policy would never be trained"),
        (["--stop-kl", "0.1"], "but a step has only one update"),
        (["--kl-target", "0.1"], "whose initial value must be above 0"),
        (["--kl-coef", "0.1", "--kl-in", "loss"], "--kl-estimator k1 has no effect with --kl-in loss"),
        (["--lora-rank", "2", "--base-quantization", "nf4"], "can't train weights in 4 bits; use --critic shared"),
    ],
)
def test_refusals(flags, message, tiny_path, sums_path, tmp_path, capsys):
    if "OTHER" in flags:
        other = tmp_path / "other"
        make_tiny_model().save_pretrained(other)
        make_tiny_tokenizer().save_pretrained(other)
        text = (other / "tokenizer.json").read_text()
        (other / "tokenizer.json").write_text(text.replace('"a": 12', '"a": 13').replace('"b": 13', '"b": 12'))
        flags = ["--critic-model", str(other)]
    assert run(tmp_path / "run", tiny_path, sums_path, *(str(tiny_path) if f == "TINY" else f for f in flags)) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--critic", "--value-clip", "--gae-lambda=0.9"])
def test_a_critic_for_grpo_is_refused(flag, capsys):
    assert main(["grpo", flag, "own"]) == 2
    shown = capsys.readouterr().err
    assert "GRPO compares completions of a group instead of using a critic; it belongs to r1lite ppo" in shown


def test_a_critic_that_begins_as_a_reward_model(tmp_path):
    from transformers import Qwen2ForSequenceClassification

    torch.manual_seed(0)
    base = make_tiny_model()
    reward = Qwen2ForSequenceClassification(base.config.__class__(**{**base.config.to_dict(), "num_labels": 1}))
    reward.save_pretrained(tmp_path / "reward")
    make_tiny_tokenizer().save_pretrained(tmp_path / "reward")
    config = PPOConfig(critic_model=str(tmp_path / "reward"), model="policy", device="cpu")
    made = make_value_model(config, Policy(base, pad_id=0), make_tiny_tokenizer())
    assert torch.equal(made.head.weight, reward.score.weight)
    embeddings = made.backbone.model.get_input_embeddings().weight
    assert torch.equal(embeddings, reward.get_input_embeddings().weight)


def test_a_model_without_a_plain_head_has_no_critic(tiny_model):
    policy = Policy(tiny_model, pad_id=0)
    policy.parts = "its head is unusual"
    with pytest.raises(UserError, match="a critic needs the model's hidden states, but its head is unusual"):
        ValueModel(policy, shared=True)
