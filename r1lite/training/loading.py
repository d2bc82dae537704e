"""Loads the configured model, or only its configuration, for training and sampling."""

from __future__ import annotations

from typing import Any

from r1lite.config import ProblemsConfig
from r1lite.errors import UserError
from r1lite.hub.loading import empty_model, load_shape, load_tokenizer, why_not
from r1lite.hub.revisions import pinned
from r1lite.model import vocabulary_size
from r1lite.model.mapped import read_model
from r1lite.model.quantized import keep_layout, quantization
from r1lite.model.sharding import computes_wide
from r1lite.training.machine import model_path
from r1lite.training.several import loads_for_parts


def load_config(config: ProblemsConfig) -> Any:
    """Loads the configuration of the configured model. Raises UserError."""
    try:
        return load_shape(model_path(config))
    except Exception as error:  # the library passes on any error of its transport
        raise UserError(
            f"--model {config.model}: its configuration can't be read: {why_not(model_path(config), error)}"
        ) from error


def forward_dtype(config: ProblemsConfig) -> Any:
    """Returns the torch dtype of the forward pass."""
    import torch

    if config.dtype == "auto":
        return torch.bfloat16 if config.device.startswith("cuda") else torch.float32
    return getattr(torch, config.dtype)


def load_model(config: ProblemsConfig) -> tuple[Any, Any]:
    """Returns (model, tokenizer), with float32 weights on the configured device. Raises UserError.

    If the model will be sharded, its weights stay memory-mapped in the files, with the dtypes of the files.
    """
    import torch

    if config.device.startswith("cuda:"):
        # Else CUDA graphs would be captured, and Triton's kernels started, on the first GPU, whatever the tensors'.
        torch.cuda.set_device(config.device)
    place, for_parts = model_path(config), loads_for_parts(config)
    packed: dict[str, Any] = {}
    if (kind := getattr(config, "base_quantization", "none")) != "none":
        packed = {"quantization_config": quantization(kind, forward_dtype(config)), "device_map": {"": config.device}}
    try:
        shape = load_shape(place)
        if any(name.endswith("ForSequenceClassification") for name in shape.architectures or ()):
            raise UserError(  # with tied embeddings the missing head for tokens would go unnoticed
                f"--model {config.model}: a reward model, which generates no text; use it as --reward rm:{config.model}"
            )
        attention = attention_of(config, shape)
        tokenizer = load_tokenizer(place)
        model, loaded = read_model(
            pinned(place), mapped=for_parts, config=shape, attn_implementation=attention, **packed
        )
        if packed:
            keep_layout(model)
    except UserError:
        raise
    except Exception as error:  # the library passes on any error of its transport and its models
        raise UserError(
            f"--model {config.model}: can't be loaded: {why_not(place, error)}\n"
            "It must be the Hub id or the path of a causal language model with its tokenizer, or nano."
        ) from error
    lacking = sorted({*loaded["missing_keys"], *(str(key) for key in loaded["mismatched_keys"])})
    if lacking:
        raise UserError(
            f"--model {config.model}: {len(lacking)} of its weights are not in the files ({lacking[0]}, ...) and would "
            "be random: the copy is damaged, or this is no causal language model"
        )
    with computes_wide(model):
        causal = _is_causal(model)
    if not causal:
        if (broken := _not_finite(model)) is not None:
            raise UserError(
                f"--model {config.model}: its weight {broken} is not finite (NaN or infinity), as after a run that "
                "diverged: use an earlier checkpoint"
            )
        raise UserError(
            f"--model {config.model}: {type(model).__name__} attends to later tokens, so it is no causal language model"
        )
    try:
        if not packed and not for_parts:
            model.to(config.device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {config.device}: {error}") from error
    return model, tokenizer


def load_empty(config: ProblemsConfig) -> tuple[Any, Any]:
    """Returns (model without weights on the device `meta`, tokenizer), for remote engines. Raises UserError."""
    found = load_config(config)
    try:
        return empty_model(found), load_tokenizer(model_path(config))
    except Exception as error:  # the library passes on any error of its transport
        raise UserError(f"--model {config.model}: can't be loaded: {why_not(model_path(config), error)}") from error


def own_dtype(config: ProblemsConfig) -> Any:
    """Returns the torch dtype of the files of the configured model; float32 if they don't name one."""
    import torch

    found = load_shape(model_path(config)).dtype
    return found if isinstance(found, torch.dtype) else torch.float32


def generation_settings(config: ProblemsConfig, model: Any, tokenizer: Any) -> Any:
    """Returns the generation settings of a checkpoint: sampling as in training, and the end tokens."""
    from transformers import GenerationConfig

    from r1lite.rollout import eos_ids
    from r1lite.rollout.hf import pad_id

    return GenerationConfig(
        do_sample=True,
        temperature=getattr(config, "temperature", 1.0),
        top_p=getattr(config, "top_p", 1.0),
        top_k=getattr(config, "top_k", 0),  # 0: no limit; without it transformers would use 50
        min_p=getattr(config, "min_p", 0.0) or None,
        max_new_tokens=config.max_completion_tokens,
        eos_token_id=eos_ids(model, tokenizer),
        pad_token_id=pad_id(tokenizer),
    )


def attention_of(config: ProblemsConfig, shape: Any) -> str:
    """Returns the name of the attention kernel, and registers our own kernel if it is used.

    Args:
        shape: the model's configuration.

    Raises:
        UserError: the kernel ignores a part of this model.
    """
    from r1lite.model import varlen
    from r1lite.model.attention import register

    if getattr(shape.get_text_config(), "attn_logit_softcapping", None) is not None:  # Gemma 2's
        if config.attn_implementation == "sdpa":
            raise UserError(
                "--attn-implementation sdpa silently ignores the soft cap of this model's attention; use eager "
                "or auto, which respects it"
            )
        return "eager" if config.attn_implementation == "auto" else config.attn_implementation
    if config.attn_implementation != "auto":
        return config.attn_implementation
    if getattr(config, "padding_free", False):
        return varlen.register()
    return register() if config.device == "cpu" else "sdpa"


def _not_finite(model: Any) -> str | None:
    """Returns the name of a weight that holds NaN or infinity; None if all weights are finite."""
    weights = ((name, weight) for name, weight in model.named_parameters() if weight.is_floating_point())
    return next((name for name, weight in weights if not weight.isfinite().all()), None)


def _is_causal(model: Any) -> bool:
    """Returns True if a token's logits don't depend on later tokens."""
    import torch

    last = vocabulary_size(model) - 1
    with torch.inference_mode():
        first, other = (
            model(input_ids=torch.tensor([[0, 1, token]], device=model.device)).logits[0, 0] for token in (0, last)
        )
    return torch.allclose(first, other, rtol=1e-3, atol=1e-3)
