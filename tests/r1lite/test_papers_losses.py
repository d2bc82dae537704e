"""Every loss, KL and aggregation against plain loops of the papers' formulas, to 1e-10; invariances."""

import math
import random

import papers
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensors_for_tests import CLOSE, NAN, agree, tensor

from r1lite.rl import covariance, losses, preference, regression, trust_region
from r1lite.rl.aggregate import aggregate
from r1lite.rl.kl import kl_estimate

KLS = ["k1", "k2", "k3", "abs", "k1+", "k3+", "k3_corrected"]
AGGREGATIONS = ["token_mean", "sequence_mean", "sequence_sum", "prompt_mean", "constant"]


def sample(seed):
    """Completions as (lp, old, ref, A), some far off policy."""
    rng = random.Random(seed)
    rows = []
    for _ in range(rng.randint(1, 5)):
        lp = [rng.uniform(-4, 0) for _ in range(rng.randint(1, 7))]
        old = [min(value + rng.gauss(0, 0.5), -0.001) for value in lp]
        ref = [min(value + rng.gauss(0, 0.5), -0.001) for value in lp]
        rows.append((lp, old, ref, rng.choice([-1.5, -0.3, 0.0, 0.4, 2.0])))
    return rows


def columns(rows):
    lp, old, ref = (tensor([row[n] for row in rows]) for n in range(3))
    return lp, old, ref, torch.tensor([row[3] for row in rows], dtype=torch.float64), ~lp.isnan()


def each_token(function):
    return lambda lp, old, a: [function(n, o, a) for n, o in zip(lp, old, strict=True)]


def of_ratio(function, **options):
    return each_token(lambda n, o, a: function(math.exp(n - o), a, **options))


LOSSES = {
    "clip": (
        lambda lp, old, a, m: losses.clipped_surrogate(losses.policy_ratio(lp, old), a),
        of_ratio(papers.ppo_token),
    ),
    "clip-higher, dual": (
        lambda lp, old, a, m: losses.clipped_surrogate(losses.policy_ratio(lp, old), a, clip_high=0.28, clip_dual=1.5),
        of_ratio(papers.ppo_token, high=0.28, dual=1.5),
    ),
    "two-sided": (
        lambda lp, old, a, m: losses.clipped_surrogate(losses.policy_ratio(lp, old), a, clip_delta=1.4),
        of_ratio(papers.ppo_token, delta=1.4),
    ),
    "gspo": (
        lambda lp, old, a, m: losses.clipped_surrogate(
            losses.sequence_ratio(lp, old, m), a, clip_low=0.1, clip_high=0.15
        ),
        lambda lp, old, a: [papers.ppo_token(papers.gspo_ratio(lp, old), a, 0.1, 0.15)] * len(lp),
    ),
    "cispo": (
        lambda lp, old, a, m: losses.cispo(losses.policy_ratio(lp, old), lp, a, cap=1.3),
        each_token(lambda n, o, a: papers.cispo_token(n, o, a, 1.3)),
    ),
    "sapo": (lambda lp, old, a, m: losses.sapo(losses.policy_ratio(lp, old), a), of_ratio(papers.sapo_token)),
    "gmpo": (
        lambda lp, old, a, m: losses.gmpo(lp, old, a, m),
        lambda lp, old, a: [papers.gmpo_completion(lp, old, a)] * len(lp),
    ),
    "completion ratio": (
        lambda lp, old, a, m: losses.clipped_surrogate(losses.completion_ratio(lp, old, m), a),
        lambda lp, old, a: [papers.ppo_token(papers.completion_ratio(lp, old), a)] * len(lp),
    ),
    "dppo_tv": (
        lambda lp, old, a, m: trust_region.dppo(lp, old, a, low=0.05, high=0.08, cap=1.5),
        each_token(lambda n, o, a: papers.dppo_token(n, o, a, "tv", 0.05, 0.08, 1.5)),
    ),
    "dppo_kl": (
        lambda lp, old, a, m: trust_region.dppo(lp, old, a, kind="kl", low=0.02, high=0.03),
        each_token(lambda n, o, a: papers.dppo_token(n, o, a, "kl", 0.02, 0.03)),
    ),
    "vespo": (
        lambda lp, old, a, m: trust_region.vespo(trust_region.vespo_weight(lp, old, a, m), lp, a),
        lambda lp, old, a: [-papers.vespo_weight(lp, old, a) * a * n for n in lp],
    ),
    "dro": (
        lambda lp, old, a, m: regression.dro(lp, old, a, beta=0.7),
        each_token(lambda n, o, a: papers.dro_token(n, o, a, 0.7)),
    ),
    "a_star": (
        lambda lp, old, a, m: regression.a_star_po(lp, old, a, m, beta=0.3),
        lambda lp, old, a: [papers.a_star_completion(lp, old, a, 0.3)] * len(lp),
    ),
    "reinforce": (
        lambda lp, old, a, m: losses.reinforce(lp, a),
        each_token(lambda n, o, a: papers.reinforce_token(n, a)),
    ),
}


STOPPED = ("cispo", "gspo", "completion ratio", "dppo_tv", "dppo_kl", "vespo")  # weights without gradient
OF_ROWS = ("gspo", "gmpo", "a_star")  # with sequence_mean, a completion's gradient


def counted(rows):
    """What `aggregate` has to know of a whole update, of which every two rows are one prompt's."""
    lengths = [len(row[0]) for row in rows]
    pairs = [sum(lengths[i - i % 2 : i - i % 2 + 2]) for i in range(len(rows))]
    counts = {"num_tokens": sum(lengths), "num_rows": len(rows), "max_tokens": 11, "num_prompts": (len(rows) + 1) // 2}
    return counts, pairs


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("method", AGGREGATIONS)
def test_losses_and_aggregations_are_the_papers(name, method):
    ours, theirs = LOSSES[name]
    for seed in range(25):
        rows = sample(seed)
        lp, old, _, a, mask = columns(rows)
        counts, pairs = counted(rows)
        found = aggregate(ours(lp, old, a, mask), mask, method=method, prompt_tokens=torch.tensor(pairs), **counts)
        expected = papers.aggregated([theirs(lp, old, a) for lp, old, _, a in rows], method, 11)
        assert float(found) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", KLS)
def test_kl_and_its_gradient_are_the_papers(name):
    for seed in range(25):
        rows = sample(seed)
        lp, old, ref, _, mask = columns(rows)
        lp.requires_grad_()
        ratio = losses.policy_ratio(lp, old)
        found = kl_estimate(lp, ref, estimator=name, ratio=ratio)
        tokens = [[(n, r, o) for n, o, r in zip(lp, old, ref, strict=True)] for lp, old, ref, _ in rows]
        agree(found.detach(), [[papers.kl(name, *token) for token in row] for row in tokens])
        (gradient,) = torch.autograd.grad(torch.where(mask, found, 0.0).sum(), lp)
        agree(gradient, [[papers.kl_gradient(name, *token) for token in row] for row in tokens])


def test_k3_corrected_needs_the_ratio():
    with pytest.raises(ValueError, match="ratio new/old"):
        kl_estimate(tensor([[0.0]]), tensor([[0.0]]), estimator="k3_corrected")


def test_estimates_of_kl_are_bounded_where_they_could_overflow():
    far = kl_estimate(tensor([[-500.0]]), tensor([[0.0]]), estimator="k3")
    assert float(far) == pytest.approx(math.exp(20) * 481 - 501)
    for name in ("k3", "k3+", "k3_corrected"):
        ratio = torch.ones(1, 1, dtype=torch.float64)
        assert float(kl_estimate(tensor([[-500.0]]), tensor([[0.0]]), estimator=name, ratio=ratio, cap=10.0)) == 10.0


def test_k1_has_no_gradient_on_average_and_k2s_is_that_of_the_kl():
    """Exact expectations over a vocabulary of 5: what --kl-estimator's help says."""
    torch.manual_seed(0)
    logits = (0.5 * torch.randn(5, dtype=torch.float64)).requires_grad_()  # near enough for k3 not to be bounded
    ref = (0.5 * torch.randn(5, dtype=torch.float64)).log_softmax(0)
    lp = logits.log_softmax(0)
    (exact,) = torch.autograd.grad((lp.exp() * (lp - ref)).sum(), logits, retain_graph=True)
    found = {}
    for name in KLS:
        values = kl_estimate(lp, ref, estimator=name, ratio=(lp - lp.detach()).exp())
        (found[name],) = torch.autograd.grad((lp.detach().exp() * values).sum(), logits, retain_graph=True)
    assert found["k1"].abs().max() < 1e-12
    for name in ("k2", "k1+", "k3+", "k3_corrected"):
        torch.testing.assert_close(found[name], exact, **CLOSE)
    assert (found["k3"] - exact).abs().max() > 0.01


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in STOPPED])
def test_gradients_of_losses_match_finite_differences(name):
    for seed in range(4):
        lp, old, _, a, mask = columns(sample(seed))
        lp = torch.where(mask, lp, 0.0).requires_grad_()
        old = torch.where(mask, old, 0.0)
        assert torch.autograd.gradcheck(
            lambda given, old=old, a=a, mask=mask: torch.where(mask, LOSSES[name][0](given, old, a, mask), 0.0).sum(),
            (lp,),
        )


def test_gradients_with_a_stopped_part():
    """CISPO's weight carries none; GSPO's token form has that of the completion's ratio."""
    for seed in range(25):
        rows = sample(seed)
        lp, old, _, a, mask = columns(rows)
        lp.requires_grad_()
        (gradient,) = torch.autograd.grad(torch.where(mask, LOSSES["cispo"][0](lp, old, a, mask), 0.0).sum(), lp)
        agree(
            gradient, [[-min(math.exp(n - o), 1.3) * a for n, o in zip(lp, old, strict=True)] for lp, old, _, a in rows]
        )
        (gradient,) = torch.autograd.grad(
            (torch.where(mask, LOSSES["gspo"][0](lp, old, a, mask), 0.0).sum(dim=1) / mask.sum(dim=1)).sum(), lp
        )
        expected = []
        for row_lp, row_old, _, row_a in rows:
            s = papers.gspo_ratio(row_lp, row_old)
            held = (row_a > 0 and s > 1.15) or (row_a < 0 and s < 0.9)
            expected.append([0.0 if held else -row_a * s / len(row_lp)] * len(row_lp))
        agree(gradient, expected)


def test_at_ratio_1_every_loss_has_the_policy_gradient():
    lp, _, _, a, mask = columns(sample(3))
    lp = torch.where(mask, lp, -1.0).requires_grad_()
    for name, (ours, _) in LOSSES.items():
        values = torch.where(mask, ours(lp, lp.detach(), a, mask), 0.0)
        per_row = values.sum(dim=1) / (mask.sum(dim=1) if name in OF_ROWS else 1)
        (gradient,) = torch.autograd.grad(per_row.sum(), lp)
        scale = 1 / mask.sum(dim=1, keepdim=True).double() if name in ("gspo", "gmpo") else 1.0
        scale = 2 * 0.3 if name == "a_star" else scale  # of a squared error with beta .3
        torch.testing.assert_close(gradient, torch.where(mask, -a[:, None] * scale, 0.0), **CLOSE)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("method", AGGREGATIONS)
@settings(deadline=None, max_examples=8)
@given(st.integers(0, 10_000))
def test_padding_order_and_split_change_nothing(name, method, seed):
    rows = [*sample(seed), *sample(seed + 1)]
    ours = LOSSES[name][0]
    counts, pairs = counted(rows)

    def share(part, pad=0, pairs=pairs):
        lp, old, _, a, mask = columns(part)
        if pad:
            lp, old = (torch.nn.functional.pad(x, (0, pad), value=NAN) for x in (lp, old))
            mask = torch.nn.functional.pad(mask, (0, pad), value=False)
        values = ours(lp, old, a, mask)
        return float(aggregate(values, mask, method=method, prompt_tokens=torch.tensor(pairs), **counts))

    whole = share(rows)
    assert share(rows, pad=3) == pytest.approx(whole, abs=1e-12)
    assert share(rows[::-1], pairs=pairs[::-1]) == pytest.approx(whole, abs=1e-12)
    cut = random.Random(seed).randint(1, len(rows) - 1)
    assert share(rows[:cut], pairs=pairs[:cut]) + share(rows[cut:], pairs=pairs[cut:]) == pytest.approx(
        whole, abs=1e-12
    )


def test_padding_has_no_gradient():
    """Not even where NaN stands there."""
    for name, (ours, _) in LOSSES.items():
        lp, old, _, a, mask = columns(sample(1))
        filled = torch.where(mask, lp, -1.0).requires_grad_()
        values = ours(filled, torch.where(mask, old, -2.0), a, mask)
        aggregate(values, mask, method="token_mean", num_tokens=5, num_rows=2, max_tokens=9).backward()
        assert filled.grad is not None, name
        assert not filled.grad[~mask].any(), name


def test_token_advantages_are_taken_as_they_are():
    lp, old, _, a, mask = columns(sample(2))
    spread = a[:, None].expand_as(lp)
    for name in LOSSES.keys() - {"gmpo", "a_star"}:
        torch.testing.assert_close(
            LOSSES[name][0](lp, old, spread, mask)[mask], LOSSES[name][0](lp, old, a, mask)[mask]
        )


def test_dppo_bounds_probabilities_and_not_ratios():
    """A rare token may grow tenfold; a likely one may not lose .3."""
    lp, old = (tensor([row]).log() for row in ([0.01, 0.6, 0.01, 0.6], [0.001, 0.9, 0.001, 0.3]))
    less, likelier = trust_region.dppo_held(lp, old, torch.tensor([-1.0]))
    assert (less.tolist(), likelier.tolist()) == ([[False, True, False, False]], [[False] * 4])
    less, likelier = trust_region.dppo_held(lp, old, torch.tensor([1.0]))
    assert (less.tolist(), likelier.tolist()) == ([[False] * 4], [[False, False, False, True]])
    divergence = trust_region.binary_divergence(lp, old, kind="kl")
    expected = 0.9 * math.log(0.9 / 0.6) + 0.1 * math.log(0.1 / 0.4)
    assert float(divergence[0, 1]) == pytest.approx(expected, abs=1e-6)


def test_vespo_weighs_a_completion_once_with_the_engines_mismatch():
    lp, old, mask = tensor([[-1.0, -2.0]]), tensor([[-1.2, -2.1]]), torch.ones(1, 2, dtype=torch.bool)
    for a in (1.0, -1.0):
        correction = tensor([[0.9, 1.3]])
        found = trust_region.vespo_weight(lp, old, torch.tensor([a]), mask, correction=correction)
        assert float(found) == pytest.approx(papers.vespo_weight([-1.0, -2.0], [-1.2, -2.1], a, 0.9 * 1.3), rel=1e-10)
        assert float(trust_region.vespo_weight(lp, lp, torch.tensor([a]), mask)) == pytest.approx(1.0)
        whole = trust_region.vespo_weight(lp, old, torch.tensor([a]), mask, correction=tensor([[1.17]]))
        assert float(whole) == pytest.approx(float(found), rel=1e-10)


def test_luspo_is_the_sequence_ratio_summed_over_tokens():
    """arXiv:2602.05261; TRL's `luspo`: the loss of a completion times its length, mean over completions."""
    for seed in range(10):
        rows = sample(seed)
        lp, old, _, a, mask = columns(rows)
        lp.requires_grad_()
        values = LOSSES["gspo"][0](lp, old, a, mask)
        found = aggregate(values, mask, method="sequence_sum", **counted(rows)[0])
        expected = [papers.ppo_token(papers.gspo_ratio(n, o), x, 0.1, 0.15) * len(n) for n, o, _, x in rows]
        assert float(found.detach()) == pytest.approx(papers.mean(expected), rel=1e-10, abs=1e-10)
        (gradient,) = torch.autograd.grad(found, lp)
        ratio = [papers.gspo_ratio(n, o) for n, o, _, _ in rows]
        held = [(x > 0 and s > 1.15) or (x < 0 and s < 0.9) for s, (_, _, _, x) in zip(ratio, rows, strict=True)]
        agree(
            gradient,
            [[0.0 if h else -x * s / len(rows)] * len(n) for s, h, (n, _, _, x) in zip(ratio, held, rows, strict=True)],
        )


def test_the_completions_ratio_has_the_gradient_of_a_single_action():
    """With sequence_sum, as in TRL's RLOO: d(-s A) / d lp_t = -s A at each of its tokens."""
    lp, old, _, a, mask = columns(sample(4))
    lp.requires_grad_()
    values = -losses.completion_ratio(lp, old, mask) * a[:, None]
    (gradient,) = torch.autograd.grad(torch.where(mask, values, 0.0).sum(), lp)
    free = lp.detach().requires_grad_()
    product = torch.where(mask, free - old, 0.0).sum(dim=1).exp()
    (expected,) = torch.autograd.grad((-product * a).sum(), free)
    torch.testing.assert_close(gradient, expected, **CLOSE)


def test_tokens_of_high_covariance():
    lp = torch.tensor([-0.1, -5.0, -0.2, -4.0, -1.0, -2.0], dtype=torch.float64)
    a = torch.tensor([2.0, -2.0, 2.0, -2.0, 0.5, -0.5], dtype=torch.float64)
    by_hand = [(x - papers.mean(lp.tolist())) * (y - papers.mean(a.tolist())) for x, y in zip(lp, a, strict=True)]
    cov = covariance.covariances(lp, a)
    assert cov.tolist() == pytest.approx([float(value) for value in by_hand], rel=1e-10)
    assert float(cov.mean()) == pytest.approx(float(((lp - lp.mean()) * (a - a.mean())).mean()))
    assert covariance.kl_cov_tokens(lp, a, share=0.4).tolist() == (cov >= cov.sort().values[-2]).tolist()
    assert covariance.kl_cov_tokens(lp, a).sum() == 1  # at least one
    inside = (cov > 1) & (cov < 5)
    assert 1 < int(inside.sum()) < 6
    seen = torch.zeros(6, dtype=torch.bool)
    for seed in range(20):
        chosen = covariance.clip_cov_tokens(lp, a, share=1 / 6, generator=torch.Generator().manual_seed(seed))
        assert chosen.sum() == 1
        seen |= chosen
    assert seen.tolist() == inside.tolist()  # drawn at random, from all that qualify and no others
    assert torch.equal(covariance.clip_cov_tokens(lp, a, share=1.0), inside)
    assert not covariance.clip_cov_tokens(lp, torch.zeros_like(a)).any()


def test_what_becomes_of_tokens_of_high_covariance():
    lp, old, _, a, mask = columns(sample(5))
    chosen = torch.zeros_like(mask)
    chosen[0, 0] = True
    surrogate = losses.clipped_surrogate(losses.policy_ratio(lp, old), a)
    clipped = covariance.clip_cov(surrogate, chosen)
    assert float(clipped[0, 0]) == 0
    assert torch.equal(clipped[mask & ~chosen], surrogate[mask & ~chosen])
    found = covariance.kl_cov(losses.policy_ratio(lp, old), lp, old, a, chosen, coef=0.7)
    expected = [
        [
            papers.kl_cov_token(n, o, float(a[i]), (i, t) == (0, 0), 0.7)
            for t, (n, o) in enumerate(zip(x, y, strict=True))
        ]
        for i, (x, y, _, _) in enumerate(sample(5))
    ]
    agree(found, expected)


def test_optimal_value():
    for beta in (0.05, 0.5, 3.0):
        groups = [[0.0, 1.0, 1.0], [0.2, None, 0.9]]
        found = regression.optimal_value(tensor(groups), beta=beta)
        assert found.tolist() == pytest.approx([papers.optimal_value(g, beta) for g in groups], rel=1e-10)
    assert float(regression.optimal_value(tensor([[0.0, 1.0]]), beta=1e-3)) == pytest.approx(1.0, abs=1e-3)  # the best
    assert float(regression.optimal_value(tensor([[0.0, 1.0]]), beta=1e3)) == pytest.approx(0.5, abs=1e-3)  # the mean
    assert math.isnan(regression.optimal_value(tensor([[None, None]]), beta=1.0))


def test_a_star_is_solved_by_the_optimal_policy():
    """pi* = ref e^((r - V*) / beta) has loss 0: the regression's optimum is that of the KL-regularised objective."""
    ref, reward, beta = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64), torch.tensor([1.0, 0.0, 0.4]).double(), 0.7
    value = beta * (ref * (reward / beta).exp()).sum().log()
    best = ref * ((reward - value) / beta).exp()
    assert float(best.sum()) == pytest.approx(1.0)
    mask = torch.ones(3, 1, dtype=torch.bool)
    found = regression.a_star_po(best.log()[:, None], ref.log()[:, None], reward - value, mask, beta=beta)
    assert found.abs().max() < 1e-20


def test_positive_nll():
    """By hand: right are rows 1 and 3, of 2 + 1 tokens: (0.5 + 1.5 + 0.25) / 3 = 0.75."""
    lp = tensor([[-0.5, -1.5], [-7.0, -9.0, -4.0], [-0.25]]).requires_grad_()
    mask, right = ~lp.detach().isnan(), torch.tensor([True, False, True])
    found = losses.positive_nll(lp, mask, right, num_tokens=3)
    assert found.item() == pytest.approx(0.75, abs=1e-10)
    assert found.item() == pytest.approx(papers.positive_nll([[-0.5, -1.5], [-0.25]]), abs=1e-10)
    (gradient,) = torch.autograd.grad(found, lp)
    assert gradient.tolist() == [[-1 / 3, -1 / 3, 0.0], [0.0] * 3, [-1 / 3, 0.0, 0.0]]
    split = sum(
        losses.positive_nll(lp[i : i + 1], mask[i : i + 1], right[i : i + 1], num_tokens=3).item() for i in range(3)
    )
    assert split == pytest.approx(0.75, abs=1e-10)  # whatever micro-batches the rows are in
    assert losses.positive_nll(lp, mask, torch.zeros(3, dtype=torch.bool), num_tokens=0).item() == 0


def test_dpo_and_ipo_are_the_papers():
    rng = random.Random(0)
    pairs = [(rng.gauss(0, 3), rng.gauss(0, 3)) for _ in range(20)]
    chosen, rejected = (torch.tensor(side, dtype=torch.float64) for side in zip(*pairs, strict=True))
    for beta, smoothing in ((0.1, 0.0), (0.5, 0.2)):
        found = preference.dpo(chosen, rejected, beta=beta, smoothing=smoothing)
        assert found.tolist() == pytest.approx([papers.dpo_pair(*p, beta, smoothing) for p in pairs], rel=1e-10)
        found = preference.ipo(chosen, rejected, beta=beta)
        assert found.tolist() == pytest.approx([papers.ipo_pair(*p, beta) for p in pairs], rel=1e-10)
    assert float(preference.dpo(torch.zeros(1), torch.zeros(1))) == pytest.approx(math.log(2))
    assert float(preference.ipo(torch.tensor([5.0]), torch.tensor([0.0]), beta=0.1)) == 0  # a margin of 1 / (2 beta)
