"""`python -m verifiers audit`: audits a verifier, or a formula."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

from verifiers import rows
from verifiers.audit import audit
from verifiers.audit.report import KINDS
from verifiers.audit.run import LIMIT_S, SIZES
from verifiers.commands.shared import (
    count,
    count_or_zero,
    import_from_here,
    json_of_options,
    need_folders,
    positive,
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument(
        "target", help="a verifier (math, my_pkg:fn, trl:NAME, verl:module:function, math-verify) or a formula"
    )
    parser.add_argument("--data", type=Path, help="JSONL or Parquet of problems with golds; default: small samples")
    parser.add_argument(
        "--options", default="{}", metavar="JSON", help="the verifier's options; for a formula, by its verifiers' names"
    )
    parser.add_argument("--timeout", type=positive, default=10.0, metavar="S", help="deadline of one call (10)")
    parser.add_argument(
        "--limit", type=positive, default=LIMIT_S, metavar="S", help=f"of the whole audit ({LIMIT_S:g})"
    )
    parser.add_argument("--workers", type=count, default=None, help="number of processes; default: one per core")
    parser.add_argument("--largest", type=count, default=SIZES[-1], help="longest text, in characters (256,000)")
    parser.add_argument("--show", type=count_or_zero, default=20, metavar="N", help="number of findings shown (20)")
    parser.add_argument("--maths", action=argparse.BooleanOptionalAction, default=None, help="try typed maths answers")
    parser.add_argument(
        "--kind",
        choices=tuple(KINDS),
        help="what the verifier judges, if it does not declare this itself; style: how a text is written",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as an HTML page")
    for kind in ("prompt", "answer"):
        parser.add_argument(f"--{kind}-column", default="")


def run(options: argparse.Namespace) -> int:
    """Exit code 0: no finding of high severity; 1: there are some; 2: the audit could not be run."""
    import_from_here()
    given = json_of_options(options.options)
    if not isinstance(given, dict):
        raise ValueError(f"--options must be an object, {{...}}, not {type(given).__name__}")
    need_folders(options.json, options.html)
    problems = []
    if options.data is not None:
        columns = rows.Columns(prompt=options.prompt_column, answer=options.answer_column)
        for number, row in itertools.islice(rows.rows(options.data), 1000):
            if isinstance(row, dict):
                row = {"completion": "", **row}
            try:
                problems.append(rows.pair(row, columns, default_id=str(number))[0])
            except rows.RowError as error:
                raise ValueError(f"{options.data}:{number}: {error}") from error
    sizes = [size for size in SIZES if size < options.largest] + [options.largest]
    report = audit(
        options.target,
        problems,
        options=given,
        timeout_s=options.timeout,
        limit_s=options.limit,
        workers=options.workers,
        sizes=sizes,
        maths=options.maths,
        kind=options.kind,
    )
    print(report.as_text(show=options.show))
    if options.json:
        options.json.write_text(report.as_json(), encoding="utf-8")
    if options.html:
        options.html.write_text(report.as_html(), encoding="utf-8", errors="backslashreplace")
    return 0 if report.passed else 1
