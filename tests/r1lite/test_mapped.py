"""Weights that stay in a model's files until they are trained."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from safetensors.torch import load_file, save_file
from test_world import torchrun, weights
from world_cases import CASES, REWARD_MODEL, world_data

from r1lite.errors import UserError
from r1lite.model import varlen
from r1lite.model.head import Parts, split
from r1lite.model.mapped import empty_copy, read_model, sharing_copy, wide, widen
from r1lite.model.policy import Policy
from r1lite.model.sharding import computes_wide
from r1lite.preference.reward_model import load_classifier


def read(folder, *, mapped=True, **options):
    source = {"pretrained_model_name_or_path": str(folder), "trust_remote_code": False}
    return read_model(source, mapped=mapped, **options)[0]


def lies_in_file(value):
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, _, last = line.split()[0].partition("-")
        if int(first, 16) <= value.data_ptr() < int(last, 16):
            return line.endswith((".safetensors", ".bin"))
    raise AssertionError("it lies nowhere")


def saved(model, folder, dtype=torch.bfloat16, **options):
    model.to(dtype).save_pretrained(folder, **options)
    return folder


def narrow(folder):
    return saved(make_tiny_model(), folder)


def several(folder):
    """Norms in float32, one of them with values that bfloat16 does not have."""
    path = saved(make_tiny_model(), folder) / "model.safetensors"
    tensors = {name: value.float() if "norm" in name else value for name, value in load_file(path).items()}
    tensors["model.norm.weight"] += 1e-4
    save_file(tensors, path, metadata={"format": "pt"})
    return folder


def pickled(folder):
    """Two files of torch.save, and values as in `several`."""
    tensors = load_file(several(folder) / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = {name: f"pytorch_model-{1 + ('layers' in name)}.bin" for name in tensors}
    for file in set(names.values()):
        torch.save({name: value for name, value in tensors.items() if names[name] == file}, folder / file)
    index = {"metadata": {}, "weight_map": names}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return folder


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("options", [{}, {"max_shard_size": "20KB"}])
def test_weights_lie_in_the_files(dtype, options, tmp_path):
    model = read(saved(make_tiny_model(), tmp_path, dtype, **options))
    assert {p.dtype for p in model.parameters()} == {dtype}
    assert all(lies_in_file(p) for p in model.parameters())
    assert model.config.dtype == torch.float32
    assert isinstance(split(model), Parts)


@pytest.mark.parametrize("files", [narrow, several, pickled])
def test_widened_they_are_those_of_a_model_loaded_in_float32(files, tmp_path):
    files(tmp_path)
    model, other = (read(tmp_path, mapped=mapped) for mapped in (True, False))
    assert all(lies_in_file(p) for p in model.parameters())
    widen(model.parameters())
    ids = torch.arange(6)[None]
    assert torch.equal(model(input_ids=ids).logits, other(input_ids=ids).logits)
    assert {b.dtype for b in model.buffers()} == {b.dtype for b in other.buffers()}
    assert model.lm_head.weight is model.model.embed_tokens.weight  # tied as before


@pytest.mark.parametrize("files", [several, pickled])
def test_a_model_of_several_dtypes_computes_before_it_is_in_parts(files, tmp_path):
    files(tmp_path)
    model, other = (read(tmp_path, mapped=mapped, attn_implementation=varlen.register()) for mapped in (True, False))
    ids, dtypes = torch.arange(6)[None], [p.dtype for p in model.parameters()]
    assert set(dtypes) == {torch.bfloat16, torch.float32}
    with computes_wide(model):
        assert torch.equal(model(input_ids=ids).logits, other(input_ids=ids).logits)
        with pytest.raises(IndexError):
            model(input_ids=ids + 1000)
    policy = Policy(model, pad_id=0, padding_free=True)
    assert isinstance(policy.parts, Parts)
    assert [p.dtype for p in model.parameters()] == dtypes
    assert all(lies_in_file(p) for p in model.parameters())
    with pytest.raises(RuntimeError, match="dtype"):
        model(input_ids=ids)


def test_weights_that_a_cast_would_tie_are_read_in_float32(tmp_path):
    path = several(tmp_path) / "model.safetensors"
    tensors = load_file(path)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].float() * (1 + 1e-6)  # the same in bfloat16
    save_file(tensors, path, metadata={"format": "pt"})
    model, other = (read(tmp_path, mapped=mapped) for mapped in (True, False))
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert model.lm_head.weight is not model.model.embed_tokens.weight
    for (name, one), (_, two) in zip(model.named_parameters(), other.named_parameters(), strict=True):
        assert torch.equal(one, two), name


def test_old_files_of_torch_are_refused(tmp_path):
    model = make_tiny_model()
    saved(model, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    with pytest.raises(UserError, match=r"pytorch_model.bin has torch's file format before version 1\.6"):
        read(tmp_path)
    assert {p.dtype for p in read(tmp_path, mapped=False).parameters()} == {torch.float32}


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_buffer_that_is_computed_in_a_model_s_dtype(repeatable, tmp_path, monkeypatch):
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    shape = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Gemma3TextConfig(**shape, num_key_value_heads=1, head_dim=12, vocab_size=48)
    saved(Gemma3ForCausalLM(config), tmp_path)
    other = read(tmp_path, mapped=False)
    if not repeatable:
        monkeypatch.setattr(Gemma3ForCausalLM, "_init_weights", lambda *_: None)
    model = read(tmp_path)
    assert [lies_in_file(p) for p in model.parameters()] == [repeatable] * len(list(model.parameters()))
    if repeatable:
        for (name, one), (_, two) in zip(model.named_buffers(), other.named_buffers(), strict=True):
            assert one.dtype == two.dtype
            assert torch.equal(one, two), name
    widen(model.parameters())
    for (name, one), (_, two) in zip(model.named_parameters(), other.named_parameters(), strict=True):
        assert torch.equal(one, two), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_buffer_that_lies_in_the_files(dtype, tmp_path, monkeypatch):
    from transformers import Qwen2ForCausalLM

    made = Qwen2ForCausalLM.__init__

    def init(self, config):
        made(self, config)
        self.register_buffer("scale", torch.tensor([1 / 3]))

    monkeypatch.setattr(Qwen2ForCausalLM, "__init__", init)
    path = narrow(tmp_path) / "model.safetensors"
    save_file(load_file(path) | {"scale": torch.tensor([1 / 3], dtype=dtype)}, path, metadata={"format": "pt"})
    model, other = (read(tmp_path, mapped=mapped) for mapped in (True, False))
    assert all(lies_in_file(p) for p in model.parameters())
    assert model.scale.dtype == torch.float32
    assert torch.equal(model.scale, other.scale)


@pytest.mark.parametrize("files", [narrow, several, pickled])
def test_a_reward_model_s_new_head_is_drawn_in_float32(files, tmp_path):
    make_tiny_tokenizer().save_pretrained(files(tmp_path))
    model, other = (load_classifier(str(tmp_path), seed=3, mapped=mapped)[0] for mapped in (True, False))
    head = model.score.weight
    assert head.dtype == torch.float32
    assert all(lies_in_file(p) for p in model.parameters() if p is not head)
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


def test_runs_in_parts_do_not_depend_on_the_files(tmp_path, tiny_path, sums_path, forks):
    pickled(tmp_path / "pickled")
    saved(read(tmp_path / "pickled", mapped=False), tmp_path / "float32", torch.float32)
    several(tmp_path / "several")
    known, jobs = world_data(tmp_path), []
    cases = {name: CASES[name] for name in ("kl in the loss", "own critic", "adapter")} | {"reward-model": REWARD_MODEL}
    runs = {name: ("float32", "pickled" if name == "adapter" else "several") for name in cases}
    for folder in ("float32", "pickled", "several"):
        for file in tiny_path.glob("*tok*"):
            shutil.copy(file, tmp_path / folder)
    for name, case in cases.items():
        for folder in runs[name]:
            argv = [word.format_map(known) for word in case] + ["--shard", "full"]
            argv += ["--source", known["pairs"] if name == "reward-model" else str(sums_path)]
            argv += ["--model", f"{tmp_path}/{folder}", "--out", f"{tmp_path}/{name} {folder}"]
            jobs.append({"argv": argv, "double": False})
    done = torchrun(forks, 2, jobs, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, folders in runs.items():
        one, two = (weights(tmp_path / f"{name} {folder}") for folder in folders)
        for key, value in one.items():
            assert torch.equal(value, two[key]), (name, key)
