"""Rows end to end without padding: the same log-probabilities and gradients, by PyTorch's kernel too as far as it can
be tried without a GPU."""

import json

import pytest
import torch
from conftest import make_tiny_model
from transformers import AutoModelForCausalLM, BertConfig, Gemma3TextConfig, MistralConfig

from r1lite.cli import main
from r1lite.errors import UserError
from r1lite.model import varlen
from r1lite.model.batch import Row, cost, micro_batches
from r1lite.model.policy import Policy

ROWS = [
    Row((3, 9, 11), (5, 7, 9, 2)),
    Row((3, 9, 11), (4,)),
    Row((8,), (6, 2, 2, 7, 30, 12, 9), (True, True, False, False, True, True, True)),
    Row((7, 7, 7, 7, 7), (40, 1)),
]


def made(model, *, padding_free, **options):
    model.set_attn_implementation(varlen.register() if padding_free else "sdpa")
    return Policy(model, pad_id=0, padding_free=padding_free, **options)


def of_rows(policy, rows=ROWS, **options):
    """Log-probabilities and entropies of each row's tokens that are learnt, by its number."""
    found = {}
    for batch in micro_batches(rows, 40, 0, "cpu", policy.layout):
        logprobs, entropies = policy(batch, entropy=True)
        for row, number in enumerate(batch.rows):
            mask = batch.loss_mask[row]
            found[number] = torch.cat([logprobs[row, mask], entropies[row, mask]])
    return torch.cat([found[number] for number in range(len(rows))])


def windowed(**changes):
    settings = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    settings |= {"num_key_value_heads": 2, "vocab_size": 48, "sliding_window": 3, "head_dim": 8}
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(MistralConfig(**settings, **changes), attn_implementation="sdpa").eval()


@pytest.mark.parametrize("make", [make_tiny_model, windowed])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_values_and_gradients_are_those_of_padded_rows(make, checkpointing):
    results = []
    for padding_free in (False, True):
        policy = made(make().double(), padding_free=padding_free, gradient_checkpointing=checkpointing)
        values = of_rows(policy)
        values.sum().backward()
        results.append((values, [p.grad for p in policy.parameters()]))
    (expected, gradients), (found, others) = results
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)  # float32: what a policy returns
    for one, other in zip(gradients, others, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)


def test_other_ways_through_the_model():
    padded, free = (made(make_tiny_model().double(), padding_free=mode) for mode in (False, True))
    other = make_tiny_model(initializer_range=0.1).double()
    references = [made(other, padding_free=False), made(other, padding_free=False).frozen_copy()]
    assert free.frozen_copy().padding_free
    references[1] = made(references[1].model, padding_free=True)
    (batch,) = micro_batches(ROWS, 1000, 0, "cpu")
    mask = batch.loss_mask
    for name, arguments in (("with_kl", references), ("with_square_mass", None)):
        one, two = (
            getattr(policy, name)(batch, *([arguments[n]] if arguments else []))
            for n, policy in enumerate((padded, free))
        )
        for left, right in zip(one, two, strict=True):
            if left is not None:
                torch.testing.assert_close(right[mask], left[mask], rtol=0, atol=1e-6)


def test_a_micro_batch_costs_its_own_tokens():
    batches = {layout: micro_batches(ROWS, 1000, 0, "cpu", layout)[0] for layout in ("end to end", "whole rows")}
    assert cost(batches["end to end"]) == sum(len(row.prompt_ids) + len(row.token_ids) for row in ROWS) == 26
    assert cost(batches["whole rows"]) == 4 * (5 + 7)
    for layout in batches:
        for batch in micro_batches(ROWS, 13, 0, "cpu", layout):
            assert cost(batch) <= 13 or len(batch.rows) == 1


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("version", ["2.11", "2.12"])
def test_the_kernel_is_asked_for_what_rows_by_themselves_give(window, version, monkeypatch):
    """In place of the kernel, which needs a GPU: a plain computation from what it is given, by its documentation."""

    def of_2_11(q, k, v, bounds, bounds_k, longest, longest_k, *, scale=None, window_size=(-1, -1)):
        assert q.shape == k.shape == v.shape
        return kernel(q, k, v, bounds, bounds_k, longest, longest_k, scale=scale, window_size=window_size)

    def kernel(q, k, v, bounds, bounds_k, longest, longest_k, *, scale, window_size, enable_gqa=False):
        assert bounds.dtype == torch.int32
        assert bounds is bounds_k
        assert longest == longest_k == int(bounds.diff().max())
        assert window_size[1] == 0
        out = torch.zeros_like(q)
        shared = q.shape[1] // k.shape[1] if enable_gqa else 1
        k, v = (states.repeat_interleave(shared, dim=1) for states in (k, v))
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            for place in range(start, end):
                first = start if window_size[0] < 0 else max(start, place - window_size[0])
                scores = torch.einsum("hd,lhd->hl", q[place], k[first : place + 1]) * scale
                out[place] = torch.einsum("hl,lhd->hd", scores.softmax(-1), v[first : place + 1])
        return out

    torch.manual_seed(0)
    q, k, v = torch.randn(1, 4, 9, 8), torch.randn(1, 2, 9, 8), torch.randn(1, 2, 9, 8)
    bounds = torch.tensor([0, 4, 5, 9], dtype=torch.int32)

    class Module:
        training, is_causal, num_key_value_groups, layer_idx = False, True, 2, 0

    given = {"scaling": 8**-0.5, "cu_seq_lens_q": bounds, "max_length_q": 4, "sliding_window": window}
    expected, _ = varlen.varlen_attention(Module(), q, k, v, None, **given)
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", of_2_11 if version == "2.11" else kernel)
    monkeypatch.setattr(varlen, "_lower_precision", lambda query: torch.float32)
    found, _ = varlen.varlen_attention(Module(), q, k, v, None, **given)
    torch.testing.assert_close(found, expected)


def test_a_gpu_without_the_kernel_is_refused_at_the_start(monkeypatch):
    def kernel(q, *_, enable_gqa=False, **__):
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")

    def half(query):
        return torch.bfloat16 if torch.is_autocast_enabled("cpu") else None

    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", kernel)
    monkeypatch.setattr(varlen, "_lower_precision", half)
    model = make_tiny_model()
    model.set_attn_implementation(varlen.register())
    Policy(model, pad_id=0, padding_free=True)
    with pytest.raises(UserError, match=r"--padding-free: .* only supports Ampere GPUs or newer\.\): leave"):
        Policy(model, pad_id=0, padding_free=True, dtype=torch.bfloat16)


def test_what_is_refused():
    from transformers import BertLMHeadModel

    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    with pytest.raises(UserError, match="--padding-free"):
        made(BertLMHeadModel(BertConfig(**shape, vocab_size=48, is_decoder=True)).eval(), padding_free=True)
    capped = Gemma3TextConfig(**shape, num_key_value_heads=2, head_dim=8, vocab_size=48, attn_logit_softcapping=20.0)
    model = AutoModelForCausalLM.from_config(capped).eval()
    model.set_attn_implementation("eager")
    with pytest.raises(UserError, match="would see one another"):
        Policy(model, pad_id=0, padding_free=True)


def test_runs(tmp_path, tiny_path, sums_path, capsys):
    argv = ["grpo", "--model", str(tiny_path), "--source", str(sums_path), "--steps", "2", "--threads", "1"]
    argv += ["--template", "short", "--max-completion-tokens", "12", "--prompts-per-step", "4", "--group-size", "4"]
    argv += ["--eval-problems", "4", "--eval-sample-problems", "2", "--eval-samples", "2", "--quiet", "--no-report"]
    argv += ["--reward", "length", "--kl-coef", "0.1", "--lr", "1e-3"]
    for name, more in (("padded", []), ("free", ["--padding-free"])):
        assert main([*argv, *more, "--out", str(tmp_path / name)]) == 0
    padded, free = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("padded", "free")
    )
    for one, two in zip(padded, free, strict=True):
        for key in ("reward", "loss", "grad_norm", "kl"):
            assert two[key] == pytest.approx(one[key], rel=1e-3, abs=1e-6), key
    assert main([*argv, "--padding-free", "--attn-implementation", "sdpa"]) == 2
    assert "must be auto" in capsys.readouterr().err
