"""`r1lite log RUN --to NAME`: sends a run to a tracker afterwards."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from r1lite.errors import RunError, UserError
from r1lite.run.run_dir import read_records
from r1lite.trackers import TRACKERS, check
from r1lite.trackers.sender import Sender


def main(argv: Sequence[str]) -> int:
    """Returns 0. Raises UserError if RUN holds no run or the tracker is unavailable, RunError if it takes nothing."""
    parser = argparse.ArgumentParser(
        prog="r1lite log",
        description="Sends a run's configuration, metrics, completions, summary and findings to trackers: a run of a "
        "machine without a network, or one that was not sent while it went on. What was sent before is not sent again.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's directory, finished or not")
    parser.add_argument(
        "--to", nargs="+", required=True, metavar="NAME", help=f"{', '.join(TRACKERS)}, or one of yours"
    )
    parser.add_argument("--project", default="r1lite", help="its project or experiment (r1lite)")
    options = parser.parse_args(argv)
    if not (options.run / "config.yaml").exists():
        raise UserError(f"{options.run} holds no run (no config.yaml)")
    check(options.to)
    lines = read_records(options.run / "metrics.jsonl")
    steps = lines[-1]["step"] if lines else 0
    for name in options.to:
        try:
            Sender(name, options.run, options.project, steps, print).send()
        except UserError:
            raise
        except Exception as error:  # of a library that is not ours
            raise RunError(f"{name}: {type(error).__name__}: {error}; what was sent stands") from error
        print(f"sent      {options.run} to {name}: {steps} steps")
    return 0
