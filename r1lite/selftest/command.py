"""`r1lite selftest`: runs the groups of checks, prints a line per result, and saves the results as JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from r1lite import __version__
from r1lite.errors import UserError
from r1lite.run.files import write_text
from r1lite.selftest import Options, Result
from r1lite.selftest.groups import DTYPES, ENGINES, Group, groups
from r1lite.training.early import refuse_missing

_LAST_LINES = 3


def main(argv: Sequence[str]) -> int:
    """Returns 0 if nothing failed, 1 otherwise. Raises UserError."""
    options = _parser().parse_args(argv)
    if not 0 < options.timeout_s < threading.TIMEOUT_MAX:
        raise UserError(f"--timeout-s must be a number of seconds above 0, got {options.timeout_s:g}")
    if options.out is not None and (options.out.is_dir() or not options.out.parent.is_dir()):  # else lost at the end
        raise UserError(f"--out {options.out}: not a file in a folder that exists")
    refuse_missing(f"--model {options.model}", options.model)
    chosen = groups(options.engines, options.dtypes)
    if options.only:
        names = [group.name for group in chosen]
        if unknown := [name for name in options.only if name not in names]:
            raise UserError(f"--only {unknown[0]!r}: no such group of checks; known: {', '.join(names)}")
        chosen = [group for group in chosen if group.name in options.only]
    asked = Options(
        options.model, options.device, options.attn_implementation, options.template, options.threads, options.untested
    )
    began, results = time.perf_counter(), []
    for group in chosen:
        for result in _run(group, asked, options.timeout_s):
            results.append(result)
            print(f"{result.state:<8} {result.name:<36} {result.text}", flush=True)
    seconds = time.perf_counter() - began
    counts = {state: sum(result.state == state for result in results) for state in ("ok", "note", "failed", "skipped")}
    print(f"{', '.join(f'{count} {state}' for state, count in counts.items() if count)}; {seconds:.0f} s")
    if options.out is not None:
        kept = {
            "r1lite": __version__,
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}",
            "options": dataclasses.asdict(asked),
            "seconds": round(seconds, 1),
            "results": [dataclasses.asdict(result) for result in results],
        }
        write_text(options.out, json.dumps(kept, indent=1, default=str) + "\n")
    return int(counts["failed"] > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="r1lite selftest",
        description="Tests everything a run needs, with this model on this machine: verdicts and sandbox, templates, "
        "every installed engine in every precision (log-probabilities agree with the trainer's, new weights arrive, a "
        "lost layer is noticed), training steps, memory compared with its estimate, and whether a resumed run ends "
        "with the same bytes. Exit code 1 if a check failed.",
    )
    parser.add_argument("--model", default="nano", help="Hub id or folder of a causal language model, or nano (nano)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")
    parser.add_argument("--attn-implementation", default="auto", help="attention kernel, as for r1lite grpo (auto)")
    parser.add_argument("--template", help="prompt template, as for r1lite grpo")
    parser.add_argument(
        "--threads", type=int, help="CPU threads (OMP_NUM_THREADS, or one per available core, at most 8)"
    )
    parser.add_argument(
        "--engines",
        nargs="+",
        choices=ENGINES,
        default=list(ENGINES),
        help="engines to test (all; skipped without vLLM)",
    )
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES), help="precisions to test (both)")
    parser.add_argument("--only", nargs="+", metavar="GROUP", help='groups to run, such as verdicts or "vllm float32"')
    parser.add_argument("--untested", action="store_true", help="allow an untested vLLM version")
    parser.add_argument(
        "--timeout-s", type=float, default=600.0, help="time limit of a group of checks, in seconds (600)"
    )
    parser.add_argument("--out", type=Path, help="write the results to this file, as JSON")
    return parser


def _run(group: Group, options: Options, timeout_s: float) -> Iterator[Result]:
    """Yields the results of a group as they arrive, and a failure if its process dies or is too slow."""
    with (
        tempfile.TemporaryFile("w+", errors="backslashreplace") as said,
        subprocess.Popen(
            [sys.executable, "-m", "r1lite.selftest.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
            env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
        ) as process,
    ):
        late = threading.Event()

        def give_up() -> None:
            late.set()
            _end(process)

        timer = threading.Timer(timeout_s, give_up)
        timer.daemon = True
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            json.dump({"group": dataclasses.asdict(group), "options": dataclasses.asdict(options)}, process.stdin)
            process.stdin.close()
            for line in process.stdout:
                yield Result(**json.loads(line))
            code = process.wait()
        finally:
            timer.cancel()
            _end(process)
        if late.is_set():
            yield Result(group.name, "failed", f"not finished after {timeout_s:g} s{_tail(said)}")
        elif code != 0:
            how = f"signal {-code}" if code < 0 else f"code {code}"
            yield Result(group.name, "failed", f"its process ended with {how}{_tail(said)}")


def _end(process: subprocess.Popen[Any]) -> None:
    """Ends a child process and all processes that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _tail(said: IO[str]) -> str:
    """Returns the last lines of a child's output."""
    said.seek(0)
    lines = [line.strip() for line in said.read().splitlines() if line.strip()]
    return ": " + " | ".join(lines[-_LAST_LINES:]) if lines else ""
