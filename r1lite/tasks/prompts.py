"""Prompt templates, each with its source."""

from __future__ import annotations

import string
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
    # The bundled nano's: its small context goes to thinking.
    "short": "{question}\n",
}
CHAT_INSTRUCTION = (
    "Think first, then answer. Put the reasoning within <think> </think> and only the final answer within "
    "<answer> </answer>."
)


def render(template: str, question: str, tokenizer: Any) -> str:
    """The prompt of a question.

    Args:
        template: a name of TEMPLATES, "chat" (the tokenizer's own chat template), or text with {question} in it.

    Raises:
        UserError: an unknown template, or "chat" with a tokenizer that has none.
    """
    if template == "chat":
        messages = [{"role": "system", "content": CHAT_INSTRUCTION}, {"role": "user", "content": question}]
        return render_messages(messages, tokenizer)
    return TEMPLATES.get(template, template).replace("{question}", question)


def prefill(template: str, around: str, tokenizer: Any) -> str:
    """What this template writes of the reply itself, as `Completion.prefill` has it.

    Told by what stands after a question, so that no question's own end decides it.

    Args:
        around: the task's template, with {question} in it.

    Raises:
        UserError: as `render`.
    """
    return prefill_of(render(template, around.replace("{question}", "?"), tokenizer))


def render_messages(messages: list[dict[str, str]], tokenizer: Any, *, answered: bool = False) -> str:
    """A conversation in the tokenizer's own chat template.

    A system message that the template refuses, or leaves out (Gemma's, Mistral's first), stands at the begin of the
    user's first turn.

    Args:
        answered: the last message is the assistant's; otherwise the text ends where its turn begins.

    Raises:
        UserError: the tokenizer has no chat template, or the template fails.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise UserError("--template chat: this model's tokenizer has no chat template; try --template r1_zero")
    try:
        return _applied(messages, tokenizer, answered)
    except Exception as error:  # the template is a program of its own
        raise UserError(
            f"--template chat: this model's chat template fails: {error}; try --template r1_zero"
        ) from error


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
            raise error from None  # it is not the system message that it fails on
    return text if system["content"].strip() in text else apply(merged)


def check(template: str) -> None:
    """Raises UserError unless `template` can be rendered."""
    if template in TEMPLATES or template == "chat" or "{question}" in template:
        return
    hint = f"known: {', '.join([*TEMPLATES, 'chat'])}, or text with {{question}} in it"
    if any(char in template for char in string.whitespace + "{}"):
        hint = "your own template must hold {question}"
    raise UserError(f"--template {template!r} is unknown; {hint}")
