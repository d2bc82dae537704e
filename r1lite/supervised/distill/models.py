"""The two models of a distillation: a frozen teacher, and a student that may be created with random weights."""

from __future__ import annotations

from typing import Any

import torch

from r1lite.config.distill import DistillConfig
from r1lite.errors import UserError
from r1lite.hub.loading import load_shape, load_tokenizer, why_not
from r1lite.training.loading import attention_of, load_model
from r1lite.training.machine import model_path
from r1lite.training.several import loads_for_parts


def load_teacher(config: DistillConfig) -> tuple[Any, Any]:
    """Returns (model, tokenizer) of the frozen teacher. Raises UserError."""
    try:
        model, tokenizer = load_model(config.model_copy(update={"model": config.teacher, "student_shape": {}}))
    except UserError as error:
        raise UserError(str(error).replace("--model", "--teacher")) from error
    return model.requires_grad_(False), tokenizer


def load_student(config: DistillConfig) -> tuple[Any, Any]:
    """Returns (model, tokenizer) of --model, or a random model: the teacher's architecture with `student_shape`.

    Raises:
        UserError: there is no such model, or the shape is impossible.
    """
    if not config.student_shape:
        return load_model(config)
    from transformers import AutoModelForCausalLM

    assert config.teacher is not None
    place = model_path(config.model_copy(update={"model": config.teacher}))
    try:
        teacher = load_shape(place)
        tokenizer = load_tokenizer(place)
    except Exception as error:  # the library passes on any error of its transport
        raise UserError(f"--teacher {config.teacher}: can't be loaded: {why_not(place, error)}") from error
    values = teacher.to_dict()
    if unknown := sorted(set(config.student_shape) - set(values)):
        raise UserError(f"student_shape: {', '.join(unknown)} are not settings of {type(teacher).__name__}")
    if "num_hidden_layers" in config.student_shape:
        values.pop("layer_types", None)  # one entry per layer; the library fills it in
    try:
        shape = type(teacher)(**{**values, **config.student_shape})
        torch.manual_seed(config.seed)
        model = AutoModelForCausalLM.from_config(
            shape, dtype=torch.float32, attn_implementation=attention_of(config, shape), trust_remote_code=False
        )
        with torch.inference_mode():
            model(input_ids=torch.tensor([[0, 1]]))  # incompatible numbers of heads are only noticed here
    except Exception as error:  # inconsistent numbers can make the library raise anything
        raise UserError(f"student_shape: no model can have it: {type(error).__name__}: {error}") from error
    if model.get_input_embeddings().num_embeddings < len(tokenizer):
        raise UserError(f"student_shape: vocab_size is below the tokenizer's {len(tokenizer):,} tokens")
    return model.eval() if loads_for_parts(config) else model.eval().to(config.device), tokenizer


def check_one_tokenizer(config: DistillConfig, student: Any, teacher: Any, texts: list[str]) -> None:
    """Raises UserError unless both tokenizers use the same token ids.

    Args:
        student, teacher: tokenizers.
        texts: examples that both tokenizers must split into the same tokens.
    """
    ours, theirs = student.get_vocab(), teacher.get_vocab()
    if ours != theirs:
        other = min(token for token in ours.keys() | theirs.keys() if ours.get(token) != theirs.get(token))
        raise UserError(
            f"--teacher {config.teacher} ({len(theirs):,} tokens) and the student {config.model} ({len(ours):,} "
            f"tokens) don't share a tokenizer: {other!r} has the ids {theirs.get(other)} and {ours.get(other)}. "
            "On-policy distillation compares models token by token; --method off-policy only uses text"
        )
    for text in texts:
        if student(text)["input_ids"] != teacher(text)["input_ids"]:
            raise UserError(
                f"--teacher {config.teacher} and the student {config.model} have the same tokens but split text "
                f"differently, such as {text[:60]!r}; --method off-policy only uses text"
            )
