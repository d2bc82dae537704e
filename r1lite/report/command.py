"""`r1lite report RUN...` and `r1lite watch RUN`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from r1lite.errors import UserError
from r1lite.report.build import FILE, Options, write_report
from r1lite.report.read import is_pipeline


def main(argv: Sequence[str]) -> int:
    """Writes the report of runs. Returns 0. Raises UserError if a place holds no run."""
    parser = argparse.ArgumentParser(
        prog="r1lite report",
        description="What a run did, as one HTML file that opens from disk without a network: curves, findings, every "
        "kind of completion with its verdict. Of finished runs, of those that go on and of those that were killed; of "
        "every stage, and of r1lite r1. Several runs are drawn over each other, seeds of one configuration as a band.",
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's directory, or a pipeline's")
    parser.add_argument("--out", type=Path, help=f"the file (default: {FILE} in the first RUN)")
    parser.add_argument(
        "--max-mb", type=float, default=10.0, metavar="N", help="size of the file; of more, a sample of steps (10)"
    )
    parser.add_argument(
        "--everything", action="store_true", help="every step and completion, in a folder report_files beside the file"
    )
    parser.add_argument("--svg", action="store_true", help="the curves alone, as one SVG picture")
    options = parser.parse_args(argv)
    if options.max_mb <= 0:
        raise UserError(f"--max-mb must be more than 0, got {options.max_mb:g}")
    out = options.out or options.runs[0] / ("report.svg" if options.svg else FILE)
    _check(options.runs)
    if out.is_dir():
        raise UserError(f"--out {out} is a folder; name a file")
    if options.svg:
        from r1lite.report.picture import write_svg

        write_svg(options.runs, out)
    else:
        write_report(options.runs, out, Options(options.max_mb, options.everything))
    print(f"report    {out} ({out.stat().st_size / 2**20:.1f} MiB)")
    return 0


def watch(argv: Sequence[str]) -> int:
    """Serves the page of runs until Ctrl-C. Returns 0. Raises UserError: no run there, or the port is taken."""
    parser = argparse.ArgumentParser(
        prog="r1lite watch", description="The same page as `r1lite report`, served on this machine and kept up to date."
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's directory, or a pipeline's")
    parser.add_argument("--port", type=int, default=8321, help="on 127.0.0.1 (8321; 0: any free one)")
    parser.add_argument("--max-mb", type=float, default=10.0, metavar="N", help="of completions that are offered (10)")
    options = parser.parse_args(argv)
    _check(options.runs)
    from r1lite.report.live import serve

    serve(options.runs, options.port, Options(options.max_mb))
    return 0


def _check(runs: Sequence[Path]) -> None:
    for run in runs:
        if not run.is_dir():
            raise UserError(f"{run} is no folder; name a run's directory, as `r1lite grpo` printed it")
        if is_pipeline(run) and len(runs) > 1:
            raise UserError(f"{run} is a pipeline: report it by itself")
