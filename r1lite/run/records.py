"""The records of a run, and sizes and digests of everything that it has recorded by the step of a checkpoint.

Sizes and digests are part of the checkpoint's manifest, so both appear in one rename. A resumed run compares them with
its files, to notice lines from before the checkpoint that were lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from r1lite.errors import UserError
from r1lite.run.environment import SCHEMA
from r1lite.run.files import digest, read_bytes, sync
from r1lite.types import Group, Rollout, TokenRecord
from verifiers import rows

# Files that grow line by line; lines from before the checkpoint never change.
_GROWING = ("metrics.jsonl", "evaluations.jsonl")
_WHOLE = ("eval_before.json", "reward.json")
ROLLOUTS = "rollouts"
Digests = dict[str, tuple[int, str]]  # (bytes, SHA-256) by the name of a file


def read_records(path: Path) -> list[dict[str, Any]]:
    """Returns the lines of a JSONL file; none if it does not exist. A truncated last line is dropped.

    Raises:
        UserError: the file can't be read, or is no regular file.
    """
    try:
        content = read_bytes(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from error
    found = []
    for line in content.split(b"\n")[:-1]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # damaged by a crash of the machine: later lines can't be trusted either
            break
        if not isinstance(record, dict) or not isinstance(record.get("step"), int):
            break
        found.append(record)
    return found


def take(folder: Path, rollouts: Digests, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Syncs the records to disk and returns their sizes and digests.

    Args:
        rollouts: digests of the rollouts so far; empty if the run does not keep all of them.
        settings: settings that can't change.
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
    """Returns a line for each file whose recorded content was lost or changed.

    Args:
        rollouts: check the rollouts too; all of them must exist.
    """
    found = []
    for name, (size, expected) in kept["files"].items():
        if name in _GROWING:  # the others can be written again, see `changed`
            found += _loss(folder / name, name, size, expected, grows=True)
    for name, (size, expected) in kept[ROLLOUTS].items() if rollouts else ():
        if Path(name).name != name:
            raise UserError(f"{folder}: the manifest of its checkpoint names '{name}', which is no file of {ROLLOUTS}/")
        found += _loss(folder / ROLLOUTS / name, f"{ROLLOUTS}/{name}", size, expected, grows=False)
    return found


def changed(folder: Path, kept: Mapping[str, Any] | None, name: str) -> bool:
    """Returns True if a file that can be written again is not the one in the records of a manifest.

    Args:
        kept: the records; None if an old version wrote the manifest without them.
    """
    expected = None if kept is None else kept["files"].get(name)
    return expected is not None and digest(folder / name) != tuple(expected)


def losses_by_steps(folder: Path, step: int, recorded: list[int], *, rollouts: bool = True) -> list[str]:
    """Like `losses`, for a run directory without digests: reports steps up to `step` without a line or rollouts file.

    Args:
        recorded: steps in metrics.jsonl.
        rollouts: check the rollouts too; all of them must exist.
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
        return [f"{name} is missing"]
    there = path.stat().st_size
    if there < size:
        return [f"{name} has lost {size - there:,} of {size:,} bytes"]
    if (there > size and not grows) or digest(path, size)[1] != expected:
        return [f"{name} was changed or damaged after it was written"]
    return []


def rollout_rows(step: int, groups: Iterable[Group]) -> Iterator[dict[str, Any]]:
    """Yields a row for every completion of a step, group by group."""
    for group in groups:
        for sample, rollout in enumerate(group.rollouts):
            yield _row(step, group, sample, rollout)


def _row(step: int, group: Group, sample: int, rollout: Rollout) -> dict[str, Any]:
    completion, score = rollout.completion, rollout.score
    return {
        "step": step,
        "problem_id": group.problem.id,
        "sample": sample,
        "question": group.problem.prompt,
        "gold": group.problem.answer,
        "language": group.problem.language,
        "tests": None if group.problem.tests is None else dict(group.problem.tests),
        "meta": dict(group.problem.meta),
        "prompt": group.prompt,
        **({"prefill": completion.prefill} if completion.prefill else {}),
        "completion": completion.text,
        "reward": score.reward,
        "advantage": rollout.advantage,
        "correct": rollout.correct,
        "well_formed": rollout.well_formed,
        "verdicts": [
            {"verifier": name, **verdict.as_json(), "version": score.versions.get(name, "")}
            for name, verdict in score.verdicts.items()
        ],
        "error": score.error,
        "finish_reason": completion.finish_reason,
        "policy_version": completion.policy_version,
        **({"stretches": completion.stretches} if completion.stretches else {}),
        **({"ticket": group.ticket} if group.ticket is not None else {}),
        "prompt_ids": group.prompt_ids,
        "token_ids": completion.token_ids,
        "logprobs": completion.logprobs,
        "inserted": list(completion.inserted) if completion.inserted != (0, 0) else None,
        **_of_tokens(rollout.tokens),
    }


def _of_tokens(record: TokenRecord | None) -> dict[str, list[float]]:
    """Rounds to four digits: the values are only displayed."""
    if record is None:
        return {}
    columns = {
        "trainer_logprobs": record.logprobs,
        "token_entropy": record.entropy,
        "token_advantages": record.advantages,
    }
    return {name: [float(f"{value:.4g}") for value in values] for name, values in columns.items()}
