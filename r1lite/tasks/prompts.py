"""Prompt templates, each with its source."""

from __future__ import annotations

import string
from typing import Any

from r1lite.errors import UserError

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


def render_messages(messages: list[dict[str, str]], tokenizer: Any) -> str:
    """The prompt of a conversation in the tokenizer's own chat template. Raises UserError if it has none, or fails."""
    if not getattr(tokenizer, "chat_template", None):
        raise UserError("--template chat: this model's tokenizer has no chat template; try --template r1_zero")
    try:
        text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # the template is a program of its own
        raise UserError(
            f"--template chat: this model's chat template fails: {error}; try --template r1_zero"
        ) from error
    return text


def check(template: str) -> None:
    """Raises UserError unless `template` can be rendered."""
    if template in TEMPLATES or template == "chat" or "{question}" in template:
        return
    hint = f"known: {', '.join([*TEMPLATES, 'chat'])}, or text with {{question}} in it"
    if any(char in template for char in string.whitespace + "{}"):
        hint = "your own template must hold {question}"
    raise UserError(f"--template {template!r} is unknown; {hint}")
