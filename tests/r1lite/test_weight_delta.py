"""What changed in a tensor: without loss, bit for bit, and in the smallest form."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from r1lite.rollout.weight_delta import as_bytes, decode, encode

pytestmark = pytest.mark.quick
DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int64, torch.uint8]


def random(shape, dtype, seed):
    """All bit patterns, NaN and -0.0 among them."""
    drawn = torch.Generator().manual_seed(seed)
    size = torch.empty(shape, dtype=dtype).nbytes
    return torch.randint(0, 256, (size,), generator=drawn, dtype=torch.uint8).view(dtype).reshape(shape).clone()


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(DTYPES),
    st.sampled_from([(1,), (7,), (8,), (3, 5), (64, 33)]),
    st.sampled_from([0.0, 0.005, 0.03, 0.2, 0.6, 1.0]),
    st.integers(0, 1000),
)
def test_any_change_arrives_bit_for_bit(dtype, shape, share, seed):
    before, other = random(shape, dtype, seed), random(shape, dtype, seed + 1)
    picked = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share
    now = torch.where(picked, other, before)
    form, payload = encode(before, now)
    held = before.clone()
    decode(form, payload, held)
    assert torch.equal(as_bytes(held), as_bytes(now))
    assert payload.numel() <= now.nbytes
    assert (form == "same") == torch.equal(as_bytes(before), as_bytes(now))


@pytest.mark.parametrize(
    ("changed", "form", "size"),
    [
        (0, "same", 0),
        (1, "indices", 6),
        (10, "indices", 60),
        (40, "mask", 205),
        (500, "mask", 1125),
        (1000, "whole", 2000),
    ],
)
def test_the_smallest_form_is_chosen(changed, form, size):
    before = torch.zeros(1000, dtype=torch.bfloat16)
    now = before.clone()
    now[:changed] = 1.0
    found, payload = encode(before, now)
    assert (found, payload.numel()) == (form, size)


def test_zeros_of_other_signs_and_nan_are_told_apart_by_their_bits():
    before = torch.tensor([0.0, float("nan"), 1.0, *[2.0] * 61])
    now = before.clone()
    now[0] = -0.0
    form, payload = encode(before, now)
    assert (form, payload.numel()) == ("indices", 8)  # nan is what it was


def test_a_new_tensor_or_one_of_another_shape_goes_as_a_whole():
    now = torch.ones(4)
    assert encode(None, now)[0] == encode(torch.ones(2, 2), now)[0] == encode(now.double(), now)[0] == "whole"


@pytest.mark.parametrize(
    ("form", "payload"),
    [
        ("whole", [0] * 7),
        ("indices", [0] * 7),
        ("indices", [9, 0, 0, 0, 1, 1]),  # beyond the tensor
        ("indices", [255, 255, 255, 255, 1, 1]),  # -1
        ("mask", []),
        ("mask", [128, 1]),
        ("mask", [128, 1, 1, 1]),
        ("same", [0]),
        ("zip", []),
    ],
)
def test_payloads_that_do_not_fit_are_refused(form, payload):
    target = torch.zeros(4, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=r"make no tensor|outside of its tensor"):
        decode(form, torch.tensor(payload, dtype=torch.uint8), target)
    assert not target.any()
