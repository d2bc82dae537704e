"""Checks of the loaded model, its tokenizer and its templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from r1lite.errors import UserError
from r1lite.rollout import eos_ids
from r1lite.selftest import Options, Result
from r1lite.selftest.subject import Subject, subject
from r1lite.tasks.prompts import TEMPLATES, encode, render

_TEXT = "<think>\n6 * 7 = 42; 50 - 42 = 8\n</think>\n<answer>8</answer>"


def check(options: Options) -> Iterator[Result]:
    """Checks size and context, end tokens, a round trip through the tokenizer, and each template."""
    tested = subject(options, "--engine", "transformers")
    model, config = tested.model, tested.model.config.get_text_config()
    size = sum(parameter.numel() for parameter in model.parameters())
    context = getattr(config, "max_position_embeddings", None)
    yield Result(
        "model",
        "ok",
        f"{options.model}: {type(model).__name__}, {size / 1e6:,.1f} M parameters on {tested.config.device}, context "
        f"{context or 'unknown'}",
        {"architecture": type(model).__name__, "parameters": size, "context": context},
    )
    yield from _tokenizer(tested)
    for template in (*TEMPLATES, "chat"):
        yield _template(template, tested.tokenizer)


def _tokenizer(tested: Subject) -> Iterator[Result]:
    ends = eos_ids(tested.model, tested.tokenizer)
    names = [tested.tokenizer.convert_ids_to_tokens(token) for token in ends]
    if not ends:
        yield Result("end of text", "failed", "no token ends a text: every completion would reach the maximum length")
    else:
        yield Result("end of text", "ok", ", ".join(map(str, names)), {"ids": ends})
    ids = tested.tokenizer(_TEXT, add_special_tokens=False)["input_ids"]
    back = tested.tokenizer.decode(ids, skip_special_tokens=True)
    if back.strip() == _TEXT:
        yield Result("tags", "ok", f"<think> and <answer> survive the tokenizer, in {len(ids)} tokens")
    else:
        yield Result(
            "tags",
            "failed",
            f"the tokenizer returns {back[:80]!r} for a text with <think> and <answer>: no completion can have the "
            "format that the reward requires",
        )


def _template(name: str, tokenizer: Any) -> Result:
    try:
        text = render(name, "What is 6 * 7?", tokenizer)
    except UserError as error:
        return Result(f"template {name}", "skipped", str(error))
    count = len(encode([text], name, tokenizer)[0])
    tail = text[-30:].replace("\n", "\\n")
    return Result(f"template {name}", "ok", f"{count} tokens, ends with '{tail}'", {"tokens": count})
