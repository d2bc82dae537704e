"""Intervals and tests against numbers of other programs, and votes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r1lite.evaluation.intervals import bootstrap_interval, mcnemar_exact, mean_rate, paired, sign_flip
from r1lite.rl.passk import wilson_interval
from r1lite.scoring.voting import Vote, majority, same_by, same_text
from verifiers import Problem, resolve

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("a_only", "b_only", "p"),  # scipy.stats.binomtest(a_only, a_only + b_only).pvalue
    [
        (3, 9, 0.14599609375),
        (9, 3, 0.14599609375),
        (0, 6, 0.03125),
        (5, 5, 1.0),
        (0, 0, 1.0),
        (10, 25, 0.016673847800120715),
    ],
)
def test_mcnemar(a_only, b_only, p):
    assert mcnemar_exact(a_only, b_only) == pytest.approx(p, rel=1e-9)


def test_rate_of_zeros_and_ones_is_wilsons():
    rate = mean_rate([1.0] * 7 + [0.0] * 3)
    # scipy.stats.binomtest(7, 10).proportion_ci(method="wilson")
    assert (rate.mean, rate.low, rate.high) == pytest.approx((0.7, 0.396778, 0.892209), abs=1e-5)
    assert (rate.low, rate.high) == pytest.approx(wilson_interval(7, 10))
    assert mean_rate([0.0] * 20).high == pytest.approx(0.161125, abs=1e-5)


def test_rate_of_means_is_narrower_where_problems_agree():
    """By hand: mean .5, variance .01, so 4 problems are .25 / (.01 / 4) = 100 tosses."""
    rate = mean_rate([0.4, 0.6, 0.4, 0.6])
    assert (rate.low, rate.high) == pytest.approx(wilson_interval(50, 100))
    for bad in ([], [0.5, 1.2], [float("nan")]):
        with pytest.raises(ValueError, match="values in"):
            mean_rate(bad)


@given(st.lists(st.sampled_from([0.0, 0.125, 0.5, 0.875, 1.0]), min_size=1, max_size=40))
def test_a_rate_lies_in_its_interval(values):
    rate = mean_rate(values)
    assert 0 <= rate.low <= rate.mean + 1e-9 <= rate.high + 2e-9 <= 1 + 3e-9


def test_paired_comparison():
    a, b = [1.0] * 3 + [0.0] * 9 + [1.0] * 8, [0.0] * 3 + [1.0] * 9 + [1.0] * 8
    found = paired(a, b)
    assert (found.difference, found.a_only, found.b_only, found.problems) == (pytest.approx(0.3), 3, 9, 20)
    assert (found.test, found.p_value) == ("McNemar exact", pytest.approx(0.14599609375))
    assert found.low < 0.3 < found.high
    swapped = paired(b, a)
    assert (swapped.difference, swapped.p_value) == (pytest.approx(-0.3), found.p_value)
    same = paired([0.5, 0.25], [0.5, 0.25])
    assert (same.difference, same.p_value, same.low, same.high) == (0, 1, 0, 0)
    with pytest.raises(ValueError, match="same number of values"):
        paired([1.0], [])


def test_sign_flips_agree_with_enumeration():
    """scipy.stats.permutation_test over all flips: 0.0859375; of six equal differences by hand: 2 / 64."""
    differences = [0.5, 0.25, -0.125, 0.75, 0.5, -0.25, 0.375, 0.125]
    assert sign_flip(differences, resamples=20_000) == pytest.approx(0.0859375, abs=0.006)
    assert sign_flip([0.5] * 6, resamples=20_000) == pytest.approx(2 / 64, abs=0.005)
    assert sign_flip([], resamples=10) == 1.0


def test_bootstrap_of_a_mean():
    """Standard error of 100 tosses at a half: 0.05, so the interval is about 0.4 to 0.6."""
    low, high = bootstrap_interval([0.0, 1.0] * 50)
    assert (low, high) == pytest.approx((0.4, 0.6), abs=0.02)
    assert bootstrap_interval([0.0, 1.0] * 50) == (low, high)


def test_majority_counts_equal_answers_together():
    same = same_by(resolve("math"), Problem("Halve one.", answer="1/2"))
    votes = [Vote("1/2", True), Vote("3", False), Vote("0.5", True), Vote("3", False), Vote(r"\frac{1}{2}", True)]
    assert majority(votes, same) == 1.0
    assert majority(votes, same_text) == 0.0  # as strings, 3 has more votes than any spelling of a half
    assert majority([Vote("3", False), Vote("1/2", True)], same) == 0.5  # a tie
    assert majority([Vote(None, False), Vote(None, False), Vote("1/2", True)], same) == 1.0  # silence is no vote
    assert majority([Vote(None, False)] * 3, same) == 0.0
    for none in ([], [Vote("1", True)]):
        with pytest.raises(ValueError, match="is no vote"):
            majority(none, same)


def test_answers_no_gold_can_be_vote_as_text():
    same = same_by(resolve("math"), Problem("?", answer="1"))
    assert same("???", " ? ??")
    assert not same("???", "1")
    assert not same("1/3", "0.33")  # accepted one way round only
