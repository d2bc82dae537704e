"""The learner: any split into micro-batches, any order, and rows left out for good reason change nothing."""

import dataclasses
import functools
import math
from pathlib import Path

import papers
import pytest
import torch
from conftest import make_tiny_model

from r1lite.config import GRPOConfig
from r1lite.errors import RunError
from r1lite.grpo import credit
from r1lite.grpo.learner import PolicyLearner
from r1lite.model.batch import Row, micro_batches
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.run.bad_batches import BadBatches
from r1lite.types import Group, Rollout
from verifiers import Completion, Problem, Score, Verdict

BAD = BadBatches(Path("unused"))
TERMS = {("math",): 1.0, ("format",): 0.1}
# Rewards of four groups: one without a signal, one with an unscored completion.
REWARDS = [[1.0, 0.1, 0.0, 1.1], [0.1, 0.1, 0.1, 0.1], [1.0, None, 0.0, 0.1], [0.0, 0.0, 1.1, 0.0]]
SETTINGS = {
    **{f"advantage {name}": {"advantage": name} for name in ("grpo", "batch_scaled", "dr_grpo", "rloo", "reinforce")},
    **{f"advantage {name}": {"advantage": name} for name in ("opo", "maxrl", "gdpo", "reinforce_pp_baseline")},
    "reinforce_pp": {
        "advantage": "reinforce_pp",
        "gamma": 0.9,
        "kl_in": "reward",
        "kl_coef": 0.1,
        "kl_estimator": "k1",
    },
    "whitened": {"whiten_advantages": True},
    "loss cispo": {"loss": "cispo", "cispo_cap": 1.01},
    "loss sapo": {"loss": "sapo", "aggregation": "sequence_mean"},
    "loss gmpo": {"loss": "gmpo", "aggregation": "sequence_mean", "clip_low": 0.01, "clip_high": 0.01},
    "gspo": {"ratio_level": "sequence", "aggregation": "sequence_mean", "clip_low": 0.005, "clip_high": 0.005},
    "reinforce": {"loss": "reinforce", "aggregation": "sequence_sum", "updates_per_rollout": 1},
    "constant": {"aggregation": "constant"},
    "dual and delta": {"clip_dual": 1.1, "clip_delta": 1.3, "clip_low": 0.01, "clip_high": 0.02},
    **{f"kl {name}": {"kl_coef": 0.1, "kl_estimator": name} for name in ("k2", "k3", "k1+", "k3+", "k3_corrected")},
    "kl in the reward": {"advantage": "rloo", "kl_coef": 0.1, "kl_in": "reward", "kl_estimator": "k1"},
    "entropy": {"entropy_coef": 0.05},
    "entropy adapted": {"entropy_target": 5.0, "entropy_coef": 0.02},
    "top entropy": {"top_entropy_share": 0.3},
    "importance": {"importance": "sequence", "importance_high": 1.5},
    "off policy": {"off_policy_threshold": 0.001},
    "overlong": {"overlong_filter": True},
    "minibatches": {"minibatches": 2},
    "advantage optimal_token": {"advantage": "optimal_token"},
    "advantage best_of_group": {"advantage": "best_of_group"},
    "normalized": {"advantage": "rloo", "normalize_advantages": True},
    "loss dppo": {"loss": "dppo", "clip_low": 1e-4, "clip_high": 1e-4},
    "loss dppo by kl": {"loss": "dppo", "dppo_divergence": "kl", "clip_low": 1e-7, "clip_high": 1e-7},
    "loss vespo": {"loss": "vespo"},
    "vespo and the engine": {"loss": "vespo", "importance": "token"},
    "luspo": {"ratio_level": "sequence", "aggregation": "sequence_sum", "clip_low": 0.005, "clip_high": 0.005},
    "completion": {"ratio_level": "completion", "aggregation": "sequence_sum", "clip_low": 0.01, "clip_high": 0.01},
    "loss clip_cov": {"loss": "clip_cov", "cov_share": 1.0, "cov_low": 0.1},
    "loss kl_cov": {"loss": "kl_cov", "cov_share": 0.1, "kl_cov_coef": 9.0},
    "loss dro": {"loss": "dro", "dro_beta": 5.0},
    "a_star": {"loss": "a_star", "advantage": "a_star", "aggregation": "sequence_mean", "a_star_beta": 0.3},
    "ratio to the engine": {"ratio_to": "engine", "importance": "off", "clip_low": 0.01, "clip_high": 0.01},
    "prompt_mean": {"aggregation": "prompt_mean"},
    "kl full": {"kl_coef": 0.1, "kl_estimator": "full"},
    "positive nll": {"positive_nll_coef": 0.5},
    "positive nll, reshuffled": {"positive_nll_coef": 0.5, "minibatches": 2},
    "kl abs": {"kl_coef": 0.1, "kl_estimator": "abs"},
    "kl capped": {"kl_coef": 0.1, "kl_cap": 0.001},
    "my own": {"loss": "losses_for_tests:squared", "advantage": "losses_for_tests:doubled"},
}


@pytest.fixture(autouse=True)
def own_losses_are_found(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def make_groups(policy):
    generator = torch.Generator().manual_seed(0)
    groups = []
    for p, rewards in enumerate(REWARDS):
        prompt = tuple(torch.randint(2, 48, (3 + 4 * p,), generator=generator).tolist())
        rows = [
            Row(prompt, tuple(torch.randint(2, 48, (2 + (5 * p + 3 * g) % 9,), generator=generator).tolist()))
            for g in range(4)
        ]
        (batch,) = micro_batches(rows, 10_000, 0, "cpu")
        logprobs = policy.logprobs(batch).detach()
        rollouts: list[Rollout | None] = [None] * 4
        for b, i in enumerate(batch.rows):
            reward = rewards[i]
            verdicts = (
                {}
                if reward is None
                else {"math": Verdict(float(reward >= 1), "ok"), "format": Verdict(float(round(reward % 1 * 10)), "ok")}
            )
            completion = Completion(
                "",
                rows[i].token_ids,
                tuple((logprobs[b][batch.loss_mask[b]] - 0.01 * i).tolist()),
                finish_reason="length" if (p, i) == (0, 3) else "stop",
            )
            right = None if reward is None else reward >= 1
            rollouts[i] = Rollout(completion, Score(reward, verdicts), 0.0, right, None)
        groups.append(Group(Problem("", id=f"p{p}"), "", prompt, tuple(rollouts)))
    return groups


@functools.cache
def policy_and_weights():
    policy = Policy(make_tiny_model(num_hidden_layers=1).double(), pad_id=0)
    return policy, [parameter.detach().clone() for parameter in policy.model.parameters()]


def tiny_policy():
    """The same one each time, as it was at first: to make one takes as long as to teach it."""
    policy, weights = policy_and_weights()
    for parameter, value in zip(policy.model.parameters(), weights, strict=True):
        parameter.data.copy_(value)
        parameter.grad = None
    return policy


@functools.cache
def groups_of_tiny_policy():
    return make_groups(tiny_policy())


@functools.cache
def learn_whole(name):
    """What is learnt by a line of the table."""
    return learn(SETTINGS[name])


def learn(settings, *, order=(0, 1, 2, 3), **more):
    """Two passes on float64: (groups, metrics, the weights' change)."""
    settings = {"updates_per_rollout": 2, "lr": 1e-3, "biased_sampling": True, **settings, **more}
    config = GRPOConfig(group_size=4, prompts_per_step=4, max_completion_tokens=12, **settings)
    policy = tiny_policy()
    torch.manual_seed(1)
    reference = policy.frozen_copy() if config.has_reference else None
    for parameter in reference.model.parameters() if reference else ():
        parameter.data += 0.02 * torch.randn_like(parameter)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1e9)
    # Plain descent: AdamW divides a gradient by its own size, and would blow up its rounding.
    optimizer.adamw = torch.optim.SGD(optimizer.parameters, lr=0.0)
    groups = groups_of_tiny_policy()
    before = torch.cat([p.detach().flatten().clone() for p in policy.model.parameters()])
    learner = PolicyLearner(config, policy, optimizer, reference, reward_terms=TERMS, bad=BAD)
    taught, metrics = learner.learn([groups[p] for p in order], 0)
    return taught, metrics, torch.cat([p.detach().flatten() for p in policy.model.parameters()]) - before


def same(found, expected):
    """But for rounding: transformers computes norms and softmax in float32, whatever the weights are."""
    torch.testing.assert_close(found, expected, rtol=0, atol=3e-6 * float(expected.abs().max()))


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_split_and_order_change_nothing(name):
    settings = SETTINGS[name]
    taught, metrics, whole = learn_whole(name)
    assert float(whole.abs().max()) > 1e-7  # it learns
    # Minibatches are dealt by place.
    order = (0, 1, 2, 3) if "minibatches" in settings else (3, 1, 0, 2)
    turned, split_metrics, split = learn(settings, order=order, micro_batch_tokens=50)
    same(split, whole)
    for key in ("loss", "grad_norm", "kl", "clipped_low", "clipped_high"):
        assert split_metrics[key] == pytest.approx(metrics[key], rel=1e-5, abs=1e-7)
    for group, p in zip(turned, order, strict=True):
        expected = [rollout.advantage for rollout in taught[p].rollouts]
        assert [rollout.advantage for rollout in group.rollouts] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("settings", [{}, {"kl_coef": 0.1, "kl_in": "reward"}, {"minibatches": 2, "loss": "clip"}])
def test_tokens_are_recorded_as_the_trainer_saw_them_and_nothing_else_changes(settings):
    _, plain_metrics, plain = learn(settings)
    taught, metrics, moved = learn(settings, record_tokens=True)
    assert torch.equal(moved, plain)
    assert metrics == plain_metrics
    split, _, _ = learn(settings, record_tokens=True, micro_batch_tokens=25)
    for group, other in zip(taught, split, strict=True):
        for i, (rollout, same_one) in enumerate(zip(group.rollouts, other.rollouts, strict=True)):
            record, sampled = rollout.tokens, rollout.completion.logprobs
            assert record.logprobs == pytest.approx([logprob + 0.01 * i for logprob in sampled], abs=1e-5)
            assert len(record.entropy) == len(record.advantages) == len(sampled)
            assert all(0 < entropy <= math.log(48) + 1e-6 for entropy in record.entropy)
            assert sum(record.advantages) / len(sampled) == pytest.approx(rollout.advantage, abs=1e-6)
            assert same_one.tokens.entropy == pytest.approx(record.entropy, abs=1e-5)
    assert learn(settings)[0][0].rollouts[0].tokens is None


@pytest.mark.parametrize("name", SETTINGS)
def test_leaving_out_rows_without_a_gradient_changes_nothing(name, monkeypatch):
    _, metrics, fast = learn_whole(name)
    monkeypatch.setattr(credit, "all_have_gradients", lambda config: True)
    _, slow_metrics, slow = learn(SETTINGS[name])
    same(fast, slow)
    assert slow_metrics["loss"] == pytest.approx(metrics["loss"], abs=1e-7)


def test_unscored_and_signalless_completions_get_no_advantage():
    taught, _, _ = learn({})
    assert [[r.advantage == 0 for r in group.rollouts] for group in taught] == [
        [False] * 4,
        [True] * 4,
        [False, True, False, False],
        [False] * 4,
    ]


@pytest.mark.parametrize(
    ("settings", "estimator"),
    [({}, papers.grpo), ({"advantage": "rloo"}, papers.rloo), ({"advantage": "reinforce"}, papers.reinforce)],
)
def test_the_loss_is_the_papers(settings, estimator):
    """At ratio 1 a token's loss is -A."""
    for method in ("token_mean", "sequence_mean", "sequence_sum", "constant"):
        taught, metrics, _ = learn({**settings, "aggregation": method}, updates_per_rollout=1)
        advantages = estimator(REWARDS)
        rows = [
            [-a] * len(rollout.completion.token_ids)
            for group, row in zip(taught, advantages, strict=True)
            for rollout, a in zip(group.rollouts, row, strict=True)
            if rollout.score.reward is not None
        ]
        assert metrics["loss"] == pytest.approx(papers.aggregated(rows, method, 12), abs=1e-6)


def test_right_completions_are_imitated():
    """At ratio 1 the surrogates cancel to what the advantages are; the rest is the mean NLL of right tokens."""
    _, without, _ = learn({}, updates_per_rollout=1)
    taught, metrics, _ = learn({"positive_nll_coef": 0.5}, updates_per_rollout=1)
    policy = tiny_policy()
    right = [(g.prompt_ids, r.completion.token_ids) for g in taught for r in g.rollouts if r.correct]
    assert 3 < len(right) < 16
    rows = []
    for prompt, ids in right:  # each by itself, whatever is beside it in the minibatch
        (batch,) = micro_batches([Row(prompt, ids)], 10_000, 0, "cpu")
        rows.append(policy.logprobs(batch).detach()[0].tolist())
    assert metrics["loss"] - without["loss"] == pytest.approx(0.5 * papers.positive_nll(rows), abs=1e-6)


def test_cut_off_completions_leave_the_denominator():
    taught, metrics, _ = learn({"overlong_filter": True, "aggregation": "sequence_mean"}, updates_per_rollout=1)
    rows = [
        [-a] * len(r.completion.token_ids)
        for group, row in zip(taught, papers.grpo(REWARDS), strict=True)
        for r, a in zip(group.rollouts, row, strict=True)
        if r.score.reward is not None and r.completion.finish_reason != "length"
    ]
    assert metrics["loss"] == pytest.approx(papers.aggregated(rows, "sequence_mean", 12), abs=1e-6)


def test_kl_in_the_reward_is_taken_off_before_the_baseline():
    taught, metrics, _ = learn(SETTINGS["kl in the reward"])
    plain, _, _ = learn({"advantage": "rloo"})
    assert metrics["kl"] != 0
    assert [r.advantage for r in taught[1].rollouts] != [0.0] * 4  # equal rewards, unequal KL
    assert taught[2].rollouts[1].advantage == 0  # unscored all the same
    differences = [a.advantage - b.advantage for a, b in zip(taught[0].rollouts, plain[0].rollouts, strict=True)]
    assert sum(differences) == pytest.approx(0, abs=1e-6)


def test_gdpo_hears_every_part():
    """A right answer in a bad form and a wrong one in a good form: summed first, format is drowned."""
    taught, _, _ = learn({"advantage": "gdpo"})
    parts = [[[None if r is None else float(r >= 1) for r in g] for g in REWARDS]]
    parts.append([[None if r is None else round(r % 1 * 10) for r in g] for g in REWARDS])
    expected = papers.gdpo(parts, [1.0, 0.1], REWARDS)
    for group, row in zip(taught, expected, strict=True):
        assert [r.advantage for r in group.rollouts] == pytest.approx(row, abs=1e-4)


def test_adapted_coefficients_are_remembered_and_used():
    config = GRPOConfig(kl_coef=0.1, kl_target=0.01, entropy_target=9.0, kl_horizon=8.0, biased_sampling=True, lr=1e-3)
    policy = Policy(make_tiny_model(), pad_id=0)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)
    learner = PolicyLearner(config, policy, optimizer, policy.frozen_copy(), bad=BAD)
    groups = make_groups(policy)
    used = [learner.learn(groups, step)[1] for step in range(3)]
    assert used[0]["kl_coef"] == 0.1
    assert used[1]["kl_coef"] == pytest.approx(0.1 * (1 - 0.2 * 16 / 8))  # no KL yet: down by as much as may be
    assert [line["entropy_coef"] for line in used] == pytest.approx([0.0, 0.005, 0.01])
    other = PolicyLearner(config, policy, optimizer, policy.frozen_copy(), bad=BAD)
    other.load_state_dict(learner.state_dict())
    assert (other.kl_coef, other.entropy_coef) == (learner.kl_coef, learner.entropy_coef)


def test_the_bonus_rests_above_its_target():
    _, metrics, rested = learn({"entropy_target": 0.001, "entropy_coef": 0.5})
    _, _, plain = learn({})
    same(rested, plain)
    assert metrics["entropy_coef"] == 0.5


@pytest.mark.parametrize("settings", [{"importance": "token"}, {"off_policy_threshold": 0.1}])
def test_an_engine_without_probabilities_is_refused_where_they_are_needed(settings):
    policy = Policy(make_tiny_model(), pad_id=0)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)
    groups = [
        dataclasses.replace(
            group,
            rollouts=tuple(
                dataclasses.replace(r, completion=dataclasses.replace(r.completion, logprobs=()))
                for r in group.rollouts
            ),
        )
        for group in make_groups(policy)
    ]
    PolicyLearner(GRPOConfig(importance="off"), policy, optimizer, None, bad=BAD).learn(groups, 0)
    with pytest.raises(RunError, match="the engine returns none"):
        PolicyLearner(GRPOConfig(**settings), policy, optimizer, None, bad=BAD).learn(groups, 0)


@pytest.mark.parametrize("reward", [math.inf, -math.inf, 1e39, math.nan])
def test_a_reward_that_is_no_number_is_refused_by_name(reward):
    policy = Policy(make_tiny_model(), pad_id=0)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)
    groups = make_groups(policy)
    spoilt = dataclasses.replace(groups[2].rollouts[3], score=Score(reward))
    groups[2] = dataclasses.replace(groups[2], rollouts=(*groups[2].rollouts[:3], spoilt))
    with pytest.raises(RunError, match="problem 'p2', completion 3: its reward is"):
        PolicyLearner(GRPOConfig(importance="off"), policy, optimizer, None, bad=BAD).learn(groups, 0)
