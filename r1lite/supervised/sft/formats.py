"""Reads the formats of fine-tuning sets into one form: prompt and completion.

messages           messages: [{role, content}, ...]; the last is the assistant's (TRL, axolotl)
ShareGPT           conversations: [{from, value}, ...], optional `system` column (LLaMA-Factory, axolotl)
Alpaca             instruction, input, output; optional `system` and `history` (LLaMA-Factory)
prompt/completion  prompt, completion: text or messages (TRL); a `question` takes precedence over the prompt
question/answer    question, answer: the original files of GSM8K
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from r1lite.errors import quoted
from r1lite.preference.pairs import after_prompt
from verifiers.core import GoldError
from verifiers.golds import gold_text
from verifiers.rows import NAMES

_ROLES = {
    **{"system": "system", "user": "user", "human": "user", "assistant": "assistant", "gpt": "assistant"},
    **{"model": "assistant", "bot": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant"},
}


class RowError(ValueError):
    """An unusable row; the message says why."""


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and its completion. Exactly one of question, prompt and turns is given.

    Args:
        question: will be rendered with the run's template, as in evaluation.
        prompt: the text as the model sees it.
        turns: (role, text) of a conversation with more than one question; roles system, user, assistant.
        prefill: the start of the reply in the original prompt (`Completion.prefill`).
        asked: all texts of the row that may be a question, for comparison with test problems.
    """

    completion: str
    question: str | None = None
    prompt: str | None = None
    turns: tuple[tuple[str, str], ...] = ()
    prefill: str = ""
    asked: tuple[str, ...] = ()


def format_of(row: Mapping[str, Any]) -> str | None:
    """Returns the format that matches a row's columns, or None."""
    return next((name for name, (columns, _) in FORMATS.items() if all(column in row for column in columns)), None)


def example(row: Mapping[str, Any], format: str, *, verbatim: bool = False) -> Example:
    """Converts a row of this format to an example.

    Args:
        verbatim: use `prompt` even if the row has a `question` too, and use conversations without the instruction that
            the run's template adds to a question.

    Raises:
        RowError: a column is missing, empty or of the wrong type, or the last message is not the assistant's.
    """
    columns, read = FORMATS[format]
    if missing := [column for column in columns if column not in row]:
        raise RowError(f"no column {quoted(missing)}")
    found = read(row, verbatim)
    if not found.completion.strip():
        raise RowError("the completion is empty")
    last = found.turns[-1][1] if found.turns else found.prompt if found.question is None else found.question
    if not last or not last.strip():
        raise RowError("the prompt is empty")
    asked = [
        last,
        *(row.get(name) for name in NAMES["prompt"]),
        *(text for role, text in found.turns if role == "user"),
    ]
    return replace(found, asked=tuple(text for text in asked if isinstance(text, str)))


def _messages(row: Mapping[str, Any], verbatim: bool) -> Example:
    return _conversation(_turns(row["messages"], "messages"), verbatim)


def _sharegpt(row: Mapping[str, Any], verbatim: bool) -> Example:
    turns = _turns(row["conversations"], "conversations")
    return _conversation([*_system(row), *turns], verbatim)


def _alpaca(row: Mapping[str, Any], verbatim: bool) -> Example:
    instruction, extra = _text(row["instruction"], "instruction"), row.get("input")
    asked = f"{instruction}\n\n{_text(extra, 'input')}" if extra else instruction
    history: list[tuple[str, str]] = []
    for pair in row.get("history") or []:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise RowError("'history' must hold pairs of question and answer")
        history += [("user", _text(pair[0], "history")), ("assistant", _text(pair[1], "history"))]
    said = [*_system(row), *history, ("user", asked), ("assistant", _answer(row["output"], "output"))]
    return _conversation(said, verbatim)


def _prompt_completion(row: Mapping[str, Any], verbatim: bool) -> Example:
    prompt, completion = row["prompt"], row["completion"]
    if isinstance(prompt, list) or isinstance(completion, list):
        before = _turns(prompt, "prompt") if isinstance(prompt, list) else [("user", _text(prompt, "prompt"))]
        if isinstance(completion, list):
            said = after_prompt(_turns(completion, "completion"), before)
            if said and before[-1][0] == "user" and said[0][0] != "assistant":
                raise RowError("the completion must be the assistant's, optionally after the messages of the prompt")
            return _conversation([*before, *said], verbatim)
        return _conversation([*before, ("assistant", _answer(completion, "completion"))], verbatim)
    completion, prefill = _answer(completion, "completion"), _text(row.get("prefill") or "", "prefill")
    if row.get("question") and not verbatim:
        return Example(completion, question=_text(row["question"], "question"), prefill=prefill)
    return Example(completion, prompt=_text(prompt, "prompt"), prefill=prefill)


def _question_answer(row: Mapping[str, Any], verbatim: bool) -> Example:
    return Example(_answer(row["answer"], "answer"), question=_text(row["question"], "question"))


# Name -> (required columns, reader); the first format whose columns all exist is used.
FORMATS: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any], bool], Example]]] = {
    "messages": (("messages",), _messages),
    "ShareGPT": (("conversations",), _sharegpt),
    "Alpaca": (("instruction", "output"), _alpaca),
    "prompt/completion": (("prompt", "completion"), _prompt_completion),
    "question/answer": (("question", "answer"), _question_answer),
}


def _conversation(turns: list[tuple[str, str]], verbatim: bool) -> Example:
    """Converts a conversation; its last turn is the completion.

    A single question before it will be rendered with the run's template, unless `verbatim`.
    """
    if len(turns) < 2 or turns[-1][0] != "assistant":
        raise RowError("the last message must be the assistant's, with one before it")
    *before, (_, completion) = turns
    if before[-1][0] != "user":
        raise RowError("the message before the completion must be the user's")
    if len(before) == 1 and not verbatim:
        return Example(completion, question=before[0][1])
    return Example(completion, turns=tuple(before))


def _turns(value: Any, column: str) -> list[tuple[str, str]]:
    if not isinstance(value, list) or not value:
        raise RowError(f"'{column}' must be a list of messages, got {_shown(value)}")
    turns = []
    for message in value:
        if not isinstance(message, Mapping):
            raise RowError(f"'{column}' must hold messages, got {_shown(message)}")
        said = message.get("role", message.get("from"))
        role = _ROLES.get(str(said).lower())
        if role is None:
            raise RowError(f"'{column}': unknown role {said!r}; known: {', '.join(_ROLES)}")
        turns.append((role, _text(message.get("content", message.get("value")), column)))
    return turns


def _system(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [("system", _text(row["system"], "system"))] if row.get("system") else []


def _text(value: Any, column: str) -> str:
    if isinstance(value, list) and value and all(isinstance(part, Mapping) and "text" in part for part in value):
        value = "".join(str(part["text"]) for part in value)  # OpenAI's content parts
    if not isinstance(value, str):
        raise RowError(f"'{column}' must be text, got {_shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RowError(f"'{column}' holds half a character (a lone surrogate)") from None
    return value


def _answer(value: Any, column: str) -> str:
    """Returns a completion's text; it may be a number, as the golds of problems may."""
    if isinstance(value, int | float | Decimal):
        try:
            value = gold_text(value, f"'{column}'")
        except GoldError as error:
            raise RowError(str(error)) from error
    return _text(value, column)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
