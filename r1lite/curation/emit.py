"""The third pass: writes the set by the decisions of the second pass.

train.jsonl or train.parquet   the kept rows, in the order of their source
rejected.jsonl                 the other rows, with the step that rejected them, its reason and detail
pairs.jsonl                    a kept completion and a wrong one of the same problem
problems.jsonl                 pass rates
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r1lite.curation.index import Index
from r1lite.curation.rows import as_line, pair_columns
from r1lite.curation.scan import outcome
from r1lite.rl.passk import pass_at_k, wilson_interval
from r1lite.run.files import replaced_file

REJECTED, PAIRS, PROBLEMS = "rejected.jsonl", "pairs.jsonl", "problems.jsonl"
_PARQUET_ROWS = 4096  # rows in a row group


def write_rows(index: Index, folder: Path, file_type: str, *, keep_rejects: bool) -> dict[str, Any]:
    """Writes train.* and rejected.jsonl. Returns the numbers of kept rows and of their problems, and their lengths."""
    with replaced_file(folder / f"train.{file_type}") as aside:
        lines = _lines(index, "fate = 0")
        if file_type == "jsonl":
            _write(aside, lines)
        else:
            _write_parquet(aside, lines)
    if keep_rejects:
        with replaced_file(folder / REJECTED) as aside:
            _write(aside, _lines(index, "fate > 0 AND size > 0"))
    rows, problems, total, longest = index.db.execute(
        "SELECT count(*), count(DISTINCT key), sum(length), max(length) FROM rows WHERE fate = 0"
    ).fetchone()
    # In tokens of the model that wrote them, or in words if the source has no token counts.
    return {"rows": rows, "problems": problems, "length": total, "mean_length": total / rows, "longest": longest}


def _lines(index: Index, which: str) -> Iterator[str]:
    """The selected rows in order, extended by the results of the second pass.

    The columns are appended to a row's JSON text, since parsing and writing it again would take most of the time.
    """
    found = index.db.execute(
        "SELECT block, offset, size, fate, reason, detail, n, c FROM rows JOIN problems USING (key) "
        f"WHERE {which} ORDER BY seq"
    )
    at, file = -1, None
    try:
        for block, offset, size, fate, reason, detail, n, c in found:
            if block != at:
                if file is not None:
                    file.close()
                at, file = block, outcome(index.folder, block)[0].open("rb")
            assert file is not None
            file.seek(offset)
            more: dict[str, Any] = {"num_samples": n, "num_correct": c or 0, "pass_rate": c / n if n else None}
            if fate:
                more |= {"rejected_by": index.steps[fate - 1], "reason": reason, "detail": detail}
            yield f"{file.read(size - 2).decode()}, {as_line(more)[1:]}\n"  # without its brace and line end
    finally:
        if file is not None:
            file.close()


def _write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        file.writelines(lines)


def _write_parquet(path: Path, lines: Iterator[str]) -> None:
    import pyarrow
    import pyarrow.parquet

    writer: Any = None
    schema = parquet_schema()
    try:
        while rows := [json.loads(line) for line in itertools.islice(lines, _PARQUET_ROWS)]:
            if writer is None:
                names = [*rows[0]]
                schema = pyarrow.schema([schema.field(name) for name in names])
                writer = pyarrow.parquet.ParquetWriter(path, schema)
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
    finally:
        if writer is not None:
            writer.close()


def parquet_schema() -> Any:
    """Types of all columns that a row may have; they equal the types that `datasets` infers from JSONL."""
    import pyarrow as pa

    text, number, rate = pa.string(), pa.int64(), pa.float64()
    turn = [("role", text), ("content", text)]
    verdict = {
        **dict.fromkeys(("verifier", "version", "options"), text),
        "score": rate,
        **dict.fromkeys(("reason", "detail", "answer"), text),
        "span": pa.list_(number),
    }
    provenance = {
        **dict.fromkeys(("source", "task", "run", "model", "model_hash"), text),
        "policy_version": number,
        **dict.fromkeys(("engine", "engine_version"), text),
        "temperature": rate,
        "max_tokens": number,
        **dict.fromkeys(("stop_text", "template"), text),
        "seed": number,
        "rewritten": text,
    }
    fields = {
        "prompt": text,
        "completion": text,
        "messages": pa.list_(pa.struct(turn)),
        "conversations": pa.list_(pa.struct([("from", text), ("value", text)])),
        **dict.fromkeys(("instruction", "input", "output", "problem_id"), text),
        **dict.fromkeys(("sample", "step"), number),
        **dict.fromkeys(("question", "gold", "language", "tests", "meta"), text),
        **dict.fromkeys(("num_prompt_tokens", "num_tokens"), number),
        **dict.fromkeys(("finish_reason", "prompt_hash", "original"), text),
        "verdicts": pa.list_(pa.struct(list(verdict.items()))),
        "provenance": pa.struct(list(provenance.items())),
        **dict.fromkeys(("num_samples", "num_correct"), number),
        "pass_rate": rate,
        "prefill": text,
    }
    return pa.schema(list(fields.items()))


def write_pairs(index: Index, folder: Path, each: int, format: str) -> int:
    """Writes pairs.jsonl in a format of `rows.FORMATS`. Returns the number of pairs."""
    count = 0
    with replaced_file(folder / PAIRS) as aside, open(aside, "w", encoding="utf-8", newline="\n") as file:
        for kept, other in index.pairs(each):
            chosen, rejected = index.line(kept), index.line(other)
            verdicts = rejected["verdicts"]  # a formula such as "1 - math" also rejects what all verifiers give 1
            verdict = next((v for v in verdicts if v["score"] != 1), verdicts[0])
            row = {
                **pair_columns(format, chosen, rejected),
                "prefill": chosen["prefill"],
                "problem_id": chosen["problem_id"],
                "question": chosen["question"],
                "gold": chosen["gold"],
                "chosen_sample": chosen["sample"],
                "chosen_step": chosen["step"],
                "rejected_sample": rejected["sample"],
                "rejected_step": rejected["step"],
                "rejected_because": verdict["reason"],
            }
            file.write(as_line(row) + "\n")
            count += 1
    return count


def write_problems(index: Index, folder: Path) -> dict[str, Any]:
    """Writes problems.jsonl. Returns the number of problems and a histogram of their pass rates.

    The pass rate c / n over a problem's n verified completions is an unbiased estimate of the chance of one completion;
    `pass_at` holds the unbiased pass@k (arXiv:2107.03374) for powers of two up to n.
    """
    histogram = dict.fromkeys(("never solved", "up to 1/4", "up to 1/2", "up to 3/4", "up to 1", "always solved"), 0)
    count = unscored = 0
    found = index.db.execute(
        "SELECT problem_id, n, coalesce(c, 0), num_rows, kept FROM problems JOIN (SELECT key, min(problem_id) AS "
        "problem_id, sum(fate = 0) AS kept FROM rows GROUP BY key) USING (key) ORDER BY first"
    )
    with replaced_file(folder / PROBLEMS) as aside, open(aside, "w", encoding="utf-8", newline="\n") as file:
        for problem_id, n, c, num_rows, kept in found:
            rate = c / n if n else None
            row = {
                "problem_id": problem_id,
                "num_samples": n,
                "num_correct": c,
                "num_unscored": num_rows - n,
                "pass_rate": rate,
                "pass_rate_interval": wilson_interval(c, n) if n else None,
                "pass_at": {str(1 << i): pass_at_k(n, c, 1 << i) for i in range(n.bit_length())},
                "num_kept": kept,
            }
            file.write(as_line(row) + "\n")
            count += 1
            unscored += rate is None
            if rate is not None:
                edges = [rate == 0, rate == 1, rate <= 0.25, rate <= 0.5, rate <= 0.75, True]
                names = ["never solved", "always solved", "up to 1/4", "up to 1/2", "up to 3/4", "up to 1"]
                histogram[names[edges.index(True)]] += 1
    return {"problems": count, "problems_unscored": unscored, "pass_rates": histogram}
