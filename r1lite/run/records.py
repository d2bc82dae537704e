"""What a run has recorded by the step of a checkpoint, as sizes and digests that the checkpoint keeps.

They are part of the checkpoint's manifest, so both appear in one rename. A resumed run compares: lines lost before the
checkpoint would otherwise be a gap that nobody sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r1lite.run.environment import SCHEMA
from r1lite.run.files import digest, sync
from verifiers import rows

# Grow line by line; what stands before the checkpoint never changes.
_GROWING = ("metrics.jsonl", "evaluations.jsonl")
_WHOLE = ("eval_before.json", "reward.json")
ROLLOUTS = "rollouts"
Digests = dict[str, tuple[int, str]]  # (bytes, SHA-256) by the name of a file


def take(folder: Path, rollouts: Digests, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded now, once the disk holds it.

    Args:
        rollouts: of the rollouts so far; none of a run that does not keep them all.
        settings: those that can't change.
    """
    growing = [name for name in _GROWING if (folder / name).exists()]
    for name in growing:
        sync(folder / name)
    sync(folder)
    whole = [name for name in _WHOLE if (folder / name).exists()]
    return {
        "schema": SCHEMA,
        "settings": dict(settings),
        "files": {name: digest(folder / name) for name in (*growing, *whole)},
        ROLLOUTS: dict(sorted(rollouts.items())),
    }


def losses(folder: Path, kept: Mapping[str, Any], *, rollouts: bool = True) -> list[str]:
    """What is no longer as it was recorded: a line for each file.

    Args:
        rollouts: all of them should be there.
    """
    found = []
    for name, (size, expected) in kept["files"].items():
        if name not in _WHOLE:  # those can be made again
            found += _loss(folder / name, name, size, expected, grows=True)
    for name, (size, expected) in kept[ROLLOUTS].items() if rollouts else ():
        found += _loss(folder / ROLLOUTS / name, f"{ROLLOUTS}/{name}", size, expected, grows=False)
    return found


def losses_by_steps(folder: Path, step: int, recorded: list[int], *, rollouts: bool = True) -> list[str]:
    """The same of a run directory without digests: steps up to `step` that have no line, or no rollouts file.

    Args:
        recorded: the steps of metrics.jsonl.
        rollouts: all of them should be there.
    """
    wanted = range(1, step + 1)
    found = []
    if lost := sorted(set(wanted) - set(recorded)):
        found.append(f"metrics.jsonl lacks {len(lost)} of the {step} lines before the checkpoint (step {lost[0]})")
    there = dict(rows.step_files(folder)) if rollouts else {}
    if there and (gone := [number for number in wanted if number not in there]):
        found.append(f"{ROLLOUTS}/ lacks the files of {len(gone)} steps before the checkpoint (step {gone[0]})")
    return found


def _loss(path: Path, name: str, size: int, expected: str, *, grows: bool) -> list[str]:
    if not path.exists():
        return [f"{name} is gone"]
    there = path.stat().st_size
    if there < size:
        return [f"{name} has lost {size - there:,} of {size:,} bytes"]
    if (there > size and not grows) or digest(path, size)[1] != expected:
        return [f"{name} was changed or damaged after it was written"]
    return []
