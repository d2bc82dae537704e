"""What lies in the CPU's memory computes the same. The other device is a CPU here: the order of copies is tried."""

import pytest
import torch
from conftest import make_tiny_model

from r1lite.config import GRPOConfig
from r1lite.errors import UserError
from r1lite.model.offload import check_offload, stream_layers
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.model.sharding import layers_of

IDS = torch.tensor([[3, 4, 5, 6], [6, 5, 4, 3]])


def make_optimizer(model, offload):
    return Optimizer(model, betas=(0.9, 0.99), weight_decay=0.1, max_grad_norm=1.0, offload=offload)


def learn(model, optimizer, steps):
    for _ in range(steps):
        model(input_ids=IDS, labels=IDS).loss.backward()
        assert optimizer.step(1e-2) is not None


def test_an_update_on_copies_is_the_same_update():
    plain, moved = make_tiny_model(), make_tiny_model()
    learn(plain, make_optimizer(plain, False), 3)
    learn(moved, make_optimizer(moved, True), 3)
    for one, other in zip(plain.parameters(), moved.parameters(), strict=True):
        assert torch.equal(one, other)


def test_it_goes_on_from_its_state_and_the_models_weights():
    whole = make_tiny_model()
    learn(whole, make_optimizer(whole, True), 4)
    first = make_tiny_model()
    optimizer = make_optimizer(first, True)
    learn(first, optimizer, 2)
    second = make_tiny_model()
    later = make_optimizer(second, True)  # made before the weights are restored, as in a resumed run
    second.load_state_dict(first.state_dict())
    later.load_state_dict(optimizer.state_dict())
    learn(second, later, 2)
    for one, other in zip(whole.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_state_is_that_of_an_update_without_copies():
    plain, moved = make_tiny_model(), make_tiny_model()
    one, other = make_optimizer(plain, False), make_optimizer(moved, True)
    learn(plain, one, 1)
    learn(moved, other, 1)
    later = make_optimizer(plain, False)
    later.load_state_dict(other.state_dict())
    learn(plain, one, 1)
    learn(moved, other, 1)
    for moments, others in zip(one.state_dict()["state"].values(), other.state_dict()["state"].values(), strict=True):
        assert torch.equal(moments["exp_avg"], others["exp_avg"])


def test_streamed_layers_compute_the_same():
    model = make_tiny_model().requires_grad_(False)
    before = model(input_ids=IDS).logits
    stream_layers(model)
    resting = [p.data_ptr() for layer in layers_of(model) for p in layer.parameters()]
    assert torch.equal(model(input_ids=IDS).logits, before)
    assert [p.data_ptr() for layer in layers_of(model) for p in layer.parameters()] == resting


def test_layers_rest_after_a_pass_that_failed():
    model = make_tiny_model().requires_grad_(False)
    stream_layers(model)
    layer = layers_of(model)[0]
    resting = [p.data_ptr() for p in layer.parameters()]
    with pytest.raises(AttributeError):
        layer("no hidden states")
    assert [p.data_ptr() for p in layer.parameters()] == resting


def test_streamed_weights_can_be_moved():
    """--reference-decay changes them where they rest."""
    model = make_tiny_model().requires_grad_(False)
    stream_layers(model)
    weight = next(layers_of(model)[0].parameters())
    weight.mul_(2)
    value = weight.clone()
    model(input_ids=IDS)
    assert torch.equal(weight, value)


@pytest.mark.parametrize(
    ("settings", "frozen", "message"),
    [
        ({"offload_optimizer": True, "device": "cpu"}, True, "--offload-optimizer with --device cpu: everything is"),
        ({"offload_reference": True, "device": "cpu"}, True, "--offload-reference with --device cpu"),
        ({"offload_reference": True, "device": "cuda"}, False, "this run has no reference; leave the flag out"),
        (
            {"offload_reference": True, "device": "cuda"},
            "adapter",
            "with --lora-rank the reference is the model itself",
        ),
        (
            {"offload_reference": True, "device": "cuda", "shard": "full", "reference_decay": 0.9, "kl_coef": 0.1},
            True,
            "a reference that moves",
        ),
        ({"offload_reference": True, "device": "cuda:1"}, True, None),
        ({"device": "cpu"}, False, None),
    ],
)
def test_what_can_not_be_moved_is_refused(settings, frozen, message):
    policy = Policy(make_tiny_model(), pad_id=0)
    reference = {True: policy, False: None, "adapter": policy.before_adapter()}[frozen]
    if message is None:
        check_offload(GRPOConfig(**settings), reference)
        return
    with pytest.raises(UserError, match=message):
        check_offload(GRPOConfig(**settings), reference)
