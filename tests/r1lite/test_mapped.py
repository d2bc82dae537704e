"""Weights that stay in a model's files until they are trained."""

import shutil
from pathlib import Path

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from safetensors.torch import load_file, save_file
from test_world import torchrun, weights
from world_cases import CASES, world_data

from r1lite.model.head import Parts, split
from r1lite.model.mapped import empty_copy, read_model, sharing_copy, wide, widen
from r1lite.preference.reward_model import load_classifier


def read(folder, *, mapped=True):
    return read_model({"pretrained_model_name_or_path": str(folder), "trust_remote_code": False}, mapped=mapped)[0]


def lies_in_file(value):
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, _, last = line.split()[0].partition("-")
        if int(first, 16) <= value.data_ptr() < int(last, 16):
            return line.endswith(".safetensors")
    raise AssertionError("it lies nowhere")


def saved(model, folder, dtype=torch.bfloat16, **options):
    model.to(dtype).save_pretrained(folder, **options)
    return folder


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("options", [{}, {"max_shard_size": "20KB"}])
def test_weights_lie_in_the_files(dtype, options, tmp_path):
    model = read(saved(make_tiny_model(), tmp_path, dtype, **options))
    assert {p.dtype for p in model.parameters()} == {dtype}
    assert all(lies_in_file(p) for p in model.parameters())
    assert model.config.dtype == torch.float32
    assert isinstance(split(model), Parts)


def test_widened_they_are_those_of_a_model_loaded_in_float32(tmp_path):
    saved(make_tiny_model(), tmp_path)
    model, other = (read(tmp_path, mapped=mapped) for mapped in (True, False))
    widen(model.parameters())
    ids = torch.arange(6)[None]
    assert torch.equal(model(input_ids=ids).logits, other(input_ids=ids).logits)
    assert {b.dtype for b in model.buffers()} == {b.dtype for b in other.buffers()}
    assert model.lm_head.weight is model.model.embed_tokens.weight  # tied as before


def test_files_of_several_dtypes_are_read_in_float32(tmp_path):
    saved(make_tiny_model(), tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    tensors["model.norm.weight"] = tensors["model.norm.weight"].float() + 1e-4  # no value of bfloat16
    save_file(tensors, path, metadata={"format": "pt"})
    model = read(tmp_path)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert torch.equal(model.model.norm.weight, tensors["model.norm.weight"])


def test_a_model_that_computes_a_buffer_in_its_dtype_is_read_in_float32(tmp_path):
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    shape = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Gemma3TextConfig(**shape, num_key_value_heads=1, head_dim=12, vocab_size=48)
    model, other = (
        read(saved(Gemma3ForCausalLM(config), tmp_path / str(mapped)), mapped=mapped) for mapped in (True, False)
    )
    assert not {torch.bfloat16} & {b.dtype for b in model.buffers()}
    for (name, one), (_, two) in zip(model.named_buffers(), other.named_buffers(), strict=True):
        assert torch.equal(one, two), name


def test_a_reward_model_s_new_head_is_drawn_in_float32(tmp_path):
    make_tiny_tokenizer().save_pretrained(saved(make_tiny_model(), tmp_path))
    model, other = (load_classifier(str(tmp_path), seed=3, mapped=mapped)[0] for mapped in (True, False))
    head = model.score.weight
    assert all(lies_in_file(p) and p.dtype == torch.bfloat16 for p in model.parameters() if p is not head)
    widen(model.parameters())
    for (name, one), (_, two) in zip(model.named_parameters(), other.named_parameters(), strict=True):
        assert torch.equal(one, two), name


def test_copies(tmp_path):
    model = read(saved(make_tiny_model(), tmp_path))
    shared, empty = sharing_copy(model).requires_grad_(False), empty_copy(model, "cpu")
    for own, other in zip(model.parameters(), shared.parameters(), strict=True):
        assert own.data_ptr() == other.data_ptr()
        assert own is not other
        assert own.requires_grad
    assert shared.lm_head.weight is shared.model.embed_tokens.weight
    assert {p.numel() for p in empty.parameters()} == {0}
    assert {p.dtype for p in empty.parameters()} == {torch.float32}
    assert [b.shape for b in empty.buffers()] == [b.shape for b in model.buffers()]


def test_what_is_trained_in_double_stays_so():
    assert wide(torch.ones(1, dtype=torch.float64)).dtype == torch.float64


def test_runs_in_parts_do_not_depend_on_the_dtype_of_the_files(tmp_path, tiny_path, sums_path, forks):
    saved(make_tiny_model(), tmp_path / "narrow")
    saved(read(tmp_path / "narrow", mapped=False), tmp_path / "float32", torch.float32)
    names, folders, jobs = ("kl in the loss", "own critic", "adapter"), ("narrow", "float32"), []
    for folder in folders:
        for file in tiny_path.glob("*tok*"):
            shutil.copy(file, tmp_path / folder)
        for name in names:
            argv = [word.format_map(world_data(tmp_path)) for word in CASES[name]]
            argv += ["--source", str(sums_path), "--shard", "full", "--checkpoint-dtype", "float32", "--steps", "1"]
            argv += ["--model", f"{tmp_path}/{folder}", "--out", f"{tmp_path}/{name} {folder}"]
            jobs.append({"argv": argv, "double": False})
    done = torchrun(forks, 2, jobs, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        one, two = (weights(tmp_path / f"{name} {folder}", step=1) for folder in folders)
        for key, value in one.items():
            assert torch.equal(value, two[key]), (name, key)
