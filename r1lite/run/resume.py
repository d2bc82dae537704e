"""Finds the checkpoint to resume from: the newest intact one whose records still exist."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from r1lite.config import OptimizerConfig
from r1lite.errors import UserError
from r1lite.run import checkpoint
from r1lite.run.run_dir import RunDir


def resume_point(
    config: OptimizerConfig, run_dir: RunDir, steps: int, say: Callable[[str], object]
) -> tuple[int, Path | None]:
    """Returns (finished steps, checkpoint), or (0, None) if no checkpoint was written yet. Changes nothing.

    Args:
        steps: number of steps of the whole run.
        say: called with a line for each damaged checkpoint, and for each loss that was accepted.

    Raises:
        UserError: records or all checkpoints are lost, or the run has already done more than `steps`.
    """
    found, damaged = checkpoint.latest(run_dir.checkpoints)
    for path in damaged:
        say(f"{path} is damaged and is skipped")
    if found is None:
        recorded = len(run_dir.metrics())
        if (damaged or recorded > config.save_every) and not config.accept_lost_records:
            raise UserError(
                f"--resume: {run_dir.path} has records of {recorded} steps, but no intact checkpoint; nothing was "
                "changed. Restore a checkpoint, or pass --accept-lost-records to start again from step 0"
            )
        say("no checkpoint was written yet: starting again from step 0")
        return 0, None
    step, path = found
    if step > steps:
        raise UserError(f"--resume: the run has already done {step} steps, more than the requested {steps}")
    kept = checkpoint.recorded(path)
    lost = run_dir.losses(kept, step)
    if lost and not config.accept_lost_records:
        raise UserError(
            f"--resume: records of {run_dir.path} from before step {step} are lost: {'; '.join(lost)}. Nothing was "
            f"changed. Restore them from a copy, remove {path} to repeat its steps from an earlier checkpoint, or "
            "pass --accept-lost-records to continue without them"
        )
    for line in lost:
        say(f"lost and accepted: {line}")
    before = {} if kept is None else kept["settings"]
    changed = [key for key, value in before.items() if key in run_dir.settings and run_dir.settings[key] != value]
    if changed:
        key = changed[0]
        raise UserError(
            f"--resume: {run_dir.path}/config.yaml was changed after the run began: {key} is "
            f"{run_dir.settings[key]}, but was {before[key]} when step {step} was saved; restore it, or start a new run"
        )
    return step, path
