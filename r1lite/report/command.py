"""`r1lite report RUN...` and `r1lite watch RUN`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from r1lite.errors import UserError
from r1lite.report.build import FILE, Options, file_name, write_report
from r1lite.report.read import is_pipeline


def main(argv: Sequence[str]) -> int:
    """Writes the report of runs. Returns 0. Raises UserError if a path holds no run."""
    parser = argparse.ArgumentParser(
        prog="r1lite report",
        description="Writes an HTML report of a run that opens offline: curves, findings, and every kind of completion "
        "with its verdict. Works for finished, running and killed runs, for every stage and for r1lite r1. Several "
        "runs are overlaid, seeds of one configuration as a band.",
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's directory, or a pipeline's")
    parser.add_argument(
        "--out", type=Path, help=f"output file (default: {FILE} in RUN; for N runs report-of-N-runs.html in the first)"
    )
    parser.add_argument(
        "--max-mb", type=float, metavar="N", help="maximum size of the file; a larger run is sampled (10)"
    )
    parser.add_argument(
        "--everything",
        action="store_true",
        help="every step and completion, in a folder beside the file: report_files for report.html",
    )
    parser.add_argument("--svg", action="store_true", help="write only the curves, as one SVG image")
    options = parser.parse_args(argv)
    size = _size(options.max_mb)
    without = "--svg" if options.svg else "--everything" if options.everything else None
    for name, given in (("--everything", options.everything and options.svg), ("--max-mb", options.max_mb is not None)):
        if without and given:
            raise UserError(f"{without} leaves {name} without effect: omit one of them")
    default = options.runs[0] / file_name(len(options.runs))
    out = options.out or (default.with_suffix(".svg") if options.svg else default)
    _check(options.runs)
    if out.is_dir():
        raise UserError(f"--out {out} is a folder; name a file")
    if options.svg:
        from r1lite.report.picture import write_svg

        write_svg(options.runs, out)
    else:
        write_report(options.runs, out, Options(size, options.everything))
    print(f"report    {out} ({out.stat().st_size / 2**20:.1f} MiB)")
    return 0


def watch(argv: Sequence[str]) -> int:
    """Serves the page of runs until Ctrl-C. Returns 0. Raises UserError if a path holds no run or the port is used."""
    parser = argparse.ArgumentParser(
        prog="r1lite watch", description="Serves the page of `r1lite report` on this machine and keeps it up to date."
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's directory, or a pipeline's")
    parser.add_argument("--port", type=int, default=8321, help="port on 127.0.0.1 (8321; 0: any free port)")
    parser.add_argument("--max-mb", type=float, metavar="N", help="maximum size of the completions (10)")
    options = parser.parse_args(argv)
    size = _size(options.max_mb)
    _check(options.runs)
    from r1lite.report.live import serve

    serve(options.runs, options.port, Options(size))
    return 0


def _size(max_mb: float | None) -> float:
    if max_mb is not None and not 0 < max_mb < math.inf:
        raise UserError(f"--max-mb must be a number above 0, got {max_mb:g}")
    return Options().max_mib if max_mb is None else max_mb


def _check(runs: Sequence[Path]) -> None:
    for run in runs:
        if not run.is_dir():
            raise UserError(f"{run} is not a folder; pass the run directory that `r1lite grpo` printed")
        if is_pipeline(run) and len(runs) > 1:
            raise UserError(f"{run} is a pipeline: it needs a report of its own")
