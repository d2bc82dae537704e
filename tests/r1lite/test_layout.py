"""Weights for engines are those of the model's files, by the same names."""

import pytest
import torch
from safetensors.torch import load_file
from shapes_for_tests import COMMON, HYBRIDS, SHAPES, make_model

from r1lite.config import GRPOConfig
from r1lite.model.lora import adapter_of, add_adapter, merged_weights
from r1lite.rollout.layout import file_layout, unchanged

EXPERTS = {"moe_intermediate_size": 16, "num_experts_per_tok": 2}
MIXTURES = {  # further ones whose experts transformers holds in one tensor
    "Qwen2MoeConfig": {"num_experts": 4, "shared_expert_intermediate_size": 16, **EXPERTS},
    "OlmoeConfig": {"num_experts": 4, **EXPERTS},
    "PhimoeConfig": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "MiniMaxConfig": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "DeepseekV3Config": {
        **{"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "q_lora_rank": 8},
        **{"kv_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, **EXPERTS},
    },
    "Glm4MoeConfig": {
        **{"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "head_dim": 8, **EXPERTS},
    },
    "GptOssConfig": {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8},
}


def model_of(name):
    if name not in MIXTURES:
        return make_model(name)
    import transformers

    config = getattr(transformers, name)(**{**COMMON, **MIXTURES[name]})
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("name", [*SHAPES, *HYBRIDS, *MIXTURES])
def test_it_is_that_of_the_files(name, tmp_path):
    from transformers import AutoModelForCausalLM

    made = model_of(name)
    made.save_pretrained(tmp_path)
    written = load_file(tmp_path / "model.safetensors")
    for model in (made, AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)):
        found = dict(file_layout(model)(model.state_dict().items()))
        assert written.keys() <= found.keys()
        assert all(torch.equal(found[key], value) for key, value in written.items())
        tied = found.keys() - written.keys()  # second names, which engines need and files leave out
        addresses = {value.data_ptr() for key, value in found.items() if key not in tied}
        assert all(found[key].data_ptr() in addresses for key in tied)
        assert ("lm_head.weight" in found) == (name != "gemma2")


def test_experts_go_by_name():
    model = make_model("qwen3-moe")
    found = dict(file_layout(model)(model.state_dict().items()))
    whole = model.state_dict()["model.layers.1.mlp.experts.gate_up_proj"]  # [experts, gate and up, hidden]
    gate = found["model.layers.1.mlp.experts.3.gate_proj.weight"]
    assert torch.equal(gate, whole[3, : len(gate)])


def test_a_part_of_the_weights_is_turned_too():
    """The canary sends single layers again."""
    model = make_model("mixtral")
    part = [(name, value) for name, value in model.state_dict().items() if ".1.mlp.experts." in name]
    names = {name for name, _ in file_layout(model)(part)}
    assert names == {
        f"model.layers.1.block_sparse_moe.experts.{n}.{w}.weight" for n in range(4) for w in ("w1", "w2", "w3")
    }


@pytest.mark.filterwarnings("default:The following")  # keys of a pattern: peft's, of experts that get no adapter
def test_weights_with_an_adapter_are_turned_too():
    model = make_model("qwen3-moe")
    expected = set(dict(file_layout(model)(model.state_dict().items())))
    pytest.importorskip("peft")
    add_adapter(model, GRPOConfig(lora_rank=2))
    layout = file_layout(model)
    assert set(dict(layout(adapter_of(model).base()))) == set(dict(layout(merged_weights(model)))) == expected


def test_a_model_held_as_in_its_files_is_left_alone():
    assert file_layout(make_model("qwen2")) is unchanged
