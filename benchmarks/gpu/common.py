"""Shared code of the scripts in this folder: they require a GPU, and print a JSON line per measurement."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the common flags."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--dry-run", action="store_true", help="test the script with a tiny case on the CPU")
    made.add_argument("--out", type=Path, help="append the JSON lines to this file")
    return made


def need_gpus(arguments: argparse.Namespace, count: int = 1) -> None:
    """Exits if there are fewer GPUs and this is not a dry run."""
    import torch

    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not arguments.dry_run and found < count:
        sys.exit(f"error: {count} CUDA device{'s' * (count > 1)} needed, {found} found; --dry-run tests the script")


def machine() -> str:
    """The machine's name, for each line."""
    import torch

    if not torch.cuda.is_available():
        return "cpu (dry run)"
    return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}, torch {torch.__version__}"


def tell(arguments: argparse.Namespace, **line: Any) -> None:
    """Prints and saves a measurement."""
    text = json.dumps({"machine": machine(), **line})
    print(text, flush=True)
    if arguments.out is not None:
        with open(arguments.out, "a", encoding="utf-8") as file:
            file.write(text + "\n")


def run(*command: str) -> None:
    """Runs a process in the repository's root, with its output on standard error. Raises CalledProcessError."""
    paths = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH", "")) if part)
    subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr, env={**os.environ, "PYTHONPATH": paths})


def of_run(folder: Path) -> dict[str, Any]:
    """The figures of a run of r1lite: seconds, tokens, memory, accuracy."""
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    steps = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    seconds = sum(step["step_s"] for step in steps)
    return {
        "wall_s": round(seconds, 2),
        "tokens_per_s": round(sum(step["tokens"] for step in steps) / seconds, 1),
        "peak_mib": summary["memory"]["peak"],
        "accuracy_before": summary["eval_before"]["pass_at_1"],
        "accuracy": summary["eval_after"]["pass_at_1"],
    }
