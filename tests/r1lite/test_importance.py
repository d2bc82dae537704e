"""Corrections for engine mismatch: hand numbers, plain loops, invariances."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from r1lite.rl.importance import importance_ratio, importance_weights, mismatch, off_policy_mask

pytestmark = pytest.mark.quick

NAN = math.nan


def matrix(*rows):
    return torch.tensor(rows, dtype=torch.float64)


OLD, ENGINE = matrix([-1.0, -2.0, NAN], [-0.5, -0.5, -0.5]), matrix([-1.5, -1.9, 7.0], [-0.5, NAN, -1.1])
MASK = torch.tensor([[True, True, False], [True, True, True]])


@pytest.mark.parametrize(
    ("level", "logs"),
    [
        ("token", [[0.5, -0.1, 0.0], [0.0, 0.0, 0.6]]),  # what the engine didn't say counts as agreement
        ("sequence", [[0.4], [0.6]]),
        ("geometric", [[0.2], [0.2]]),
    ],
)
def test_ratio_hand_numbers(level, logs):
    assert torch.allclose(importance_ratio(OLD, ENGINE, MASK, level=level), matrix(*logs).exp())


def test_a_ratio_never_overflows():
    for level in ("token", "sequence", "geometric"):
        assert torch.isfinite(importance_ratio(matrix([0.0]), matrix([-1e6]), matrix([1.0]) > 0, level=level)).all()


@pytest.mark.parametrize(
    ("mode", "expected"), [("truncate", [0.5, 0.5, 1.0, 2.0, 2.0]), ("mask", [0.0, 0.5, 1.0, 2.0, 0.0])]
)
def test_weights(mode, expected):
    ratio = matrix([0.1, 0.5, 1.0, 2.0, 9.0])
    assert importance_weights(ratio, mode=mode, low=0.5, high=2.0).tolist()[0] == expected


@pytest.mark.parametrize(("low", "high"), [(-0.1, 2.0), (1.1, 2.0), (0.0, 0.9)])
def test_bounds_must_enclose_one(low, high):
    with pytest.raises(ValueError, match="importance bounds"):
        importance_weights(matrix([1.0]), low=low, high=high)


def test_off_policy_mask():
    logprobs = matrix([-2.0, -1.0, 9.0], [-0.6, -0.6, -0.6], [-3.0, -3.0, -3.0])
    sampled = matrix([-1.0, -1.0, NAN], [-0.5, -0.5, NAN], [-0.5, -0.5, -0.5])
    mask = torch.tensor([[True, True, False], [True, True, True], [True, True, True]])
    kept = off_policy_mask(logprobs, sampled, torch.tensor([-1.0, -1.0, 1.0]), mask, threshold=0.2)
    assert kept.tolist() == [[False], [True], [True]]  # drifts .5, .0667, 2.5; the last is to become likelier
    by_token = torch.tensor([[-1.0, 1.0, 0.0]] * 3)
    assert off_policy_mask(logprobs, sampled, by_token, mask, threshold=0.2)[0].tolist() == [False, True, True]


def test_mismatch():
    found = mismatch(OLD, ENGINE, MASK)
    logs = [0.5, -0.1, 0.0, 0.6]
    assert found["tokens"] == 4
    assert found["kl"] == pytest.approx(sum(math.exp(d) - d - 1 for d in logs) / 4)
    assert found["logprob_max"] == pytest.approx(0.6)
    assert [found[f"weight_{part}"] for part in ("min", "max")] == pytest.approx([math.exp(-0.1), math.exp(0.6)])
    assert found["weight_mean"] == pytest.approx(sum(map(math.exp, logs)) / 4)
    nothing = mismatch(OLD, torch.full_like(OLD, NAN), MASK)
    assert (nothing["kl"], nothing["weight_mean"], nothing["tokens"]) == (0.0, 1.0, 0)


numbers = st.floats(-5, 0)
rows = st.lists(st.tuples(numbers, numbers, st.booleans()), min_size=4, max_size=4)


@settings(deadline=None, max_examples=60)
@given(st.lists(rows, min_size=1, max_size=4), st.sampled_from(["token", "sequence", "geometric"]))
def test_the_formula_in_plain_loops_and_its_invariances(table, level):
    expected = []
    for row in table:
        differences = [old - engine if inside else 0.0 for old, engine, inside in row]
        count = max(1, sum(inside for *_, inside in row))
        total = sum(differences)
        logs = {"token": differences, "sequence": [total], "geometric": [total / count]}[level]
        expected.append([math.exp(min(20.0, max(-20.0, log))) for log in logs])
    old, engine = (matrix(*([entry[n] for entry in row] for row in table)) for n in (0, 1))
    mask = torch.tensor([[entry[2] for entry in row] for row in table])
    found = importance_ratio(old, engine, mask, level=level)
    assert torch.allclose(found, matrix(*expected), atol=1e-10, rtol=1e-10)
    reverse = torch.arange(len(table) - 1, -1, -1)
    assert torch.equal(importance_ratio(old[reverse], engine[reverse], mask[reverse], level=level), found[reverse])
    wider = [torch.nn.functional.pad(x, (0, 2), value=fill) for x, fill in ((old, NAN), (engine, 3.0), (mask, False))]
    padded = importance_ratio(*wider, level=level)[:, : found.shape[1]]
    assert torch.allclose(padded, found, atol=1e-12, rtol=1e-12)
