"""Advantages against hand numbers and their invariances."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from r1lite.rl.advantages import group_relative, has_signal

pytestmark = pytest.mark.quick

NAN = math.nan


@pytest.mark.parametrize(
    ("rewards", "options", "expected"),
    [
        ([1.0, 0.8, 0.4, 0.2], {"ddof": 0, "eps": 0.0}, [1.265, 0.632, -0.632, -1.265]),
        ([1.0, 0.8, 0.4, 0.2], {}, [1.0951, 0.5476, -0.5476, -1.0951]),
        ([1.0, 0.8, 0.4, 0.2], {"scale": "none"}, [0.4, 0.2, -0.2, -0.4]),
        ([1.0, NAN, 0.0, NAN], {}, [0.7070, 0.0, -0.7070, 0.0]),
    ],
)
def test_hand_numbers(rewards, options, expected):
    found = group_relative(torch.tensor([rewards], dtype=torch.float64), **options)
    assert found.tolist()[0] == pytest.approx(expected, abs=6e-4 if options.get("ddof") == 0 else 5e-5)


@pytest.mark.parametrize("rewards", [[0.1, 0.1, 0.1], [NAN, NAN, NAN], [NAN, 1.0, NAN], [0.1, NAN, 0.1]])
@pytest.mark.parametrize("scale", ["std", "none"])
def test_no_signal_is_exactly_zero(rewards, scale):
    tensor = torch.tensor([rewards])
    assert group_relative(tensor, scale=scale).tolist() == [[0.0, 0.0, 0.0]]
    assert has_signal(tensor).tolist() == [False]


def test_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match="G >= 2"):
        group_relative(torch.tensor([[1.0]]))
    with pytest.raises(ValueError, match="infinite"):
        group_relative(torch.tensor([[1.0, math.inf]]))


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.1]), min_size=2, max_size=12),
    st.floats(-3, 3).map(lambda x: round(x, 2)),
    st.randoms(use_true_random=False),
)
def test_shift_order_and_unscored_siblings_change_nothing(rewards, shift, rng):
    tensor = torch.tensor([rewards], dtype=torch.float64)
    base = group_relative(tensor)
    assert float(base.sum()) == pytest.approx(0, abs=1e-9)
    # Shifting may make equal rewards unequal by rounding, never the other way round: keep to exact quarters.
    assert torch.allclose(group_relative(tensor + round(shift * 4) / 4), base, atol=1e-6)
    order = list(range(len(rewards)))
    rng.shuffle(order)
    assert torch.allclose(group_relative(tensor[:, order]), base[:, order])
    padded = torch.cat([tensor, torch.full((1, 2), NAN, dtype=torch.float64)], dim=1)
    assert torch.allclose(group_relative(padded)[:, : len(rewards)], base)


def test_rows_do_not_see_each_other():
    rows = torch.tensor([[1.0, 0.0, 0.0], [5.0, 5.0, 5.0], [0.0, NAN, 2.0]])
    together = group_relative(rows)
    for n in range(3):
        assert torch.equal(group_relative(rows[n : n + 1]), together[n : n + 1])
