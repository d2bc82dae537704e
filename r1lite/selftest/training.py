"""Checks a few steps of a real run in one precision: speed, memory estimate, and exact resuming."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r1lite.config import GRPOConfig, load
from r1lite.grpo.assembly import make_learner, train
from r1lite.selftest import Options, Result
from r1lite.selftest.subject import flags

_STEPS, _SPLIT = 4, 2
_MIB = 1 << 20


def check(options: Options, dtype: str) -> Iterator[Result]:
    """Runs four steps at once, then the same four with a stop and `--resume` in the middle."""
    name = f"training {dtype}"
    with tempfile.TemporaryDirectory(prefix="r1lite-selftest-") as folder:
        whole, parts = Path(folder, "whole"), Path(folder, "parts")
        summary = _run(options, dtype, whole, steps=_STEPS)
        yield from _figures(name, summary)
        _run(options, dtype, parts, steps=_SPLIT)
        train(load(GRPOConfig, ["--resume", "--out", str(parts), "--steps", str(_STEPS), *_QUIET]), make_learner)
        if _digest(whole) == _digest(parts):
            yield Result(f"{name}: resume", "ok", f"stopped after step {_SPLIT} of {_STEPS}: identical weights")
            return
        once_more = Path(folder, "again")
        _run(options, dtype, once_more, steps=_STEPS)
        if _digest(whole) == _digest(once_more):
            yield Result(f"{name}: resume", "failed", "a stopped and resumed run ends with different weights")
        else:
            yield Result(
                f"{name}: resume",
                "note",
                "two equal runs end with different weights on this device, even without resuming",
            )


_QUIET = ("--quiet", "--quiet", "--no-report")


def _run(options: Options, dtype: str, out: Path, *, steps: int) -> dict[str, Any]:
    more = [
        *("--engine", "transformers", "--dtype", dtype, "--steps", str(steps), "--save-every", str(steps)),
        *("--prompts-per-step", "2", "--group-size", "4", "--lr-schedule", "constant", "--warmup-steps", "0"),
        *("--eval-problems", "2", "--eval-sample-problems", "1", "--eval-samples", "2", "--out", str(out), *_QUIET),
    ]
    return train(load(GRPOConfig, flags(options, *more)), make_learner)


def _figures(name: str, summary: dict[str, Any]) -> Iterator[Result]:
    rate = summary["tokens_generated"] / summary["train_s"]
    yield Result(
        f"{name}: steps",
        "ok",
        f"{rate:,.0f} tokens/s sampled, scored and learnt from, over {_STEPS} small steps and a checkpoint",
        {"tokens_per_s": rate, "train_s": summary["train_s"], "reproducible": summary["reproducible"]},
    )
    used, expected = summary["memory"]["peak"], summary["memory"]["estimated_peak"]
    yield Result(
        f"{name}: memory",
        "ok" if used <= expected else "failed",
        f"peak {used:,.0f} MiB, estimated at most {expected:,.0f} MiB",
        {"peak_bytes": round(used * _MIB), "estimated_bytes": round(expected * _MIB)},
    )


def _digest(run: Path) -> str:
    (checkpoint,) = run.glob(f"checkpoints/step-*{_STEPS}")
    files = sorted(checkpoint.glob("*.safetensors"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
