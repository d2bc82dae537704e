"""Tiny models of random weights, one for each shape that real models have."""

import torch
from templates_for_tests import make_tokenizer

COMMON = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,  # grouped queries
    "vocab_size": 288,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_chunk_size": 16}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
# By name: the configuration's class, and what it differs by from COMMON.
SHAPES = {
    "qwen2": ("Qwen2Config", {"tie_word_embeddings": True}),
    "qwen2-untied": ("Qwen2Config", {"tie_word_embeddings": False}),
    "qwen3": ("Qwen3Config", {"head_dim": 16, "tie_word_embeddings": True}),
    "qwen3-moe": ("Qwen3MoeConfig", {"head_dim": 16, "norm_topk_prob": True, **EXPERTS}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "llama-without-pad": ("LlamaConfig", {"pad_token_id": None, "tie_word_embeddings": False}),
    "llama-tied": ("LlamaConfig", {"tie_word_embeddings": True}),
    "mistral-sliding": ("MistralConfig", {"sliding_window": 8}),
    "phi3": ("Phi3Config", {"num_key_value_heads": 4}),
    "gemma2": (
        "Gemma2Config",
        {"head_dim": 8, "sliding_window": 8, "attn_logit_softcapping": 1.0, "final_logit_softcapping": 5.0},
    ),
    "gemma3": ("Gemma3TextConfig", {"head_dim": 8, "sliding_window": 8, "sliding_window_pattern": 2}),
    "gpt2": ("GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512}),
}
# Layers with a recurrent state, beside layers with attention or in one layer with it.
HYBRIDS = {
    "jamba": (
        "JambaConfig",
        {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1}
        | {"num_experts": 2, "num_experts_per_tok": 1, "mamba_d_state": 8, "mamba_dt_rank": 4},
    ),
    "bamba": ("BambaConfig", {"attn_layer_indices": [1], **MAMBA}),
    "falcon-h1": ("FalconH1Config", {"mamba_d_ssm": 64, **MAMBA}),
    "granite-hybrid": (
        "GraniteMoeHybridConfig",
        {"layer_types": ["mamba", "attention"], "num_local_experts": 0, "shared_intermediate_size": 32, **MAMBA},
    ),
    "lfm2": ("Lfm2Config", {"layer_types": ["conv", "full_attention"], "conv_L_cache": 3, "block_multiple_of": 8}),
    "qwen3-next": (
        "Qwen3NextConfig",
        {"head_dim": 8, "layer_types": ["linear_attention", "full_attention"], "shared_expert_intermediate_size": 16}
        | {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
        | EXPERTS,
    ),
    "zamba2": (
        "Zamba2Config",
        {"num_hidden_layers": 4, "hybrid_layer_ids": [1, 3], "layers_block_type": ["mamba", "hybrid"] * 2}
        | {"mamba_d_state": 8, "mamba_headdim": 16, "mamba_ngroups": 1, "n_mamba_heads": 4, "chunk_size": 16}
        | {"num_mem_blocks": 1, "adapter_rank": 4},
    ),
}


# What vLLM's kernels ask for: heads of 32 at least.
WIDE = {"hidden_size": 128, "head_dim": 32, "n_embd": 128}


def make_model(name, *, wide=False, **loading):
    """The model of a shape, in evaluation mode, with weights large enough for every part of it to matter."""
    import transformers

    config_class, changes = {**SHAPES, **HYBRIDS}[name]
    changes = {**COMMON, **changes}
    if wide:
        changes |= {key: value for key, value in WIDE.items() if key in changes}
    config = getattr(transformers, config_class)(**changes)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32, **loading).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.1 if wide else 0.2)
    return model


def save(name, path, *, wide=False):
    """The model with a tokenizer of bytes, as a folder."""
    tokenizer = make_tokenizer()
    if name == "llama-without-pad":
        tokenizer.pad_token = None
    make_model(name, wide=wide).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def spread(problem, completion):
    """A score that completions of random weights differ by."""
    return sum(completion.token_ids) % 97 / 96
