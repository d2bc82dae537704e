"""The two models of a distillation: a teacher that is never trained, a student that may have to be made first."""

from __future__ import annotations

from typing import Any

import torch

from r1lite.config.distill import DistillConfig
from r1lite.errors import UserError
from r1lite.hub.revisions import pinned
from r1lite.training.loading import attention_of, load_model
from r1lite.training.machine import model_path
from r1lite.training.several import loads_for_parts


def load_teacher(config: DistillConfig) -> tuple[Any, Any]:
    """(model, tokenizer), frozen. Raises UserError."""
    try:
        model, tokenizer = load_model(config.model_copy(update={"model": config.teacher, "student_shape": {}}))
    except UserError as error:
        raise UserError(str(error).replace("--model", "--teacher")) from error
    return model.requires_grad_(False), tokenizer


def load_student(config: DistillConfig) -> tuple[Any, Any]:
    """(model, tokenizer): --model, or random weights in `student_shape`, otherwise what the teacher is.

    Raises:
        UserError: no such model, or a shape that can't be.
    """
    if not config.student_shape:
        return load_model(config)
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    assert config.teacher is not None
    place = model_path(config.model_copy(update={"model": config.teacher}))
    try:
        teacher = AutoConfig.from_pretrained(**pinned(place))
        tokenizer = AutoTokenizer.from_pretrained(**pinned(place))
    except Exception as error:  # the library raises whatever its transport does
        raise UserError(f"--teacher {config.teacher}: can't be loaded: {type(error).__name__}: {error}") from error
    values = teacher.to_dict()
    if unknown := sorted(set(config.student_shape) - set(values)):
        raise UserError(f"student_shape: {', '.join(unknown)} are not in a {type(teacher).__name__}")
    if "num_hidden_layers" in config.student_shape:
        values.pop("layer_types", None)  # one entry a layer; the library fills it in
    try:
        shape = type(teacher)(**{**values, **config.student_shape})
        torch.manual_seed(config.seed)
        model = AutoModelForCausalLM.from_config(
            shape, dtype=torch.float32, attn_implementation=attention_of(config, shape), trust_remote_code=False
        )
        with torch.inference_mode():
            model(input_ids=torch.tensor([[0, 1]]))  # heads that don't divide one another are noticed here only
    except Exception as error:  # whatever a library makes of numbers that don't fit one another
        raise UserError(f"student_shape: no model has it: {type(error).__name__}: {error}") from error
    if model.get_input_embeddings().num_embeddings < len(tokenizer):
        raise UserError(f"student_shape: vocab_size is below the tokenizer's {len(tokenizer):,} tokens")
    return model.eval() if loads_for_parts(config) else model.eval().to(config.device), tokenizer


def check_one_tokenizer(config: DistillConfig, student: Any, teacher: Any, texts: list[str]) -> None:
    """Raises UserError unless both tokenizers give every token the same number.

    Args:
        student, teacher: tokenizers.
        texts: some of what they will read, to be cut alike.
    """
    ours, theirs = student.get_vocab(), teacher.get_vocab()
    if ours != theirs:
        other = min(token for token in ours.keys() | theirs.keys() if ours.get(token) != theirs.get(token))
        raise UserError(
            f"--teacher {config.teacher} ({len(theirs):,} tokens) and the student {config.model} ({len(ours):,} "
            f"tokens) don't share a tokenizer: {other!r} is number {theirs.get(other)} and {ours.get(other)}. "
            "On-policy distillation compares them token by token; --method off-policy goes by text"
        )
    for text in texts:
        if student(text)["input_ids"] != teacher(text)["input_ids"]:
            raise UserError(
                f"--teacher {config.teacher} and the student {config.model} have the same tokens but cut text into "
                f"them differently, such as {text[:60]!r}; --method off-policy goes by text"
            )
