"""Every estimator of advantages against plain loops of the papers' formulas, to 1e-10; invariances."""

import math
import random

import papers
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensors_for_tests import CLOSE, NAN, agree, tensor

from r1lite.rl import advantages, token_baseline
from r1lite.rl.gae import gae, token_rewards, whiten
from r1lite.rl.kl import kl_estimate

ESTIMATORS = {
    "grpo": (advantages.group_relative, papers.grpo),
    "grpo, population std": (
        lambda r: advantages.group_relative(r, ddof=0, eps=1e-6),
        lambda g: papers.grpo(g, 0, 1e-6),
    ),
    "dr_grpo": (lambda r: advantages.group_relative(r, scale="none"), papers.dr_grpo),
    "batch_scaled": (advantages.batch_scaled, papers.batch_scaled),
    "rloo": (advantages.leave_one_out, papers.rloo),
    "reinforce": (advantages.reinforce, papers.reinforce),
    "maxrl": (advantages.maxrl, papers.maxrl),
    "best_of_group": (advantages.best_of_group, papers.best_of_group),
}
rewards = st.one_of(st.none(), st.sampled_from([0.0, 0.25, 1.0]), st.integers(0, 40).map(lambda n: n / 20))
batches = st.integers(2, 6).flatmap(
    lambda size: st.lists(st.lists(rewards, min_size=size, max_size=size), min_size=1, max_size=5)
)


@pytest.mark.parametrize("name", ESTIMATORS)
@settings(deadline=None, max_examples=40)
@given(batches)
def test_advantages_are_the_papers(name, groups):
    ours, theirs = ESTIMATORS[name]
    agree(ours(tensor(groups)), theirs(groups))


@settings(deadline=None, max_examples=40)
@given(batches, st.randoms(use_true_random=False))
def test_opo_and_gdpo_are_the_papers(groups, rng):
    lengths = [[rng.randint(1, 9) for _ in group] for group in groups]
    agree(advantages.optimal_baseline(tensor(groups), torch.tensor(lengths)), papers.opo(groups, lengths))
    parts = [[[rng.choice([None, 0.0, 0.5, 1.0]) for _ in group] for group in groups] for _ in range(3)]
    weights = [1.0, 0.1, -0.5]
    found = advantages.decoupled(torch.stack([tensor(part) for part in parts]), weights, tensor(groups))
    agree(found, papers.gdpo(parts, weights, groups))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dr_grpo", [0.4, 0.2, -0.2, -0.4]),
        ("rloo", [0.5333, 0.2667, -0.2667, -0.5333]),
        ("grpo", [1.0951, 0.5476, -0.5476, -1.0951]),
        ("reinforce", [0.4, 0.2, -0.2, -0.4]),
        ("maxrl", [0.6666, 0.3333, -0.3333, -0.6666]),
        ("batch_scaled", [1.0951, 0.5476, -0.5476, -1.0951]),
        ("best_of_group", [0.5476, 0, 0, 0]),
    ],
)
def test_hand_numbers(name, expected):
    assert ESTIMATORS[name][0](tensor([[1.0, 0.8, 0.4, 0.2]])).tolist()[0] == pytest.approx(expected, abs=5e-5)


def test_hand_numbers_of_opo_and_gdpo():
    found = advantages.optimal_baseline(tensor([[1.0, 0.0]]), torch.tensor([[1, 3]]))
    assert found.tolist() == [[0.75, -0.25]]  # the baseline is 1/4
    # Two parts that disagree: each is worth +-.7071 in its group, and their weighted sum is scaled over the batch.
    parts = torch.stack([tensor([[1.0, 0.0]]), tensor([[0.0, 1.0]])])
    assert advantages.decoupled(parts, [1.0, 0.5], tensor([[1.0, 0.5]]), eps=0.0).tolist()[0] == pytest.approx(
        [0.7071, -0.7071], abs=1e-4
    )


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("group", [[0.1, 0.1, 0.1], [NAN, NAN, NAN], [NAN, 1.0, NAN], [0.1, NAN, 0.1]])
def test_equal_rewards_give_exactly_zero(name, group):
    for dtype in (torch.float32, torch.float64):
        assert ESTIMATORS[name][0](torch.tensor([group], dtype=dtype)).tolist() == [[0.0] * 3]


def test_equal_rewards_give_exactly_zero_in_opo_and_gdpo():
    equal = tensor([[0.1, None, 0.1]])
    assert advantages.optimal_baseline(equal, torch.tensor([[3, 1, 7]])).tolist() == [[0.0] * 3]
    assert advantages.decoupled(torch.stack([equal, equal]), [1.0, 0.3], equal).tolist() == [[0.0] * 3]
    # Beside other groups too, whose sums have a mean of 0 only up to rounding.
    parts = torch.randint(0, 2, (2, 6, 4), generator=torch.Generator().manual_seed(0)).float()
    parts[:, 0] = 1.0
    found = advantages.decoupled(parts, [1.0, 0.1], parts[0] + 0.1 * parts[1])
    assert found[0].tolist() == [0.0] * 4
    assert bool(found.any())


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_infinite_rewards_are_refused_by_their_place(name, bad):
    with pytest.raises(ValueError, match=r"reward \[1, 2\] is infinite"):
        ESTIMATORS[name][0](tensor([[0.0, 1.0, 0.0], [0.0, 1.0, bad]]))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(2, 6).flatmap(
        lambda size: st.lists(
            st.lists(st.sampled_from([None, 0.0, 0.125, 1.0, 1.25]), min_size=size, max_size=size),
            min_size=1,
            max_size=4,
        )
    ),
    st.integers(1, 4),
)
def test_pass_at_k_is_what_enumerating_every_subset_gives(groups, k):
    agree(advantages.pass_at_k(tensor(groups), k=k), papers.pass_at_k(groups, k))


def test_hand_numbers_of_pass_at_k():
    """Two of four right: of the six pairs one fails, so R = 5/6; a wrong one is in three pairs, of which one fails."""
    sigma = math.sqrt(5) / 6
    found = advantages.pass_at_k(tensor([[1.0, 0.0, 0.0, 1.0]]), k=2).tolist()[0]
    assert found == pytest.approx([1 / 6 / sigma, (1 / 6 - 1 / 3) / sigma, (1 / 6 - 1 / 3) / sigma, 1 / 6 / sigma])
    # A bonus for the form: the pairs' best are 1.1, 1.1 and 0.1, mean 23/30, deviation sqrt(2)/3.
    found = advantages.pass_at_k(tensor([[0.1, 1.1, 0.0]]), k=2).tolist()[0]
    assert found == pytest.approx([-1 / math.sqrt(8), 1 / math.sqrt(2), -1 / math.sqrt(8)])
    with pytest.raises(ValueError, match="k must be >= 1"):
        advantages.pass_at_k(tensor([[0.0, 1.0]]), k=0)


def test_completions_are_normalized_over_the_step():
    groups = [[1.0, None, 0.0], [0.2, 0.9, 0.4]]
    scored = [[r is not None for r in group] for group in groups]
    given_rewards = tensor(groups)
    raw = advantages.leave_one_out(given_rewards)
    agree(advantages.normalized(raw, ~given_rewards.isnan()), papers.normalized(papers.rloo(groups), scored))
    assert not advantages.normalized(torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool)).any()
    # In float32 the mean is not 0; a group without signal would go through the model for nothing.
    mixed = torch.tensor([[1.0, 1.0, 1.0], [0.1, 0.3, 1.1], [1.1, 0.0, 0.1]])
    found = advantages.normalized(advantages.leave_one_out(mixed), ~mixed.isnan())
    assert found[0].tolist() == [0.0, 0.0, 0.0]
    assert found[1:].all()


def test_the_pocket_money_example():
    """60 where 40 was to be expected is an advantage of +20: against the mean of the others, and a critic's value."""
    assert advantages.leave_one_out(tensor([[60.0, 30.0, 50.0]])).tolist()[0][0] == pytest.approx(20)
    found, returns = gae(tensor([[60.0]]), tensor([[40.0]]), torch.tensor([[True]]))
    assert (found.tolist(), returns.tolist()) == ([[20.0]], [[60.0]])


def test_optimal_token_baseline_is_the_papers():
    rng = random.Random(0)
    for _ in range(30):
        rewards_of = [rng.choice([None, 0.0, 1.0, 0.25]) for _ in range(rng.randint(2, 5))]
        lps = [[rng.uniform(-3, -0.01) for _ in range(rng.randint(1, 6))] for _ in rewards_of]
        masses = [[rng.uniform(math.exp(2 * lp), 1) for lp in row] for row in lps]
        energies = [
            [1 - 2 * math.exp(lp) + m for lp, m in zip(a, b, strict=True)] for a, b in zip(lps, masses, strict=True)
        ]
        energy = token_baseline.gradient_energy(tensor(lps), tensor(masses))
        found = token_baseline.optimal_token_advantages(tensor([rewards_of])[0], energy, ~tensor(lps).isnan())
        agree(found, papers.optimal_token(rewards_of, energies))


def test_hand_numbers_of_the_optimal_token_baseline():
    """Energies 1, 1 of the right one and 3 of the wrong: baselines 1/4, then none."""
    found = token_baseline.optimal_token_advantages(
        torch.tensor([1.0, 0.0], dtype=torch.float64), tensor([[1.0, 1.0], [3.0]]), ~tensor([[1.0, 1.0], [3.0]]).isnan()
    )
    assert found.flatten().tolist() == pytest.approx([0.75, 1.0, -0.25, 0.0], abs=1e-7)
    # The squared norm of a softmax's gradient, |1_y - p|^2, from p_y and the sum of squares alone.
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    exact = (torch.nn.functional.one_hot(torch.tensor(1), 3) - p).square().sum()
    assert float(token_baseline.gradient_energy(p[1].log(), p.square().sum())) == pytest.approx(float(exact))


def test_maxrl_refuses_negative_rewards():
    with pytest.raises(ValueError, match=r"reward \[0, 1\] is -0.5"):
        advantages.maxrl(tensor([[1.0, -0.5]]))


@pytest.mark.parametrize("name", ESTIMATORS)
@settings(deadline=None, max_examples=25)
@given(batches, st.integers(1, 8), st.randoms(use_true_random=False))
def test_invariances_of_advantages(name, groups, quarters, rng):
    ours = ESTIMATORS[name][0]
    given_rewards = tensor(groups)
    base = ours(given_rewards)
    if name != "maxrl":  # whose scale is the mean itself
        torch.testing.assert_close(ours(given_rewards + quarters / 4), base, rtol=1e-9, atol=1e-9)
    rows = rng.sample(range(len(groups)), len(groups))
    columns = rng.sample(range(len(groups[0])), len(groups[0]))
    torch.testing.assert_close(ours(given_rewards[rows][:, columns]), base[rows][:, columns], **CLOSE)
    unscored = torch.full((len(groups), 2), NAN, dtype=torch.float64)
    padded = ours(torch.cat([given_rewards, unscored], dim=1))
    torch.testing.assert_close(padded[:, :-2], base, **CLOSE)
    assert not padded[:, -2:].any()


def test_reinforce_pp_is_the_papers():
    """Token rewards with KL inside, discounted returns, whitened over all tokens of the batch."""
    rng = random.Random(0)
    rows = [[rng.uniform(-3, 0) for _ in range(rng.randint(1, 6))] for _ in range(5)]
    refs = [[value + rng.uniform(-1, 1) for value in row] for row in rows]
    scores = [rng.random() for _ in rows]
    earned = [
        [
            -0.1 * papers.kl("k1", lp, ref) + (score if t == len(row) - 1 else 0.0)
            for t, (lp, ref) in enumerate(zip(row, ref_row, strict=True))
        ]
        for row, ref_row, score in zip(rows, refs, scores, strict=True)
    ]
    expected = papers.whitened([papers.returns(row, 0.9) for row in earned])
    mask = ~tensor(rows).isnan()
    cost = 0.1 * kl_estimate(tensor(rows), tensor(refs), estimator="k1")
    given_rewards = token_rewards(torch.tensor(scores, dtype=torch.float64), mask, cost)
    found = whiten(advantages.discounted_returns(given_rewards, mask, gamma=0.9), mask)
    agree(found, expected)


def test_observations_cost_no_discount():
    mask = torch.tensor([[True, False, True]])
    assert advantages.discounted_returns(tensor([[0.0, NAN, 1.0]]), mask, gamma=0.5).tolist() == [[0.5, 0.0, 1.0]]
