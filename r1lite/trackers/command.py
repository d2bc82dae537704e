"""`r1lite log RUN --to NAME`: sends a finished or running run to a tracker."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from r1lite.errors import RunError, UserError
from r1lite.run.files import check_links
from r1lite.run.records import read_records
from r1lite.trackers import TRACKERS, check
from r1lite.trackers.sender import Sender


def main(argv: Sequence[str]) -> int:
    """Returns 0. Raises UserError if RUN holds no run or the tracker is unavailable, RunError if sending fails."""
    parser = argparse.ArgumentParser(
        prog="r1lite log",
        description="Sends a run's configuration, metrics, completions, summary and findings to trackers, for example "
        "after a run on a machine without network. Records that were sent before are not sent again.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's directory, finished or not")
    parser.add_argument(
        "--to", nargs="+", required=True, metavar="NAME", help=f"{', '.join(TRACKERS)}, or your own tracker"
    )
    parser.add_argument("--project", default="r1lite", help="project or experiment in the tracker (r1lite)")
    options = parser.parse_args(argv)
    if not (options.run / "config.yaml").exists():
        raise UserError(f"{options.run} holds no run (no config.yaml)")
    check(options.to, "--to")
    check_links(options.run)
    lines = read_records(options.run / "metrics.jsonl")
    steps = lines[-1]["step"] if lines else 0
    for name in options.to:
        try:
            Sender(name, options.run, options.project, steps, print).send()
        except UserError:
            raise
        except Exception as error:  # any error of the tracker's library
            raise RunError(f"{name}: {type(error).__name__}: {error}; records sent so far remain") from error
        print(f"sent      {options.run} to {name}: {steps} steps")
    return 0
