"""`python -m verifiers score`: scores a file of completions, of any size, and goes on where it was stopped."""

from __future__ import annotations

import argparse
import collections
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from verifiers import rows
from verifiers.commands.shared import Progress, Tally, add_reward, make_reward, read_options
from verifiers.core import Completion, Problem
from verifiers.pool import Pool
from verifiers.reward import Reward, Score, score_one

_UNREADABLE = Completion("")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("file", type=Path, help="JSONL (also .gz) or Parquet, one completion a row")
    add_reward(parser)
    parser.add_argument("--out", type=Path, help="JSONL of results, a line a row; an unfinished one is continued")
    for kind in rows.NAMES:
        parser.add_argument(f"--{kind}-column", default="", help=f"default: {', '.join(rows.NAMES[kind])}")


def run(options: argparse.Namespace) -> int:
    """Exit code 0: every row has a reward; 1: some could not be scored."""
    reward = make_reward(options.reward, read_options(options.options))
    columns = rows.Columns(**{kind: getattr(options, f"{kind}_column") for kind in rows.NAMES})
    tally = Tally()
    if options.out is None:
        for row in score_file(options.file, reward, columns, 0, options.workers, options.timeout, options.memory):
            tally.add(row)
    else:
        done = _resume(options.out, _fingerprint(options.file, reward, columns), tally)
        with options.out.open("a", encoding="utf-8") as out:
            for row in score_file(
                options.file, reward, columns, done, options.workers, options.timeout, options.memory
            ):
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                tally.add(row)
    print(tally)
    return 1 if tally.unscored else 0


def score_file(
    path: Path,
    reward: Reward,
    columns: rows.Columns,
    skip: int,
    workers: int | None,
    timeout_s: float,
    memory_mib: int | None,
) -> Iterator[dict[str, Any]]:
    """Results in the order of the rows, in constant memory; the first `skip` rows are left out.

    A row that can't be read has reward None and says why.
    """
    pending: collections.deque[tuple[int, str, str]] = collections.deque()  # line, id, why it can't be read

    def pairs() -> Iterator[tuple[Problem, Completion]]:
        for count, (number, row) in enumerate(rows.rows(path)):
            if count < skip:
                continue
            try:
                problem, completion = rows.pair(row, columns, default_id=str(number))
                pending.append((number, problem.id, ""))
            except rows.RowError as error:
                problem, completion = Problem(), _UNREADABLE
                pending.append((number, "", f"{path}:{number}: {error}"))
            yield problem, completion

    progress = Progress("completions")
    try:
        for score in scores(reward, pairs(), workers, timeout_s, memory_mib):
            number, name, unreadable = pending.popleft()
            progress.add()
            yield result(number, name, Score(None, {}, unreadable) if unreadable else score)
    finally:
        progress.finish()


def scores(
    reward: Reward,
    pairs: Iterator[tuple[Problem, Completion]],
    workers: int | None,
    timeout_s: float,
    memory_mib: int | None,
) -> Iterator[Score]:
    """Scores as they come, out of a pool unless `workers` is 0."""
    if workers == 0:
        yield from (score_one(reward, problem, completion) for problem, completion in pairs)
        return
    with Pool(reward, workers=workers, timeout_s=timeout_s, memory_mib=memory_mib) as pool:
        yield from pool.map(pairs)


def result(number: int, name: str, score: Score) -> dict[str, Any]:
    """One line of results."""
    verdicts = {
        key: {
            "score": v.score,
            "reason": v.reason,
            **({"detail": v.detail} if v.detail else {}),
            **({"answer": v.answer} if v.answer is not None else {}),
            **({"flags": list(v.flags)} if v.flags else {}),
            "version": score.versions.get(key, ""),
        }
        for key, v in score.verdicts.items()
    }
    error = {"error": score.error} if score.error else {}
    return {"row": number, "id": name, "reward": score.reward, "verdicts": verdicts, **error}


def _fingerprint(path: Path, reward: Reward, columns: rows.Columns) -> dict[str, Any]:
    size = path.stat().st_size
    return {
        "input": path.name,
        "bytes": size,
        "reward": reward.formula,
        "options": reward.options,
        "versions": dict(reward.versions),
        "columns": {kind: getattr(columns, kind) for kind in rows.NAMES},
    }


def _resume(out: Path, fingerprint: dict[str, Any], tally: Tally) -> int:
    """Takes in the results that are there, cuts a half-written line off, and returns how many there are.

    Raises: ValueError if they are of another input, reward or version.
    """
    about = out.with_name(out.name + ".about.json")
    fingerprint = json.loads(json.dumps(fingerprint, default=str))
    if not out.exists() or not out.stat().st_size:
        out.parent.mkdir(parents=True, exist_ok=True)
        about.write_text(json.dumps(fingerprint, indent=2) + "\n", encoding="utf-8")
        out.touch()
        return 0
    before = json.loads(about.read_text(encoding="utf-8")) if about.exists() else {}
    changed = [key for key in fingerprint if before.get(key) != fingerprint[key]]
    if changed:
        raise ValueError(
            f"--out {out} holds results of another {' and '.join(changed)}; remove it, or choose another --out"
        )
    count = end = 0
    with out.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            tally.add(json.loads(line))
            count, end = count + 1, end + len(line)
    os.truncate(out, end)
    return count
