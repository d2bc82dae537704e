"""Model folders that are refused, with the cause."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from r1lite.cli import main


def not_finite(folder):
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][3] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def other_shapes(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": config["intermediate_size"] + 2}))


def no_id_as_end(folder):
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": "x"}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (not_finite, "its weight model.norm.weight is not finite (NaN or infinity)"),
        (other_shapes, "its weights have other shapes than its config.json says"),
        (no_id_as_end, "eos_token_id must be a token id, got 'x'"),
    ],
)
def test_a_damaged_model_is_refused(damage, message, tiny_model, tiny_tokenizer, sums_path, tmp_path, capsys):
    tiny_model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    damage(tmp_path / "model")
    argv = ["eval", "--model", str(tmp_path / "model"), "--source", str(sums_path), "--out", str(tmp_path / "run")]
    assert main([*argv, "--template", "short", "--max-completion-tokens", "8", "--eval-problems", "2"]) == 2
    assert message in capsys.readouterr().err
