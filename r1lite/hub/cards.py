"""What cards are made of: YAML for the Hub and Markdown for the reader, whatever the text that goes into them says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from verifiers.terminal import one_line

_LONGEST = 500  # characters of a value in a card


def front(values: Mapping[str, Any]) -> str:
    """The head of a card, between two lines of dashes; what is None or empty is left out."""
    kept = {key: value for key, value in values.items() if value not in (None, "", [])}
    return f"---\n{yaml.safe_dump(kept, sort_keys=False, allow_unicode=False, width=1000)}---\n"


def code(value: object) -> str:
    """A value as code within a line or a table's cell: one line, and nothing in it is markup."""
    text = one_line(str(value))
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    if not text.strip():
        return "` `"
    fence = "`" * (_longest_run(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def plain(value: object) -> str:
    """A value as text within a line: letters, digits and plain marks stay, everything else is escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#!~&$])", r"\\\1", one_line(str(value))[:_LONGEST])


def block(text: str, language: str = "") -> str:
    """Lines of code."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in (head, ["---"] * len(head), *body))


def _cell(text: str) -> str:
    """A table is cut at "|" before code is looked for, so each is escaped; a backslash before it is moved away."""
    return re.sub(r"(\\*)\|", lambda found: f"{found[1]} \\|" if found[1] else "\\|", text)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
