"""Faults far below the tolerance of a precision: an engine that stayed behind, or is further off than it used to be."""

import copy
import dataclasses

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from test_proof import as_vllm
from test_sampler import CopyEngine

from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy
from r1lite.model.prefix import on_prompts
from r1lite.rollout import EngineError
from r1lite.rollout.canary import Canary, trainer_logprobs
from r1lite.rollout.proof import WeightProof
from r1lite.rollout.trust import TrustedEngine

NOISE = {torch.float32: 1.5e-6, torch.bfloat16: 0.02}
PROMPTS = [[3, 4, 5, 6, 7, 8], [9, 10, 11, 12, 13, 14]]


class Faulty(CopyEngine):
    """Says what a model of this precision would, rounded as engines do.

    `spoil` changes weights on their way; `keeps`: what it has of prompts outlives new weights.
    """

    def __init__(self, model, dtype=torch.float32):
        super().__init__(copy.deepcopy(model), make_tiny_tokenizer())
        self.dtype, self.spoil, self.keeps, self.kept, self.asked = dtype, None, False, None, 0

    def load_weights(self, weights, *, version):
        if self.keeps and self.kept is None:
            self.kept = copy.deepcopy(self.model)
        given = dict(weights) if self.spoil is None else self.spoil(dict(weights))
        super().load_weights(given.items(), version=version)

    def forget(self):
        self.kept = None

    def stream(self, prompts, seeds, sampling):
        for place, group in super().stream(prompts, seeds, sampling):
            policy = Policy(self.model, pad_id=0, dtype=self.dtype)
            said = trainer_logprobs(policy, [prompts[place]] * len(group), group)
            if self.kept is not None:
                said = [self.after_old_prompt(prompts[place], one) for one in group]
            yield (
                place,
                [dataclasses.replace(one, logprobs=self.rounded(row)) for one, row in zip(group, said, strict=True)],
            )

    def rounded(self, logprobs):
        """The same for the same weights and tokens, as kernels do."""
        generator = torch.Generator().manual_seed(hash(tuple(logprobs)) % (1 << 32))
        return tuple(
            (torch.tensor(logprobs) + NOISE[self.dtype] * torch.randn(len(logprobs), generator=generator)).tolist()
        )

    @torch.no_grad()
    def after_old_prompt(self, prompt, one):
        (batch,) = micro_batches([Row(tuple(prompt), one.token_ids)], 1 << 20, 0, "cpu")
        logprobs = on_prompts(self.model, self.kept, batch, 0).logits.log_softmax(-1)
        return logprobs.gather(-1, batch.token_ids[..., None])[0, :, 0].tolist()


class Telling(Faulty):
    """Tells digests of its weights too."""

    def weight_digests(self):
        self.asked += 1
        return [("", as_vllm(self.model.state_dict(), torch.float32))]


def checked(model, engine, dtype=torch.float32, **more):
    canary = Canary(Policy(model, pad_id=0, dtype=dtype), tokens=16, seed=0, stop_text=None, tolerance=None)
    trusted = TrustedEngine(engine, canary, lambda: model.state_dict().items(), pad_id=0, **more)
    trusted.push(PROMPTS)
    return trusted


def step(model, trusted, version, size):
    """A change of all weights by so much, handed over."""
    generator = torch.Generator().manual_seed(version)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=generator))
    trusted.offer(lambda: model.state_dict().items(), version=version)
    trusted.push(PROMPTS)


SIZES = [(torch.float32, 2e-8), (torch.float32, 1e-7), (torch.bfloat16, 1e-5), (torch.bfloat16, 1e-3)]


@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_an_engine_that_follows_is_left_alone(dtype, size):
    model = make_tiny_model(initializer_range=0.1)
    engine = Faulty(model, dtype)
    trusted, given = checked(model, engine, dtype), []
    took = engine.load_weights
    engine.load_weights = lambda weights, *, version: given.append(version) or took(weights, version=version)
    for version in range(1, 6):
        step(model, trusted, version, size)
    assert given == [1, 2, 3, 4, 5]  # nothing was suspected


@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_an_engine_that_stays_behind_is_named_at_any_rate_and_precision(dtype, size):
    model = make_tiny_model(initializer_range=0.1)
    engine = Faulty(model, dtype)
    trusted = checked(model, engine, dtype)
    step(model, trusted, 1, size)
    old = copy.deepcopy(model.state_dict())

    def once(weights):
        engine.spoil = None
        return old

    engine.spoil = once
    with pytest.raises(EngineError, match=r"closer to the previous weights.*sent again, both agree"):
        step(model, trusted, 2, size)


def test_a_stale_prefix_cache_of_2e_5_nats():
    model = make_tiny_model(initializer_range=0.1)
    engine = Faulty(model)
    trusted = checked(model, engine)
    step(model, trusted, 1, 1e-6)
    engine.keeps = True
    with pytest.raises(EngineError, match="What differs: the prefix cache") as caught:
        step(model, trusted, 2, 3e-6)
    assert "nats from the trainer" in str(caught.value)
    size = float(str(caught.value).split(" nats from")[0].split()[-1])
    assert 4e-6 < size < 1e-4


def scaled(weights):
    return {name: value * (1.001 if "mlp.down_proj" in name else 1) for name, value in weights.items()}


def in_half(weights):
    return {name: value.half().float() for name, value in weights.items()}


def without_a_layer(model):
    old = copy.deepcopy(model.state_dict())
    return lambda weights: {name: old[name] if ".layers.1." in name else value for name, value in weights.items()}


@pytest.mark.parametrize("fault", ["scaled", "in half", "a layer"])
def test_weights_that_are_wrong_for_good_are_named_by_their_bytes(fault):
    model = make_tiny_model(initializer_range=0.1)
    engine = Telling(model)
    trusted = checked(model, engine, proof=WeightProof(torch.float32), prove_every=1)
    step(model, trusted, 1, 1e-6)
    engine.spoil = {"scaled": scaled, "in half": in_half, "a layer": without_a_layer(model)}[fault]
    with pytest.raises(EngineError, match=r"have different bytes") as caught:
        step(model, trusted, 2, 1e-9)
    named = {"scaled": "layers.0.mlp.down_proj", "in half": "embed_tokens", "a layer": "layers.1."}[fault]
    assert named in str(caught.value)


@pytest.mark.parametrize("spoil", [scaled, in_half])
def test_where_bytes_are_not_due_the_canary_has_them_compared(spoil):
    model = make_tiny_model(initializer_range=0.1)
    engine = Telling(model)
    trusted = checked(model, engine, proof=WeightProof(torch.float32), prove_every=100)
    step(model, trusted, 1, 1e-6)
    assert engine.asked == 1
    engine.spoil = spoil
    with pytest.raises(EngineError, match=r"What differs: .*have different bytes"):
        step(model, trusted, 2, 1e-6)


def test_what_is_far_off_for_good_is_the_model_itself():
    model = make_tiny_model(initializer_range=0.1)
    engine = Telling(model)
    trusted = checked(model, engine, proof=WeightProof(torch.float32))
    step(model, trusted, 1, 1e-6)
    for layer in engine.model.model.layers:
        layer.mlp.register_forward_hook(lambda module, inputs, output: output * 1.01)
    with pytest.raises(EngineError, match=r"the model itself.*with \d+ tensors that have the trainer's bytes"):
        step(model, trusted, 2, 1e-6)
