"""Reads pairs of a preferred and a rejected answer from a file, a folder or the Hub."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r1lite.errors import UserError, first_line, listing
from r1lite.hub.revisions import load_rows, split_names
from r1lite.tasks.rows import read_file, split_file
from verifiers.rows import RowError, is_text

_SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")
Message = tuple[str, str]  # (role, content)
Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one prompt."""

    prompt: str | Messages
    chosen: str  # the preferred one
    rejected: str
    margin: float = 0.0
    where: str = ""  # file and line of the row


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs to train on, and held-out pairs."""

    train: list[Pair]
    test: list[Pair]
    origin: str  # one line for the user


def load_pairs(
    source: str, *, test_source: str | None, hold_out: float, margin_column: str | None, splits: tuple[str, str]
) -> Pairs:
    """The pairs of `source`: columns `prompt` (or `question`), `chosen` and `rejected`, each text, or chat messages.

    A `question` takes precedence over a `prompt` that is text, which sets of r1lite hold as rendered for the sampling.

    Args:
        source: a JSONL (also .gz) or Parquet file, a folder with train.* and optionally test.*, or an id on the Hub.
        test_source: file with the held-out pairs; otherwise the folder's test.*, the Hub's test split, or the share
            `hold_out` of the prompts, chosen by a hash, so that no prompt is in both sets.
        margin_column: column with a number >= 0 for each pair.
        splits: names of the Hub's splits to train and test on.

    Raises:
        UserError: rows are unusable, such as pairs without a difference; the message names file and row.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        train_path, test_path = (split_file(path, split, _SUFFIXES) for split in ("train", "test"))
        if train_path is None:
            raise UserError(f"--source {source}: the folder needs train.* ({', '.join(_SUFFIXES)}); test.* is optional")
        train, origin = _read(train_path, margin_column), str(train_path)
        test = _read(test_path, margin_column) if test_path is not None and test_source is None else []
    elif path.exists():
        train, test, origin = _read(path, margin_column), [], str(path)
    else:
        train, test = (_from_hub(source, split, margin_column, needed=not n) for n, split in enumerate(splits))
        origin = f"{source} from the Hugging Face Hub"
    if test_source is not None:
        test = _read(Path(test_source).expanduser(), margin_column)
        origin += f", measured on {test_source}"
    if not test:
        held = [_share(pair) < hold_out for pair in train]
        test = [pair for pair, out in zip(train, held, strict=True) if out]
        train = [pair for pair, out in zip(train, held, strict=True) if not out]
        origin += f", {len(test)} pairs held out (by a hash of the prompt)"
    if not train or not test:
        raise UserError(
            f"--source {source}: {len(train)} pairs to train on, {len(test)} held out; give more pairs, a larger "
            "--hold-out, or --test-source"
        )
    return Pairs(train, test, origin)


def _share(pair: Pair) -> float:
    """A hash of the prompt as a number in [0, 1)."""
    digest = hashlib.blake2b(repr(pair.prompt).encode("utf-8", "backslashreplace"), digest_size=4).digest()
    return int.from_bytes(digest, "big") / 2**32


def _read(path: Path, margin_column: str | None) -> list[Pair]:
    if not path.name.endswith(_SUFFIXES):
        raise UserError(f"{path}: pairs are read from {', '.join(_SUFFIXES)}")
    return _pairs(((f"{path}:{number}", row) for number, row in read_file(path)), str(path), margin_column)


def _from_hub(name: str, split: str, margin_column: str | None, *, needed: bool) -> list[Pair]:
    try:
        if not needed and split not in split_names(name):
            return []
        found = load_rows(name, split_name=split)
    except Exception as error:  # the library passes on any exception of its transport
        why = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"--source {name}: no such file or folder, and the Hub can't load it: {why}") from error
    return _pairs(((f"{name}/{split}:{n}", row) for n, row in enumerate(found, 1)), name, margin_column)


def _pairs(numbered: Iterable[tuple[str, Any]], source: str, margin_column: str | None) -> list[Pair]:
    made, bad = [], []
    for where, row in numbered:
        try:
            made.append(_pair(row, where, margin_column))
        except ValueError as error:
            bad.append(f"{where}: {error}")
    if bad:
        raise UserError(
            f"--source {source}: {len(bad):,} of {len(bad) + len(made):,} pairs can't be used:\n{listing(bad)}"
        )
    return made


def _pair(row: Any, where: str, margin_column: str | None) -> Pair:
    """The pair in a row. Raises ValueError if the row is invalid."""
    if isinstance(row, RowError):
        raise row
    if not isinstance(row, dict):
        raise ValueError(
            f"a row must be an object with prompt (or question), chosen and rejected, not {type(row).__name__}"
        )
    given = row.get("prompt")
    asked = "question" if given is None or (isinstance(given, str) and row.get("question")) else "prompt"
    for column in (asked, "chosen", "rejected", *([margin_column] if margin_column else [])):
        if row.get(column) is None:
            name = "'prompt' or 'question'" if column == "question" else f"'{column}'"
            raise ValueError(f"no {name}; the row has {', '.join(map(repr, sorted(row)))}")
    prompt = row[asked] if isinstance(row[asked], str) else _messages(row[asked], asked)
    chosen, rejected = (_answer(row[column], prompt, column) for column in ("chosen", "rejected"))
    if not prompt:
        raise ValueError(f"'{asked}' is empty")
    for column, text in (
        (asked, prompt if isinstance(prompt, str) else "".join(text for _, text in prompt)),
        ("chosen", chosen),
        ("rejected", rejected),
    ):
        if not is_text(text):
            raise ValueError(f"'{column}' contains half a character (a lone surrogate)")
    if chosen.strip() == rejected.strip():
        raise ValueError("a pair without a difference: 'chosen' and 'rejected' are the same")
    margin = row[margin_column] if margin_column else 0.0
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin < 1e6:
        raise ValueError(f"'{margin_column}' must be a number >= 0, got {margin!r}")
    return Pair(prompt, chosen, rejected, float(margin), where)


def after_prompt(said: Sequence[Message], prompt: Sequence[Message]) -> list[Message]:
    """Returns the messages of an answer without those of the prompt, which some sets repeat before each answer."""
    start = len(prompt) if list(said[: len(prompt)]) == list(prompt) else 0
    return list(said[start:])


def _messages(value: Any, column: str) -> Messages:
    if not isinstance(value, Sequence) or not all(
        isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str) for m in value
    ):
        raise ValueError(f"'{column}' must be text, or a list of messages with role and content")
    return tuple((m["role"], m["content"]) for m in value)


def _answer(value: Any, prompt: str | Messages, column: str) -> str:
    """The answer in a column: a text, or the last assistant message after the messages of the prompt."""
    if isinstance(value, str):
        return value
    said = _messages(value, column)
    rest = after_prompt(said, prompt if isinstance(prompt, tuple) else (("user", prompt),))
    if len(rest) != 1 or rest[0][0] != "assistant":
        raise ValueError(f"'{column}' must be one assistant message, optionally after the messages of the prompt")
    return rest[0][1]
