"""`python -m verifiers score` of many files: each is scored by itself, so many can be scored at once, here or on Ray.

OUT/NAME                 results of the shard NAME, in its format (a .gz unpacked)
OUT/NAME.summary.json    their counts; written last: a shard that has one is done
OUT/about.json           inputs, reward and versions of the results
OUT/manifest.json        all counts: a folder that has one is finished
"""

from __future__ import annotations

import collections
import contextlib
import functools
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers import rows
from verifiers.commands import results, storage
from verifiers.commands.score import score_file
from verifiers.commands.shared import Progress, Tally
from verifiers.on_ray import CallError, Fleet, Jobs, Resources, address_of
from verifiers.reward import Reward
from verifiers.scoring import BatchScorer

SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")
_ABOUT, _SUMMARY, _MANIFEST = "about.json", ".summary.json", "manifest.json"


@dataclass(frozen=True, slots=True)
class Task:
    """Settings for scoring shards. They are sent to the nodes."""

    formula: str
    options: Mapping[str, Mapping[str, Any]]
    columns: rows.Columns
    out: str  # folder
    about: Mapping[str, Any]  # the content of OUT/about.json
    workers: int | None
    timeout_s: float
    memory_mib: int | None


class ShardScorer:
    """Scores shards: one instance in this process, or one in each actor."""

    def __init__(self, task: Task) -> None:
        if storage.read_json(storage.joined(task.out, _ABOUT)) != task.about:
            raise ValueError(f"--out {task.out} is not visible here: it must be where all nodes see it")
        self._task, reward = task, Reward(task.formula, options=task.options)
        if dict(reward.versions) != task.about["versions"]:
            raise ValueError(
                f"other versions of the verifiers, {reward.versions}: install the same r1lite on all nodes"
            )
        self._scorer = BatchScorer(reward, workers=task.workers, timeout_s=task.timeout_s, memory_mib=task.memory_mib)
        levels = {name: getattr(verify, "level", None) for name, verify in reward.verifiers.items()}
        self.told = [f"{name} at level {level}" for name, level in levels.items() if level is not None]

    def __call__(self, shard: storage.StoredFile) -> dict[str, Any]:
        """Writes the results of a shard, and then their summary. Returns: the summary."""
        name, tally = out_name(shard.name), Tally()
        with storage.fetched(shard.url) as path, storage.put(storage.joined(self._task.out, name)) as out:
            log = results.log_of(out)
            with log.open("w", encoding="utf-8") as file:
                for row in score_file(path, self._scorer, self._task.columns, shown=shard.name):
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
                    tally.add(row)
            if out.suffix == results.PARQUET:
                results.make_parquet(out, list(self._scorer.reward.verifiers))
        summary = {"shard": shard.name, "bytes": shard.size, "results": name, **tally.as_json()}
        storage.put_json(storage.joined(self._task.out, name + _SUMMARY), summary)
        return summary

    def close(self) -> None:
        """Ends the worker processes."""
        self._scorer.close()


def out_name(name: str) -> str:
    """Returns the name of the file for a shard's results."""
    return name.removesuffix(".gz")


def score_shards(
    url: str,
    reward: Reward,
    columns: rows.Columns,
    out: str,
    *,
    workers: int | None,
    timeout_s: float,
    memory_mib: int | None,
    on: str | None,
) -> Tally:
    """Scores every shard that has no results yet.

    Args:
        url: a folder, a pattern, or an address that fsspec opens.
        on: a Ray cluster, with `workers` actors; None: this machine, with `workers` processes.

    Returns: the counts of all shards.

    Raises: ValueError: there are no shards; the folder holds other results; a shard can't be read.
    """
    shards = storage.list_files(url, SUFFIXES)
    _refuse(url, out, shards)
    about = json.loads(json.dumps(_about(reward, columns, shards), default=str))
    with storage.alone_in(out):
        _check_about(out, about)
        task = Task(
            reward.formula, reward.options, columns, out, about, workers if on is None else 1, timeout_s, memory_mib
        )
        summaries = {shard.name: storage.read_json(_summary_of(out, shard)) for shard in shards}
        waiting = [shard for shard in shards if summaries[shard.name] is None]
        progress = Progress("shards")
        try:
            for shard, summary in _here(task, waiting) if on is None else _on_nodes(task, waiting, on, workers):
                summaries[shard.name] = summary
                progress.add()
        finally:
            progress.finish()
        storage.clear_parts(out)  # left by actors that were lost
        storage.put_json(
            storage.joined(out, _MANIFEST), {**about, "shards": [summaries[shard.name] for shard in shards]}
        )
    tally = Tally()
    for summary in summaries.values():
        tally.add_json(summary)
    return tally


def _here(task: Task, shards: list[storage.StoredFile]) -> Iterator[tuple[storage.StoredFile, dict[str, Any]]]:
    if shards:
        with contextlib.closing(ShardScorer(task)) as scorer:
            for shard in shards:
                yield shard, scorer(shard)


def _on_nodes(
    task: Task, shards: list[storage.StoredFile], on: str, count: int | None
) -> Iterator[tuple[storage.StoredFile, dict[str, Any]]]:
    if not shards:
        return
    if count == 0:
        raise ValueError("--on: --workers counts the actors, so it must be 1 or more")
    make = functools.partial(ShardScorer, task)
    fleet = Fleet(make, address=address_of(on), resources=Resources(count), most=len(shards))
    with contextlib.closing(fleet):
        fleet.start()
        print(f"scoring on {fleet.describe(lambda told: told)}", file=sys.stderr)
        work = Jobs(iter(shards))
        with contextlib.closing(fleet.rounds(work)) as rounds:
            try:
                for _ in rounds:
                    for number, summary in work.taken():
                        yield shards[number], summary
            except CallError as error:
                if isinstance(error.cause, ValueError | OSError):
                    raise error.cause from None
                raise


def _summary_of(out: str, shard: storage.StoredFile) -> str:
    return storage.joined(out, out_name(shard.name) + _SUMMARY)


def _refuse(url: str, out: str, shards: list[storage.StoredFile]) -> None:
    """Raises ValueError."""
    if not storage.is_remote(out) and storage.as_path(out).is_file():
        raise ValueError(f"--out {out}: the results of several shards need a folder, and this is a file")
    names = collections.Counter(out_name(shard.name) for shard in shards)
    name, count = names.most_common(1)[0]
    if count > 1:
        raise ValueError(f"{url}: {count} shards would have the same results file {name}; rename them")
    if any(name.endswith(results.PARQUET) for name in names):
        results.need_pyarrow(Path(out))
    if storage.lies_in(out, url) or any(storage.lies_in(shard.url, out) for shard in shards):
        raise ValueError(f"--out {out} is in {url}, where its results would be taken for shards; choose another")


def _about(reward: Reward, columns: rows.Columns, shards: list[storage.StoredFile]) -> dict[str, Any]:
    return {
        "reward": reward.formula,
        "options": reward.options,
        "versions": dict(reward.versions),
        "columns": {kind: getattr(columns, kind) for kind in rows.NAMES},
        "inputs": [[shard.name, shard.size] for shard in shards],
    }


def _check_about(out: str, about: dict[str, Any]) -> None:
    """Records what the results are of; existing results must be of the same.

    A shard without results may change until all shards have results: a damaged one may be repaired or removed.

    Raises: ValueError.
    """
    before = storage.read_json(storage.joined(out, _ABOUT))
    if before is None:
        storage.put_json(storage.joined(out, _ABOUT), about)
        return
    storage.clear_parts(out)
    changed = [key for key in about if not isinstance(before, dict) or before.get(key) != about[key]]
    if changed == ["inputs"]:
        names = [name for name in _changed(before["inputs"], about["inputs"]) if _holds(out, name)]
        if not names:
            storage.put_json(storage.joined(out, _ABOUT), about)
            return
        changed = [f"inputs ({', '.join(names[:3])}{', ...' * (len(names) > 3)})"]
    if changed:
        raise ValueError(
            f"--out {out} holds results of different {' and '.join(changed)}; remove it, or choose another --out"
        )


def _changed(before: list[list[Any]], now: list[list[Any]]) -> list[str]:
    """Returns the shards that were added, removed or changed in size."""
    differs = {tuple(shard) for shard in before} ^ {tuple(shard) for shard in now}
    return sorted({str(name) for name, _ in differs})


def _holds(out: str, name: str) -> bool:
    """True if there are results of this shard, or if all shards have results."""
    return any(
        storage.read_json(storage.joined(out, path)) is not None for path in (_MANIFEST, out_name(name) + _SUMMARY)
    )
