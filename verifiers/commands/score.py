"""`python -m verifiers score`: scores files of completions, of any size, and resumes an interrupted run."""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from verifiers import rows
from verifiers.commands import results
from verifiers.commands.shared import Progress, Tally, add_reward, make_reward, read_options
from verifiers.commands.storage import is_several, lock
from verifiers.core import Completion, Problem
from verifiers.on_ray import Actors, RayScorer, address_of
from verifiers.reward import Reward, Score
from verifiers.scoring import BatchScorer

_UNREADABLE = Completion("")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument(
        "file",
        help="JSONL (also .gz) or Parquet, one completion per row; or a folder of such files, a pattern such as "
        "'part-*.jsonl', or a URL that fsspec opens (s3://, gs://, hf://, ...)",
    )
    add_reward(parser)
    parser.add_argument(
        "--out",
        help="results, a .jsonl or .parquet file; for several files a folder or URL; unfinished results are resumed",
    )
    parser.add_argument(
        "--on", metavar="PLACE", help="score on a Ray cluster (ray, ray:HOST:PORT, ray://HOST:PORT) of --workers actors"
    )
    for kind in rows.NAMES:
        parser.add_argument(f"--{kind}-column", default="", help=f"default: {', '.join(rows.NAMES[kind])}")


def run(options: argparse.Namespace) -> int:
    """Exit code 0: every row has a reward; 1: some could not be scored."""
    try:
        tally = _scored(options)
    except KeyboardInterrupt:
        if options.out is not None:
            print(f"interrupted; run the same command again to resume {options.out}", file=sys.stderr)
        raise
    if not tally.count:
        raise ValueError(f"{options.file}: no rows")
    print(tally)
    return 1 if tally.unscored else 0


def _scored(options: argparse.Namespace) -> Tally:
    reward = make_reward(options.reward, read_options(options.options))
    columns = rows.Columns(**{kind: getattr(options, f"{kind}_column") for kind in rows.NAMES})
    limits = {"timeout_s": options.timeout, "memory_mib": options.memory}
    if is_several(options.file):
        if options.out is None:
            raise ValueError(f"--out FOLDER is needed: {options.file} may be several files, each with its own results")
        from verifiers.commands.shards import score_shards  # here, because it imports `score_file` from this module

        here = {"workers": options.workers, "on": options.on}
        return score_shards(options.file, reward, columns, options.out, **here, **limits)
    tally = Tally()
    with make_scorer(reward, options.workers, **limits, on=options.on) as scorer:
        todo = (Path(options.file), scorer, columns)
        if options.out is None:
            for row in counted(score_file(*todo)):
                tally.add(row)
        else:
            _write(Path(options.out), todo, tally)
    return tally


Scorer = BatchScorer | RayScorer


def make_scorer(
    reward: Reward, workers: int | None, timeout_s: float, memory_mib: int | None, *, on: str | None = None
) -> Scorer:
    """Returns a scorer: processes here, or actors `on` a Ray cluster. Starts nothing. Raises ValueError."""
    if on is None:
        return BatchScorer(reward, workers=workers, timeout_s=timeout_s, memory_mib=memory_mib)
    if workers == 0:
        raise ValueError("--on: --workers counts the actors, so it must be 1 or more")
    return Actors(
        [reward],
        address=address_of(on),
        count=workers,
        timeout_s=timeout_s,
        memory_mib=memory_mib,
        say=lambda line: print(f"scoring on {line}", file=sys.stderr),
    ).scorer()


def _write(out: Path, todo: tuple[Path, Scorer, rows.Columns], tally: Tally) -> None:
    """Scores what is not yet in `out` and counts everything that is."""
    path, scorer, columns = todo
    reward = scorer.reward
    if out.exists() and not out.is_file():
        raise ValueError(f"--out {out} is no file that results can be added to")
    if out.suffix not in ("", ".jsonl", results.PARQUET):  # every command that reads it goes by its suffix
        raise ValueError(f"--out {out}: results are JSONL or Parquet; choose a name that ends in .jsonl or .parquet")
    is_parquet = out.suffix == results.PARQUET
    if is_parquet:
        results.need_pyarrow(out)
    log = results.log_of(out)
    finished = is_parquet and out.exists() and not log.exists()
    begun = finished or (log.exists() and log.stat().st_size > 0)
    _check_about(out, _fingerprint(path, reward, columns), begun)
    if finished:
        for row in results.read(out):
            tally.add(row)
        return
    with log.open("a", encoding="utf-8") as file:
        lock(file, out)  # keeps a second command from adding its rows between these
        done = _resume(log, tally)
        for row in counted(score_file(*todo, skip=done)):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            tally.add(row)
        file.flush()
        if is_parquet:
            results.make_parquet(out, list(reward.verifiers))


def counted(scored: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the same results, counting them on the terminal as they arrive."""
    progress = Progress("completions")
    try:
        for row in scored:
            progress.add()
            yield row
    finally:
        progress.finish()


def score_file(
    path: Path, scorer: Scorer, columns: rows.Columns, skip: int = 0, shown: str = ""
) -> Iterator[dict[str, Any]]:
    """Yields results in the order of the rows, in constant memory; the first `skip` rows are left out.

    A row that can't be read has reward None and an error.

    Args:
        shown: name of the file in messages; by default its path.
    """
    pending: collections.deque[tuple[int, str, str]] = collections.deque()  # line, id, why it can't be read

    reads_gold = scorer.reward.reads_gold

    def pairs() -> Iterator[tuple[Problem, Completion]]:
        for count, (number, row) in enumerate(rows.rows(path)):
            if count < skip:
                continue
            try:
                problem, completion = rows.pair(row, columns, default_id=str(number), reads_gold=reads_gold)
                pending.append((number, problem.id, ""))
            except rows.RowError as error:
                problem, completion = Problem(), _UNREADABLE
                pending.append((number, rows.id_of(row, columns), f"{shown or path}:{number}: {error}"))
            yield problem, completion

    for score in scorer.map(pairs()):
        number, name, unreadable = pending.popleft()
        yield result(number, name, Score(None, {}, unreadable) if unreadable else score)


def scores(
    reward: Reward,
    pairs: Iterator[tuple[Problem, Completion]],
    workers: int | None,
    timeout_s: float,
    memory_mib: int | None,
) -> Iterator[Score]:
    """Yields scores as they arrive; `BatchScorer` says in which process."""
    with BatchScorer(reward, workers=workers, timeout_s=timeout_s, memory_mib=memory_mib) as scorer:
        yield from scorer.map(pairs)


def result(number: int, name: str, score: Score) -> dict[str, Any]:
    """Returns one line of results."""
    verdicts = {
        key: {
            "score": v.score,
            "reason": v.reason,
            **({"detail": _clean(v.detail)} if v.detail else {}),
            **({"answer": _clean(v.answer)} if v.answer is not None else {}),
            **({"span": list(v.span)} if v.span is not None else {}),
            **({"flags": list(v.flags)} if v.flags else {}),
            "version": score.versions.get(key, ""),
        }
        for key, v in score.verdicts.items()
    }
    error = {"error": _clean(score.error)} if score.error else {}
    return {"row": number, "id": _clean(name), "reward": score.reward, "verdicts": verdicts, **error}


def _clean(text: str) -> str:
    """Escapes lone surrogates, which JSON can encode and files can't hold."""
    return text.encode("utf-8", "backslashreplace").decode()


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


def _check_about(out: Path, fingerprint: dict[str, Any], begun: bool) -> None:
    """Records what the results are of; existing results must be of the same. Raises ValueError."""
    about = results.about_of(out)
    fingerprint = json.loads(json.dumps(fingerprint, default=str))
    if not begun:
        out.parent.mkdir(parents=True, exist_ok=True)
        about.write_text(json.dumps(fingerprint, indent=2) + "\n", encoding="utf-8")
        return
    if not about.exists():
        raise ValueError(f"--out {out} exists, and holds no results of `score` (no {about.name}); choose another --out")
    before = json.loads(about.read_text(encoding="utf-8"))
    changed = [key for key in fingerprint if before.get(key) != fingerprint[key]]
    if changed:
        raise ValueError(
            f"--out {out} holds results of different {' and '.join(changed)}; remove it, or choose another --out"
        )


def _resume(log: Path, tally: Tally) -> int:
    """Counts the existing results, cuts off a half-written line, and returns their number."""
    count = end = 0
    with log.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            row = rows.parsed(line)
            if not results.is_result(row):
                raise ValueError(f"{log}:{count + 1}: not a line of results; remove the file to start again")
            tally.add(row)
            count, end = count + 1, end + len(line)
    os.truncate(log, end)
    return count
