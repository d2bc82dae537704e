"""Prompt templates with their sources."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from r1lite.errors import UserError
from verifiers.prefill import prefill_of

TEMPLATES = {
    # DeepSeek-R1, table 1 (arXiv:2501.12948), word for word.
    "r1_zero": (
        "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. "
        "The assistant first thinks about the reasoning process in the mind and then provides the user with the "
        "answer. The reasoning process and answer are enclosed within <think>...</think> and <answer>...</answer> "
        "tags, respectively, i.e., <think> reasoning process here </think> <answer> answer here </answer>. "
        "User: {question}. Assistant:"
    ),
    # For the bundled nano: short, since its small context is needed for thinking.
    "short": "{question}\n",
}
_MARK = "What is 7391 plus 1?"  # a text that no template contains
CHAT_INSTRUCTION = (
    "Think first, then answer. Put the reasoning within <think> </think> and only the final answer within "
    "<answer> </answer>."
)


def render(template: str, question: str, tokenizer: Any) -> str:
    """The prompt of a question.

    Args:
        template: a name in TEMPLATES, "chat" (the tokenizer's own chat template), or text that contains {question}.

    Raises:
        UserError: the template is unknown, or it is "chat" and the tokenizer has no chat template.
    """
    if template == "chat":
        messages = [{"role": "system", "content": CHAT_INSTRUCTION}, {"role": "user", "content": question}]
        return render_messages(messages, tokenizer)
    return TEMPLATES.get(template, template).replace("{question}", question)


def render_problem(template: str, around: str, question: str, tokenizer: Any) -> str:
    """The prompt of a task's problem.

    Args:
        around: the task's template, which contains {question}.

    Raises:
        UserError: for the same reasons as in `render`.
    """
    return render(template, around.replace("{question}", question), tokenizer)


def prefill(template: str, around: str, tokenizer: Any) -> str:
    """The beginning of the reply that this template writes itself, in the form of `Completion.prefill`.

    It is read from the text after a question, so that the end of a question can't affect it.

    Args:
        around: the task's template, which contains {question}.

    Raises:
        UserError: for the same reasons as in `render`.
    """
    return prefill_of(render_problem(template, around, "?", tokenizer))


def encode(texts: Sequence[str], template: str, tokenizer: Any) -> list[list[int]]:
    """The token ids of rendered prompts.

    A chat template writes the special tokens itself, and any other text may begin with the tokenizer's first token: it
    is not put before it twice. Nor is an end put after a prompt, as some tokenizers do: the reply follows it.
    """
    begins, end = tokenizer.bos_token, tokenizer.eos_token_id
    ended, open_ = (tokenizer("a", add_special_tokens=adds)["input_ids"][-1:] for adds in (True, False))
    bare = [template == "chat" or bool(begins and text.startswith(begins)) for text in texts]
    encoded: dict[int, list[int]] = {}
    for kind in set(bare):
        chosen = [number for number, is_bare in enumerate(bare) if is_bare == kind]
        ids = tokenizer([texts[number] for number in chosen], add_special_tokens=not kind)["input_ids"]
        if not kind and ended == [end] != open_:
            ids = [row[:-1] for row in ids]
        encoded.update(zip(chosen, ids, strict=True))
    return [encoded[number] for number in range(len(texts))]


def render_messages(messages: list[dict[str, str]], tokenizer: Any, *, answered: bool = False) -> str:
    """A conversation rendered with the tokenizer's own chat template.

    If the template rejects or drops system messages (Gemma's, Mistral's first), the system message is put at the
    beginning of the user's first turn.

    Args:
        answered: True if the last message is the assistant's; otherwise the text ends where its turn begins.

    Raises:
        UserError: the tokenizer has no chat template, or the template fails.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise UserError("--template chat: this model's tokenizer has no chat template; try --template r1_zero")
    try:
        text = _applied(messages, tokenizer, answered)
        asked = messages[-2 if answered else -1]["content"].strip()
        # A template may change a text, but not leave out each.
        dropped = asked not in text and _MARK not in _applied([{"role": "user", "content": _MARK}], tokenizer, False)
    except Exception as error:  # a template is a program and can raise anything
        why = str(error) or type(error).__name__
        raise UserError(f"--template chat: this model's chat template fails: {why}; try --template r1_zero") from error
    if dropped:
        raise UserError("--template chat: this model's chat template leaves out the question; try --template r1_zero")
    return text


def _applied(messages: list[dict[str, str]], tokenizer: Any, answered: bool) -> str:
    def apply(said: list[dict[str, str]]) -> str:
        return str(tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=not answered))

    if len(messages) < 2 or [message["role"] for message in messages[:2]] != ["system", "user"]:
        return apply(messages)
    system, user, *rest = messages
    merged = [{"role": "user", "content": f"{system['content']}\n\n{user['content']}"}, *rest]
    try:
        text = apply(messages)
    except Exception as error:
        try:
            return apply(merged)
        except Exception:
            raise error from None  # the system message is not the cause
    told = system["content"].strip()
    # A short one may also occur elsewhere in the text.
    is_kept = told in text and _MARK in apply([{**system, "content": _MARK}, user, *rest])
    return text if is_kept or not told else apply(merged)


def check(template: str) -> None:
    """Raises UserError unless `template` can be rendered."""
    if template in TEMPLATES or template == "chat" or "{question}" in template:
        return
    hint = f"known: {', '.join([*TEMPLATES, 'chat'])}, or text that contains {{question}}"
    if any(char in template for char in string.whitespace + "{}"):
        hint = "your own template must contain {question}"
    raise UserError(f"--template {template!r} is unknown; {hint}")
