"""Sources of completions, and the completions in their rows; `opening.py` opens a source.

A source is cut into blocks that can be read independently, so that many processes can work and a killed process loses
at most its block.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r1lite.curation.rows import Candidate, Provenance
from r1lite.errors import UserError
from verifiers import Completion, GoldError, Problem, rows
from verifiers.commands import storage
from verifiers.golds import gold_text
from verifiers.prefill import prefill_of

_BLOCK_BYTES = 4 << 20
_PACKED = 12  # approximate compression ratio of rollouts
QUESTION = ("question", "problem", "query", "instruction")
_LARGEST = 2**63  # beyond the integers of Parquet


File = Path | storage.RemoteFile


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a file: the lines that begin in [start, end), or a row group of Parquet; end -1: all of it."""

    path: File
    start: int = 0
    end: int = -1


Block = tuple[Piece, ...]  # a block may contain several small files


@dataclass(frozen=True, slots=True)
class Source:
    """The rows of a data set in the making."""

    kind: str  # "run", "samples" or "stored"
    path: Path  # for a URL, its path only; `location` is the full name
    files: tuple[File, ...]
    provenance: Provenance  # common to all rows; a row's own values override it
    config: Mapping[str, Any]  # configuration of the run that made it; empty for stored files
    reward: Mapping[str, Any]  # the run's reward.json; empty for stored files
    url: str = ""  # URL of stored files that are read from there

    @property
    def location(self) -> str:
        """The source as the user named it."""
        return self.url or str(self.path)

    @property
    def blocks(self) -> list[Block]:
        """The blocks, in order."""
        made: list[Block] = []
        room = 0  # bytes left in the last block
        for path in self.files:
            size = _size(path) * (_PACKED if path.suffix == ".gz" else 1)
            if made and size <= room:
                made[-1] = (*made[-1], *_pieces(path))
                room -= size
            else:
                made += [(piece,) for piece in _pieces(path)]
                room = _BLOCK_BYTES - size
        return made

    @property
    def fingerprint(self) -> list[list[Any]]:
        """Changes when a file does."""
        return [
            [str(path), path.stat().st_size, path.stat().st_mtime_ns]
            if isinstance(path, Path)
            else [path.url, path.size, path.version]
            for path in self.files
        ]


def _size(file: File) -> int:
    return file.stat().st_size if isinstance(file, Path) else file.size


def _pieces(path: File) -> Iterator[Piece]:
    if path.suffix == ".jsonl":
        size = _size(path)
        for start in range(0, size, _BLOCK_BYTES):
            yield Piece(path, start, min(start + _BLOCK_BYTES, size))
    elif path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        try:
            with path.open("rb") as opened, pyarrow.parquet.ParquetFile(opened) as file:
                yield from (Piece(path, group, group + 1) for group in range(file.num_row_groups))
        except pyarrow.ArrowException as error:
            raise UserError(f"{path}: not a Parquet file: {error}") from error
    else:
        yield Piece(path)


def read_block(block: Block) -> Iterator[tuple[str, Any]]:
    """Yields ("FILE:OFFSET", row) in constant memory; in Parquet the offset is the row in its group.

    The row is a RowError if a line isn't JSON.

    Raises: UserError if a file is truncated or damaged.
    """
    for piece in block:
        if piece.end < 0:
            found: Iterator[tuple[int, Any]] = _whole_file(piece)
        elif piece.path.suffix == ".parquet":
            found = _row_group(piece)
        else:
            found = _byte_range(piece)
        try:
            for place, row in found:
                yield f"{piece.path.name}:{place}", row
        except ValueError as error:
            raise UserError(f"--rollouts {error}") from error
        except OSError as error:
            raise UserError(f"--rollouts {piece.path}: can't be read: {error.strerror or error}") from error


def _whole_file(piece: Piece) -> Iterator[tuple[int, Any]]:
    with storage.fetched(str(piece.path)) as path:
        yield from rows.rows(path)


def _byte_range(piece: Piece) -> Iterator[tuple[int, Any]]:
    with piece.path.open("rb") as file:
        if piece.start:
            file.seek(piece.start - 1)
            file.readline()  # a line belongs to the piece in which it begins
        place = file.tell()
        while place < piece.end and (line := file.readline()):
            if line.strip():
                yield place, rows.parsed(line)
            place += len(line)


def _row_group(piece: Piece) -> Iterator[tuple[int, Any]]:
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with piece.path.open("rb") as opened, pyarrow.parquet.ParquetFile(opened) as file:
            for batch in file.iter_batches(batch_size=256, row_groups=[piece.start]):
                for row in batch.to_pylist():
                    yield number, row
                    number += 1
    except pyarrow.ArrowException as error:
        raise ValueError(f"{piece.path}: damaged in row group {piece.start}: {error}") from error


def candidate(row: Any, source: Source) -> Candidate:
    """The completion in a row. Raises RowError that names missing or unusable values."""
    own = source.kind != "stored" and isinstance(row, Mapping)
    try:
        found = _own(row, source) if own else _stored(row, source)
    except (TypeError, AttributeError, OverflowError) as error:  # such as a number instead of a list
        raise rows.RowError(f"not a row of completions: {error}") from error
    problem = found.problem
    for name, value, kinds in (
        ("question", problem.prompt, str),
        ("completion", found.completion.text, str),
        ("prompt", found.prompt, str),
        ("problem_id", problem.id, str),
        ("language", problem.language, str | None),
        ("tests", problem.tests, Mapping | None),
        ("meta", problem.meta, Mapping),
        ("finish_reason", found.completion.finish_reason, str | None),
        ("policy_version", found.completion.policy_version, int | None),
        ("prefill", found.completion.prefill, str),
        ("sample", found.sample, int),
        ("step", found.step, int | None),
        ("num_tokens", found.num_tokens, int | None),
        ("num_prompt_tokens", found.num_prompt_tokens, int | None),
    ):
        if not isinstance(value, kinds):
            raise rows.RowError(f"{name} is {type(value).__name__}, which can't be used")
        if isinstance(value, int) and abs(value) >= _LARGEST:
            raise rows.RowError(f"{name} has more than 64 bits")
    texts = {"question": problem.prompt, "completion": found.completion.text, "prompt": found.prompt, "id": problem.id}
    for name, text in {**texts, "answer": problem.answer or ""}.items():
        if not rows.is_text(text):
            raise rows.RowError(f"the {name} contains half a character (a lone surrogate)")
    return found


def _stored(row: Any, source: Source) -> Candidate:
    """The completion in a row of any origin."""
    if isinstance(row, Mapping) and isinstance(row.get("tests"), str):  # as in sets of r1lite
        row = {**row, "tests": json.loads(row["tests"])}
    if isinstance(row, Mapping) and not row.get("completion") and ("messages" in row or "conversations" in row):
        row = {**row, "completion": rows.completion_of(row)}
    elif isinstance(row, Mapping) and "output" in row and row.get("prefill"):
        row = {**row, "output": rows.completion_of(row)}
    asked = next((name for name in QUESTION if isinstance(row, Mapping) and row.get(name)), "")
    problem, completion = rows.pair(row, rows.Columns(prompt=asked), default_id="")
    meta = row.get("meta")
    meta = json.loads(meta) if isinstance(meta, str) else meta
    text = problem.prompt
    problem = Problem(
        prompt=text,
        answer=problem.answer,
        tests=problem.tests,
        language=problem.language,
        # Without an id, rows with the same words belong to the same problem.
        id=problem.id or f"q-{hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}",
        meta=meta if isinstance(meta, Mapping) else {},
    )
    given = {**(row["provenance"] if isinstance(row.get("provenance"), Mapping) else {}), **row}
    read = {key: of_type(given.get(key)) for key, of_type in _FIELDS.items()}
    known = {key: value for key, value in read.items() if value is not None}
    prompt, ids, prompt_ids = row.get("prompt"), completion.token_ids, row.get("prompt_ids")
    prompt = prompt if isinstance(prompt, str) else text
    prefill, version = row.get("prefill", prefill_of(prompt)), known.get("policy_version", 0)
    return Candidate(
        problem=problem,
        completion=Completion(completion.text, ids, (), completion.finish_reason, version, prefill),
        prompt=prompt,
        sample=int(row.get("sample") or 0),
        step=_whole(row.get("step")),
        provenance=dataclasses.replace(source.provenance, **known) if known else source.provenance,
        num_prompt_tokens=len(prompt_ids)
        if isinstance(prompt_ids, list) and prompt_ids
        else _whole(row.get("num_prompt_tokens")),
        num_tokens=len(ids) if ids else _whole(row.get("num_tokens")),
    )


def _text(value: Any) -> str | None:
    """The value of a foreign column if it is text; otherwise None."""
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    """The value of a foreign column as a number of less than 64 bits; None if it isn't one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < _LARGEST else None


def _whole(value: Any) -> int | None:
    """The value of a foreign column as an integer; None if it isn't one."""
    number = _number(value)
    return int(value) if number is not None and number.is_integer() else None


_READERS: Mapping[str, Callable[[Any], Any]] = {"str | None": _text, "int | None": _whole, "float | None": _number}
_FIELDS = {field.name: _READERS[str(field.type)] for field in dataclasses.fields(Provenance)}


def _own(row: Mapping[str, Any], source: Source) -> Candidate:
    """The completion in a row that r1lite wrote, whose columns are known."""
    if "unreadable" in row:
        raise rows.RowError(row["unreadable"])
    try:
        provenance, version = source.provenance, row["policy_version"]
        if row.get("provenance"):
            provenance = Provenance(**row["provenance"])
        elif version != provenance.policy_version:
            provenance = _of_version(provenance, version)
        ids, prompt_ids = row.get("token_ids"), row.get("prompt_ids")
        prefill = row.get("prefill", prefill_of(row["prompt"]))
        return Candidate(
            problem=Problem(
                row["question"],
                gold_text(row["gold"]),
                row["tests"],
                row["language"],
                row["problem_id"],
                row.get("meta") or {},
            ),
            completion=Completion(row["completion"], tuple(ids or ()), (), row["finish_reason"], version, prefill),
            prompt=row["prompt"],
            sample=row["sample"],
            step=row.get("step"),
            provenance=provenance,
            num_prompt_tokens=len(prompt_ids) if prompt_ids else row.get("num_prompt_tokens"),
            num_tokens=len(ids) if ids else row.get("num_tokens"),
            original=row.get("original"),
        )
    except KeyError as error:
        raise rows.RowError(f"not a rollout of r1lite: {error} is missing") from error
    except GoldError as error:
        raise rows.RowError(str(error)) from error


@functools.lru_cache(maxsize=64)
def _of_version(provenance: Provenance, version: int) -> Provenance:
    return dataclasses.replace(provenance, policy_version=version)
