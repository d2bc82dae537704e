"""Tiles of the vocabulary give what all logits at once give, and never hold more than a tile."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from r1lite.rl import logprobs as module
from r1lite.rl import tiles
from r1lite.rl.logprobs import entropies, head_logprobs, is_tiled, token_logprobs
from r1lite.rl.tiles import Head

# (scale, softcap, bias, temperature)
HEADS = [
    (1.0, None, False, 1.0),
    (1.0, None, True, 0.7),
    (0.25, None, True, 1.0),
    (1.0, 3.0, False, 1.3),
    (0.5, 2.0, True, 0.8),
]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(tiles, "_CPU_TILE", (5, 7))
    monkeypatch.setattr(module, "_TILED_FROM_NARROW", 0)


def make(tokens, vocabulary, width, *, scale=1.0, softcap=None, bias=False, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(tokens, width, dtype=dtype, generator=generator, requires_grad=True)
    weight = torch.randn(vocabulary, width, dtype=dtype, generator=generator, requires_grad=True)
    shift = torch.randn(vocabulary, dtype=dtype, generator=generator, requires_grad=True) if bias else None
    ids = torch.randint(0, vocabulary, (tokens,), generator=generator)
    return hidden, Head(weight, shift, scale, softcap), ids


def written_out(hidden, head, ids, temperature):
    """The definition, in float64, all logits at once."""
    logits = hidden.double() @ head.weight.double().T * head.scale
    if head.bias is not None:
        logits = logits + head.bias.double()
    if head.softcap is not None:
        logits = head.softcap * torch.tanh(logits / head.softcap)
    logprobs = (logits / temperature).log_softmax(-1)
    return logprobs.gather(-1, ids[..., None]).squeeze(-1), -(logprobs.exp() * logprobs).sum(-1)


def gradients(outputs, hidden, head, pulls):
    for leaf in (hidden, head.weight, head.bias):
        if leaf is not None:
            leaf.grad = None
    torch.autograd.backward(outputs, pulls)
    return [leaf.grad for leaf in (hidden, head.weight, head.bias) if leaf is not None]


@pytest.mark.parametrize(("scale", "softcap", "bias", "temperature"), HEADS)
def test_gradcheck(scale, softcap, bias, temperature):
    hidden, head, ids = make(6, 17, 3, scale=scale, softcap=softcap, bias=bias)
    leaves = [leaf for leaf in (hidden, head.weight, head.bias) if leaf is not None]

    def both(*given):
        tiled = Head(given[1], given[2] if bias else None, scale, softcap)
        return head_logprobs(given[0], tiled, ids, temperature=temperature, entropy=True)

    assert torch.autograd.gradcheck(both, leaves)
    assert torch.autograd.gradcheck(lambda *given: both(*given)[0], leaves)


@pytest.mark.parametrize(("scale", "softcap", "bias", "temperature"), HEADS)
@pytest.mark.parametrize("into_grad", [False, True])
def test_float32_is_exact_to_1e_5(scale, softcap, bias, temperature, into_grad, monkeypatch):
    monkeypatch.setattr(tiles, "_CPU_TILE", (33, 129))
    hidden, head, ids = make(100, 1000, 16, scale=scale, softcap=softcap, bias=bias, dtype=torch.float32)
    pulls = [torch.randn(100), torch.randn(100)]
    found = head_logprobs(hidden, head, ids, temperature=temperature, entropy=True, into_grad=into_grad)
    expected = written_out(hidden, head, ids, temperature)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours.double(), theirs, atol=1e-5, rtol=1e-5)
    ours = gradients(found, hidden, head, pulls)
    theirs = gradients(expected, hidden, head, [pull.double() for pull in pulls])
    for mine, other in zip(ours, theirs, strict=True):
        assert float((mine - other).abs().max()) <= 1e-5 * float(other.abs().max())


@settings(deadline=None, max_examples=40)
@given(
    tokens=st.integers(1, 12),
    vocabulary=st.integers(1, 30),
    tile=st.tuples(st.integers(1, 13), st.integers(1, 31)),
    spread=st.sampled_from([0.01, 1.0, 300.0]),
)
def test_any_tiles_give_the_same(tokens, vocabulary, tile, spread):
    """Logits of hundreds too, whose exponentials would overflow."""
    hidden, head, ids = make(tokens, vocabulary, 3)
    head = Head((head.weight.detach() * spread).requires_grad_())
    before, tiles._CPU_TILE = tiles._CPU_TILE, tile
    try:
        found = head_logprobs(hidden, head, ids, entropy=True)
        grads = gradients(found, hidden, head, [torch.ones(tokens).double()] * 2)
    finally:
        tiles._CPU_TILE = before
    expected = written_out(hidden, head, ids, 1.0)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)
    for ours, theirs in zip(grads, gradients(expected, hidden, head, [torch.ones(tokens).double()] * 2), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-8 * max(1.0, spread), rtol=1e-8)


def test_the_gradient_is_added_where_it_lies():
    hidden, head, ids = make(11, 20, 4)
    for _ in range(3):  # three micro-batches
        head_logprobs(hidden, head, ids).sum().backward()
    expected, head.weight.grad = head.weight.grad, None
    head_logprobs(hidden, head, ids, into_grad=True).sum().backward()
    place = head.weight.grad.data_ptr()
    for _ in range(2):
        head_logprobs(hidden, head, ids, into_grad=True).sum().backward()
    assert head.weight.grad.data_ptr() == place
    torch.testing.assert_close(head.weight.grad, expected)


def test_a_frozen_head_gets_no_gradient():
    hidden, head, ids = make(11, 20, 4)
    head.weight.requires_grad_(False)
    head_logprobs(hidden, head, ids, into_grad=True).sum().backward()
    assert head.weight.grad is None
    assert hidden.grad is not None


def test_bfloat16_hidden_states_keep_float32_sums():
    hidden, head, ids = make(64, 500, 16, dtype=torch.float32)
    low = hidden.detach().bfloat16().requires_grad_()
    found = head_logprobs(low, head, ids, entropy=True)
    assert [value.dtype for value in found] == [torch.float32] * 2
    rounded = Head(head.weight.detach().bfloat16().float())
    expected = written_out(low.detach().float(), rounded, ids, 1.0)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=0.05, rtol=0.02)  # logits of 10 in 8 bits
    (found[0].sum() + found[1].sum()).backward()
    assert low.grad.dtype == torch.bfloat16
    assert head.weight.grad.dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):  # the surroundings' precision is not the head's
        inside = head_logprobs(hidden, head, ids)
    assert torch.equal(inside, head_logprobs(hidden, head, ids))


def test_entropy_by_hand():
    assert float(entropies(torch.tensor([0.0, 0.0, -torch.inf]))) == pytest.approx(0.6931472)
    assert float(entropies(torch.tensor([1.0, -1.0]), temperature=2.0)) == pytest.approx(0.5822031)
    hidden, head, ids = make(9, 16, 4)
    logits = head.logits(hidden, temperature=0.5)
    found = head_logprobs(hidden, head, ids, temperature=0.5, entropy=True)
    torch.testing.assert_close(found, (token_logprobs(logits, ids), entropies(logits)))


def test_which_way_is_taken(monkeypatch):
    monkeypatch.undo()
    assert not is_tiled(16384, 60, 128)
    assert not is_tiled(64, 4096, 896)
    assert is_tiled(1024, 151_936, 896)
    assert is_tiled(1024, 1024, 128)


class _Largest(TorchDispatchMode):
    """The elements of the largest storage that any operation returned."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, torch.Tensor):
                self.elements = max(self.elements, value.untyped_storage().nbytes() // value.element_size())
        return result


@pytest.mark.parametrize("entropy", [False, True])
def test_no_operation_makes_more_than_the_gradient_and_a_tile(entropy, monkeypatch):
    """[N, V] would be 512 x 4096; a tile is 64 x 256, the head's gradient 4096 x 8."""
    monkeypatch.setattr(tiles, "_CPU_TILE", (64, 256))
    hidden, head, ids = make(512, 4096, 8, dtype=torch.float32)
    with _Largest() as seen:
        found = head_logprobs(hidden, head, ids, entropy=entropy, into_grad=True)
        (sum(value.sum() for value in found) if entropy else found.sum()).backward()
    assert seen.elements <= 4096 * 8
    with _Largest() as seen:
        token_logprobs(head.logits(hidden), ids).sum().backward()
    assert seen.elements == 512 * 4096  # the count sees what there is to see
