"""Files of results: JSONL, to which a resumed command appends, and Parquet, which is made from JSONL at the end."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from verifiers import rows

_ROWS = 1024  # rows of a group in the Parquet file, which is held in memory
PARQUET = ".parquet"


def log_of(out: Path) -> Path:
    """Returns the file that is written row by row: `out`, or the file beside a Parquet file until that is made."""
    return out.with_name(out.name + ".partial.jsonl") if out.suffix == PARQUET else out


def about_of(out: Path) -> Path:
    """Returns the file that describes what the results are of."""
    return out.with_name(out.name + ".about.json")


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of results, the same from both kinds of file. Raises ValueError."""
    for number, row in rows.rows(path):
        if path.suffix == PARQUET and isinstance(row, dict) and isinstance(row.get("verdicts"), dict):
            row["verdicts"] = {name: verdict for name, verdict in row["verdicts"].items() if verdict is not None}
        if not is_result(row):
            raise ValueError(f"{path}: row {number} is not a line of results as `score --out` writes it")
        yield _without_gaps(row) if path.suffix == PARQUET else row


def is_reward(value: Any) -> bool:
    """True for a finite number, and for None, which means unscored."""
    # The largest float, as an integer may be larger than every float and then be no reward of any formula.
    return value is None or (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    )


def is_result(row: Any) -> bool:
    """True for a line of results: its reward and scores are numbers, and each verdict has a reason."""
    if not isinstance(row, dict) or not {"row", "id", "reward", "verdicts"} <= row.keys():
        return False
    verdicts = row["verdicts"]
    return (
        is_reward(row["reward"])
        and isinstance(verdicts, dict)
        and all(
            isinstance(verdict, dict) and isinstance(verdict.get("reason"), str) and is_reward(verdict.get("score", ""))
            for verdict in verdicts.values()
        )
    )


def _without_gaps(row: dict[str, Any]) -> dict[str, Any]:
    """Removes empty columns: Parquet has every column in every row, but results have only the fields in use."""
    verdicts = {
        name: {
            key: value for key, value in verdict.items() if value not in (None, "", []) or key in ("score", "version")
        }
        for name, verdict in row["verdicts"].items()
    }
    kept = {key: row[key] for key in ("row", "id", "reward")}
    return {**kept, "verdicts": verdicts, **({"error": row["error"]} if row.get("error") else {})}


def make_parquet(out: Path, names: Sequence[str]) -> None:
    """Converts the finished log to the Parquet file, in constant memory.

    Args:
        names: the verifiers of the reward, in the order of the formula.
    """
    import pyarrow
    import pyarrow.parquet

    verdict = pyarrow.struct(
        {
            "score": pyarrow.float64(),
            "reason": pyarrow.string(),
            "detail": pyarrow.string(),
            "answer": pyarrow.string(),
            "span": pyarrow.list_(pyarrow.int64()),
            "flags": pyarrow.list_(pyarrow.string()),
            "version": pyarrow.string(),
        }
    )
    schema = pyarrow.schema(
        {
            "row": pyarrow.int64(),
            "id": pyarrow.string(),
            "reward": pyarrow.float64(),
            "verdicts": pyarrow.struct({name: verdict for name in names}),
            "error": pyarrow.string(),
        }
    )
    log, whole = log_of(out), out.with_name(out.name + ".new")
    with pyarrow.parquet.ParquetWriter(whole, schema) as writer, log.open(encoding="utf-8") as lines:
        while group := [json.loads(line) for line in itertools.islice(lines, _ROWS)]:
            writer.write_table(pyarrow.Table.from_pylist(group, schema))
    os.replace(whole, out)
    with contextlib.suppress(FileNotFoundError):
        log.unlink()


def need_pyarrow(out: Path) -> None:
    """Raises ValueError, before any work is done, if a Parquet file could not be written."""
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as error:
        raise ValueError(f"--out {out}: writing Parquet needs pyarrow: pip install pyarrow") from error
