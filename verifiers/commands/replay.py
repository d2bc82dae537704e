"""`python -m verifiers replay DIR`: scores a training run's rollouts again and checks that the rewards are the same, or
verifies the rows of a curated set again and checks that the verdicts are the same."""

from __future__ import annotations

import argparse
import collections
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from verifiers import rows
from verifiers.commands import curated
from verifiers.commands.compare import agree
from verifiers.commands.results import is_reward
from verifiers.commands.score import scores
from verifiers.commands.shared import (
    Progress,
    Tally,
    add_options,
    add_trust,
    count_or_zero,
    make_reward,
    read_options,
    table,
)
from verifiers.core import Completion, GoldError, Problem, Verdict
from verifiers.golds import gold_text
from verifiers.reward import Score
from verifiers.terminal import one_line
from verifiers.trust import beyond, beyond_in_options, require


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument(
        "run_dir", type=Path, metavar="DIR", help="a run (with reward.json and rollouts/), or a curated set"
    )
    parser.add_argument("--reward", help="a formula other than the run's: shows what it would have paid")
    add_options(parser)
    add_trust(parser)
    parser.add_argument("--step", type=int, metavar="N", help="only this step of a run")
    parser.add_argument("--row", type=int, metavar="N", help="only this row of the step's file, counted from 1")
    parser.add_argument("--show", type=count_or_zero, default=10, metavar="N", help="number of differences shown (10)")


def run(options: argparse.Namespace) -> int:
    """Exit code 0: every reward (for a set: every verdict) is the same, bit by bit; 1: some differ."""
    if (options.run_dir / "manifest.json").exists():
        return curated.replay(options)
    found = rows.step_files(options.run_dir)
    about_path = options.run_dir / "reward.json"
    if not found or not (about_path.exists() or options.reward):
        lacking = "rollouts/" if about_path.exists() else "reward.json"
        raise ValueError(f"{options.run_dir} is not a run of r1lite grpo: it lacks {lacking}")
    files = _chosen(found, options.step, options.row)
    about = _read(about_path) if about_path.exists() else {}
    own = options.reward is None or options.reward == about.get("formula")
    given = read_options(options.options)
    verifier_options = given or (about.get("options", {}) if own else {})
    if own and not (options.reward and given):
        named = beyond(about["formula"], verifier_options)
        said = beyond(options.reward, given) if options.reward else beyond_in_options(given)
        require([name for name in named if name not in said], about_path, trust=options.trust)
    reward = make_reward(about["formula"] if own else options.reward, verifier_options)
    changed = {name: v for name, v in about.get("versions", {}).items() if reward.versions.get(name, v) != v}
    for name, version in changed.items():
        print(f"note: the run used version {version} of '{name}', this is {reward.versions[name]}")
    tally, moved = Tally(), collections.Counter[tuple[str, str]]()
    before: collections.deque[dict[str, Any]] = collections.deque()
    shown: list[str] = []
    count = 0
    progress = Progress("rollouts")
    for score in scores(reward, _pairs(files, before, options.row), options.workers, options.timeout, options.memory):
        row = before.popleft()
        count += 1
        progress.add()
        tally.add(
            {
                "reward": score.reward,
                "error": score.error,
                "verdicts": {n: {"score": v.score, "reason": v.reason} for n, v in score.verdicts.items()},
            }
        )
        if options.row is not None:
            print(f"reward  {row['reward']} then, {score.reward} now  {one_line(score.error)}")
            print("\n".join(f"        {one_line(line)}" for line in _told(score)))
        if not agree(row["reward"], score.reward, 0.0):
            moved[str(row["reward"]), str(score.reward)] += 1
            if len(shown) < options.show:
                where = f"step {row['step']}, problem {row['problem_id']}, sample {row['sample']}"
                now = f"{score.reward} now ({score.error or '; '.join(_told(score))})"
                shown.append(one_line(f"  {where}: {row['reward']} then, {now}"))
    progress.finish()
    if options.row is not None and not count:
        raise ValueError(f"--row {options.row}: {files[0]} has no such row")
    if not count:
        raise ValueError(f"{options.run_dir}: no rollouts")
    print(tally)
    differ = sum(moved.values())
    print(f"\n{count:,} rollouts of {len(files)} steps: {count - differ:,} have the same reward, {differ:,} differ")
    if differ:
        print(table(("then", "now", "rollouts"), [(*key, f"{n:,}") for key, n in moved.most_common(10)]))
        print("\n".join(shown))
    return 1 if differ else 0


def _chosen(files: list[tuple[int, Path]], step: int | None, row: int | None) -> list[Path]:
    """Returns the files of a step, or all of them. Raises ValueError."""
    if row is not None and step is None:
        raise ValueError("--row counts within the file of a step: give --step too")
    found = [path for number, path in files if step is None or number == step]
    if not found:
        raise ValueError(f"--step {step}: {files[0][1].parent} has no file of this step")
    return found


def _told(score: Score) -> list[str]:
    """Describes each verdict: score, reason, and the answer that was judged."""
    return [_judged(name, verdict) for name, verdict in score.verdicts.items()]


def _judged(name: str, verdict: Verdict) -> str:
    place = "" if verdict.span is None else f" at {verdict.span[0]}-{verdict.span[1]}"
    answer = "" if verdict.answer is None else f" {verdict.answer[:60]!r}{place}"
    detail = f" ({verdict.detail[:200]})" if verdict.detail else ""
    score = "abstains" if verdict.score is None else f"{verdict.score:g}"
    return f"{name} {score} {verdict.reason}{answer}{detail}"


def _read(path: Path) -> dict[str, Any]:
    """Returns a run's reward.json. Raises ValueError if no run wrote it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        whole = isinstance(found["formula"], str) and all(
            isinstance(found.get(key, {}), dict) for key in ("options", "versions")
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"{path} was not written by a run: {type(error).__name__}: {error}") from error
    if not whole or not all(isinstance(given, dict) for given in found.get("options", {}).values()):
        raise ValueError(f"{path} was not written by a run: formula must be a text, options and versions maps")
    checked: dict[str, Any] = found
    return checked


def _pairs(
    files: list[Path], before: collections.deque[dict[str, Any]], only: int | None = None
) -> Iterator[tuple[Problem, Completion]]:
    for path in files:
        for number, row in rows.rows(path):
            if only is not None and number != only:
                continue
            if not isinstance(row, dict) or "completion" not in row:
                raise ValueError(
                    f"{path}:{number}: not a rollout{f': {row}' if isinstance(row, rows.RowError) else ''}"
                )
            try:
                known = {key: row[key] for key in ("step", "problem_id", "sample", "reward")}
                found = _pair(row)
                if not is_reward(row["reward"]):
                    raise TypeError(f"its reward is {row['reward']!r:.60}")
            except (KeyError, TypeError, ValueError, GoldError) as error:
                raise ValueError(f"{path}:{number}: not a rollout: {type(error).__name__}: {error}") from error
            before.append(known)
            yield found


def _pair(row: Mapping[str, Any]) -> tuple[Problem, Completion]:
    for name in ("question", "completion"):
        if not isinstance(row[name], str):
            raise TypeError(f"its {name} is {type(row[name]).__name__}, not text")
    problem = Problem(
        row["question"],
        gold_text(row["gold"]),
        row.get("tests"),
        row.get("language"),
        row["problem_id"],
        dict(row.get("meta") or {}),
    )
    ids, logprobs = tuple(row["token_ids"]), tuple(row["logprobs"])
    prefill = str(row.get("prefill") or "")
    return problem, Completion(row["completion"], ids, logprobs, row["finish_reason"], row["policy_version"], prefill)
