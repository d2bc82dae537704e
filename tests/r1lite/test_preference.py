"""Bradley-Terry and calibration: hand numbers, a plain reference, invariances, gradients."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from r1lite.rl.preference import bradley_terry, calibration

pytestmark = pytest.mark.quick


def column(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(
    ("chosen", "rejected", "options", "expected"),
    [
        (0.0, 0.0, {}, math.log(2)),
        (1.0, -1.0, {}, math.log(1 + math.exp(-2))),
        (1.0, -1.0, {"margins": 2.0}, math.log(2)),
        (1.0, 3.0, {"centre_coef": 0.01}, math.log(1 + math.exp(2)) + 0.16),
        (1000.0, -1000.0, {}, 0.0),
        (-1000.0, 1000.0, {}, 2000.0),  # no overflow
    ],
)
def test_bradley_terry_hand_numbers(chosen, rejected, options, expected):
    assert float(bradley_terry(column(chosen), column(rejected), **options)) == pytest.approx(expected)


def test_margins_by_pair_and_gradients():
    chosen, rejected = column(0.3, -0.2).requires_grad_(), column(0.1, 0.5).requires_grad_()
    margins = column(0.0, 0.7)
    found = bradley_terry(chosen, rejected, margins=margins, centre_coef=0.1)
    for n in range(2):
        d = (chosen[n] - rejected[n] - margins[n]).item()
        expected = math.log1p(math.exp(-d)) + 0.1 * (chosen[n] + rejected[n]).item() ** 2
        assert found[n].item() == pytest.approx(expected, abs=1e-12)
    assert torch.autograd.gradcheck(
        lambda a, b: bradley_terry(a, b, margins=margins, centre_coef=0.1).sum(), (chosen, rejected)
    )


def test_calibration_hand_numbers():
    # Confidences .88, .88, .62 and a tie at .5: right, wrong, right, half.
    logit = [math.log(22 / 3), -math.log(22 / 3), math.log(31 / 19), 0.0]
    found = calibration(column(*logit), column(0.0, 0.0, 0.0, 0.0), num_bins=5)
    assert found.accuracy == pytest.approx(2.5 / 4)
    assert found.ties == 1
    assert found.brier == pytest.approx((0.12**2 + 0.88**2 + 0.38**2 + 0.25) / 4)
    assert found.loss == pytest.approx(-(math.log(0.88) + math.log(0.12) + math.log(0.62) + math.log(0.5)) / 4)
    assert [(b.count, round(b.confidence, 9), b.accuracy) for b in found.bins] == [
        (1, 0.5, 0.5),
        (1, 0.62, 1.0),
        (2, 0.88, 0.5),
    ]
    assert found.ece == pytest.approx((0.0 + 0.38 + 2 * 0.38) / 4)


def test_calibrated_odds_have_no_error():
    """875 of 1,000 pairs are right where 87.5 % are promised."""
    difference = column(*[math.log(7)] * 875, *[-math.log(7)] * 125)
    assert calibration(difference, torch.zeros_like(difference)).ece == pytest.approx(0, abs=1e-12)
    sure = difference * 5
    assert calibration(sure, torch.zeros_like(sure)).ece > 0.09


@pytest.mark.parametrize("bad", [[], [math.nan], [math.inf]])
def test_nonsense_is_refused(bad):
    with pytest.raises(ValueError, match="finite rewards"):
        calibration(column(*bad), torch.zeros(len(bad), dtype=torch.float64))


@given(st.lists(st.tuples(st.floats(-30, 30), st.floats(-30, 30)), min_size=1, max_size=20), st.integers(-8, 8))
def test_only_differences_count(pairs, shift):
    chosen, rejected = (column(*side) for side in zip(*pairs, strict=True))
    found, moved = calibration(chosen, rejected), calibration(chosen + shift, rejected + shift)
    assert moved.loss == pytest.approx(found.loss, abs=1e-9)
    assert moved.brier == pytest.approx(found.brier, abs=1e-9)
    assert 0 <= found.ece <= 1
    assert sum(b.count for b in found.bins) == len(pairs)
    assert torch.allclose(
        bradley_terry(chosen, rejected), bradley_terry(chosen + shift, rejected + shift), atol=1e-9, rtol=0
    )
