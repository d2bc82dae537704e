"""Building blocks of cards: YAML for the Hub, and Markdown in which any text is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from verifiers.terminal import one_line

_LONGEST = 500  # largest number of characters of a value in a card


def front(values: Mapping[str, Any]) -> str:
    """The head of a card, between two lines of dashes; None and empty values are left out."""
    kept = {key: value for key, value in values.items() if value not in (None, "", [])}
    return f"---\n{yaml.safe_dump(kept, sort_keys=False, allow_unicode=False, width=1000)}---\n"


def code(value: object) -> str:
    """A value as inline code for a line or a table cell: one line without markup."""
    text = one_line(str(value))
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    if not text.strip():
        return "` `"
    fence = "`" * (_longest_run(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def plain(value: object) -> str:
    """A value as inline text: letters, digits and plain marks stay, everything else is escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#!~&$])", r"\\\1", one_line(str(value))[:_LONGEST])


def block(text: str, language: str = "") -> str:
    """A code block."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table whose cells are already Markdown."""
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in (head, ["---"] * len(head), *body))


def _cell(text: str) -> str:
    """A cell with escaped "|", since tables are split before code is parsed; a backslash before "|" is moved."""
    return re.sub(r"(\\*)\|", lambda found: f"{found[1]} \\|" if found[1] else "\\|", text)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
