"""`replay` of a curated set: recomputes the verdicts that its rows carry, and shows those that differ."""

from __future__ import annotations

import argparse
import collections
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from verifiers import rows
from verifiers.commands import results
from verifiers.commands.score import scores
from verifiers.commands.shared import Progress, import_from_here, read_options, table
from verifiers.core import Completion, Problem
from verifiers.formula import Formula
from verifiers.reward import Reward, Score
from verifiers.terminal import one_line
from verifiers.trust import beyond, beyond_in_options, require

_REPEATED = 1e-9  # scores this close are the same
_MOST_TOKENS = 1 << 24  # of a completion


def replay(options: argparse.Namespace) -> int:
    """Exit code 0: all verdicts are the same (verifier, score, reason and answer); 1: some differ."""
    used, path = _read(options.run_dir)
    import_from_here()
    if options.reward:
        raise ValueError("--reward is for runs; a set is verified by the verifiers it was made with")
    given = {name: about["options"] for name, about in used.items() if about["options"]}
    said = read_options(options.options)
    named = beyond(" + ".join(used), said or given)
    require(
        [name for name in named if name not in beyond_in_options(said)],
        options.run_dir / "manifest.json",
        trust=options.trust,
    )
    # A sum, so that every verifier is called; its value has no meaning.
    reward = Reward(" + ".join(used), options=said or given)
    for name, about in used.items():
        if reward.versions[name] != about["version"]:
            print(
                f"note: the set was made with version {about['version']} of '{name}', this is {reward.versions[name]}"
            )
    before: collections.deque[dict[str, Any]] = collections.deque()
    moved: collections.Counter[tuple[str, str, str]] = collections.Counter()
    shown: list[str] = []
    count = verdicts = differ = 0
    progress = Progress("rows")
    for score in scores(reward, _pairs(path, before), options.workers, options.timeout, options.memory):
        row = before.popleft()
        count += 1
        verdicts += len(row["verdicts"])
        progress.add()
        found = list(_differing(row["verdicts"], score))
        differ += bool(found)
        moved.update(found)
        if found and len(shown) < options.show:
            shown.append(one_line(f"  problem {row['problem_id']}, sample {row['sample']}: {found[0]}  {score.error}"))
    progress.finish()
    if not count:
        raise ValueError(f"{path}: no rows")
    print(f"{count:,} rows, {verdicts:,} verdicts: {count - differ:,} rows have the same verdicts, {differ:,} differ")
    if moved:
        print(table(("verifier", "then", "now", "rows"), [(*key, f"{n:,}") for key, n in moved.most_common(10)]))
        print("\n".join(shown))
    return 1 if differ else 0


def _read(folder: Path) -> tuple[dict[str, dict[str, Any]], Path]:
    """Returns (verifiers by name, with options and version; the file of rows) of a manifest. Raises ValueError."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        used = {str(name): {**about} for name, about in manifest["verifiers"].items()}
        whole = all(isinstance(about["options"], dict) and about["version"] is not None for about in used.values())
        path = folder / Path(str(manifest["data"]["file"])).name  # always in this folder, wherever the path points
        whole = whole and (not used or Formula(" + ".join(used)).names == list(used))  # each the name of one verifier
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{folder} is not a curated set: its manifest.json can't be read: {error!r}") from error
    if not used or not whole or not path.is_file():
        raise ValueError(f"{folder} is not a curated set: its manifest.json names no verifiers or no file of rows")
    return used, path


def _pairs(path: Path, before: collections.deque[dict[str, Any]]) -> Iterator[tuple[Problem, Completion]]:
    for number, row in rows.rows(path):
        try:
            if isinstance(row, rows.RowError):
                raise row
            tests, meta = (row[name] if row[name] is None else json.loads(row[name]) for name in ("tests", "meta"))
            problem = Problem(row["question"], row["gold"], tests, row["language"], row["problem_id"], meta or {})
            # The token ids are not kept, but their number is, for verifiers of length.
            if (count := row["num_tokens"] or 0) > _MOST_TOKENS:
                raise ValueError(f"it has {count:,} tokens; at most {_MOST_TOKENS:,}")
            ids = (0,) * count
            prefill = str(row.get("prefill") or "")
            completion = Completion(rows.completion_of(row), ids, (), row["finish_reason"], prefill=prefill)
            if not isinstance(row["question"], str) or not all(map(_is_verdict, row["verdicts"])):
                raise ValueError("its question is no text, or its verdicts are none")
            before.append({name: row[name] for name in ("problem_id", "sample", "verdicts")})
        except (TypeError, KeyError, ValueError, RecursionError) as error:
            raise ValueError(f"{path}:{number}: not a row of a curated set: {error}") from error
        yield problem, completion


def _is_verdict(then: Any) -> bool:
    return (
        isinstance(then, dict)
        and {"verifier", "score", "reason", "answer"} <= then.keys()
        and isinstance(then["verifier"], str)
        and results.is_reward(then["score"])
    )


def _differing(verdicts: list[Mapping[str, Any]], score: Score) -> Iterator[tuple[str, str, str]]:
    """Yields (verifier, then, now) of each verdict that differs."""
    for then in verdicts:
        now = score.verdicts.get(then["verifier"])
        if now is None:
            yield then["verifier"], f"{then['score']} {then['reason']}", "unscored"
            continue
        a, b = then["score"], now.score
        same = a is b or (a is not None and b is not None and abs(a - b) <= _REPEATED)
        if not same or (then["reason"], then["answer"]) != (now.reason, now.answer):
            yield then["verifier"], f"{a} {then['reason']}", f"{b} {now.reason}"
