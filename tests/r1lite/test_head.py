"""Models in two parts, backbone and head, across architectures."""

import pytest
import torch
import transformers
from conftest import make_tiny_model

from r1lite.model.batch import Row, micro_batches
from r1lite.model.head import Parts, split
from r1lite.model.policy import Policy
from r1lite.rl import logprobs, tiles

pytestmark = pytest.mark.quick

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 1,
}
# (architecture, what its configuration has beside the usual)
ARCHITECTURES = [
    ("Qwen2", {"tie_word_embeddings": True}),
    ("Qwen3", {}),
    ("Llama", {}),
    ("Mistral", {}),
    ("Gemma2", {"final_logit_softcapping": 2.0, "tie_word_embeddings": True}),
    ("Phi3", {}),
    ("Olmo2", {}),
    ("Cohere", {"logit_scale": 0.25}),
    ("Granite", {"logits_scaling": 4.0}),
    ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 48}),
]


def make(name, changes):
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}{'LMHeadModel' if name == 'GPT2' else 'ForCausalLM'}")
    settings = changes if name == "GPT2" else {**SMALL, **changes}
    return model(getattr(transformers, f"{name}Config")(**settings)).eval()


def rows():
    generator = torch.Generator().manual_seed(1)

    def ids(count):
        return tuple(torch.randint(2, 48, (count,), generator=generator).tolist())

    prompts = [ids(4), ids(7)]
    return [Row(prompts[n % 2], ids(3 + 2 * n)) for n in range(4)]


def outcome(policy, batch):
    policy.model.zero_grad()
    found = policy(batch, entropy=True)
    torch.testing.assert_close(policy.logprobs(batch), found[0], rtol=1e-5, atol=1e-5)
    (sum(torch.where(batch.loss_mask, value, 0.0).square().sum() for value in found)).backward()
    gradient = torch.cat([p.grad.flatten() for p in policy.model.parameters()])
    return *(torch.where(batch.loss_mask, value, 0.0).detach() for value in found), gradient


@pytest.mark.parametrize(("name", "changes"), ARCHITECTURES, ids=[name for name, _ in ARCHITECTURES])
def test_tiles_of_every_architecture_say_what_its_logits_say(name, changes, monkeypatch):
    policy = Policy(make(name, changes), pad_id=0, temperature=0.7)
    assert isinstance(policy.parts, Parts), policy.parts
    (batch,) = (
        micro_batches(rows(), 10_000, 0, "cpu") if name != "Mistral" else micro_batches(rows()[::2], 99, 0, "cpu")
    )
    at_once = outcome(policy, batch)
    monkeypatch.setattr(logprobs, "_TILED_FROM_NARROW", 0)
    monkeypatch.setattr(tiles, "_CPU_TILE", (5, 7))
    tiled = outcome(policy, batch)
    policy.parts = "as if unknown"
    whole = outcome(policy, batch)
    for one, other, third in zip(at_once, tiled, whole, strict=True):
        scale = max(1.0, float(one.abs().max()))
        torch.testing.assert_close(one, other, atol=1e-5 * scale, rtol=1e-5)
        torch.testing.assert_close(one, third, atol=1e-5 * scale, rtol=1e-5)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_whole_sequences_too(checkpointing, monkeypatch):
    """The path without a shared prompt, in tiles and from logits."""
    monkeypatch.setattr(logprobs, "_TILED_FROM_NARROW", 0)
    monkeypatch.setattr(tiles, "_CPU_TILE", (5, 7))
    (batch,) = micro_batches(rows(), 10_000, 0, "cpu")
    expected = outcome(Policy(make_tiny_model(), pad_id=0), batch)
    policy = Policy(make_tiny_model(), pad_id=0, gradient_checkpointing=checkpointing)
    policy.shares_prompts = False
    for parts in (policy.parts, "as if unknown"):
        policy.parts = parts
        for one, other in zip(outcome(policy, batch), expected, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5 * float(other.abs().max()), rtol=1e-4)


def test_what_cannot_be_taken_apart_is_said():
    model = make_tiny_model()

    class Louder(type(model)):
        def forward(self, *args, **kwargs):
            output = super().forward(*args, **kwargs)
            output.logits = output.logits * 1.5
            return output

    model.__class__ = Louder
    assert "does more than a linear layer" in split(model)
    policy = Policy(model, pad_id=0)
    (batch,) = micro_batches(rows(), 10_000, 0, "cpu")
    torch.testing.assert_close(policy.logprobs(batch), policy(batch, entropy=True)[0])
    model = make_tiny_model()
    model.lm_head = torch.nn.Sequential(torch.nn.Linear(32, 48))
    assert "not a plain linear layer" in split(model)
