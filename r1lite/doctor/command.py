"""`r1lite doctor [RUN_DIR]`: finds problems of a run, or, without RUN_DIR, of this machine."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from r1lite.doctor import diagnose, read
from r1lite.doctor.machine import examine
from r1lite.run.ending import resumption
from r1lite.run.files import is_locked


def main(argv: Sequence[str]) -> int:
    """Returns 0 if no problem was found, 1 otherwise. Raises UserError if RUN_DIR contains no run."""
    parser = argparse.ArgumentParser(
        prog="r1lite doctor",
        description="Why is my loss 0, my reward flat, my run unstable? With a run directory, prints findings with "
        "their evidence and suggested changes. Without one, checks this machine and this environment. The exit code is "
        "1 if there is a problem.",
    )
    parser.add_argument("run_dir", nargs="?", type=Path, help="a run's directory, finished or not")
    parser.add_argument("--json", action="store_true", help="print findings as JSON, one per line")
    options = parser.parse_args(argv)
    if options.run_dir is None:
        lines = examine(Path("runs"))
        for line in lines:
            shown = (
                json.dumps(dataclasses.asdict(line)) if options.json else f"{line.state:<5}{line.label:<13}{line.text}"
            )
            print(shown)
        return int(any(line.state == "bad" for line in lines))
    record = read(options.run_dir)
    findings = diagnose(record)
    for finding in findings:
        print(json.dumps(dataclasses.asdict(finding)) if options.json else f"{finding}\n")
    if not findings and not options.json:
        accuracy = record.last.mean("accuracy") if record.metrics else None
        so_far = f", accuracy {accuracy:.1%} in {record.last.steps}" if accuracy is not None else ""
        planned = record.config.get("steps")
        done = len(record.metrics)
        rest = f" of {planned}" if isinstance(planned, int) and done < planned else ""
        stopped = rest and not is_locked(options.run_dir)
        go_on = f"; the run has stopped: {resumption(options.run_dir)} continues it" if stopped else ""
        print(f"no problems found{f' in {done}{rest} steps' * bool(done)}{so_far}{go_on}")
    return int(bool(findings))
