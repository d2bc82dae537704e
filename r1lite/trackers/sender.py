"""Sends a run directory's records to trackers, each in its own thread, so that training neither waits nor stops."""

from __future__ import annotations

import json
import math
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r1lite.doctor import diagnose
from r1lite.errors import UserError
from r1lite.run.environment import read_environment
from r1lite.run.files import TRACKERS, json_or_empty, plausible, read_bytes, read_json, write_json
from r1lite.trackers import About, Tracker, find
from verifiers import rows
from verifiers.yaml_text import read_yaml

COLUMNS = ("step", "problem", "question", "gold", "completion", "reward", "advantage", "right", "reasons")
_POLL_S = 1.0  # interval between reads of the records
_FLUSH_S = 60.0  # maximum wait for a tracker at the end of a run
_STALL_S = 120.0  # a call that takes longer is reported
_TABLES = 10  # per run
_ROWS = 32  # per table
_TEXT = 2000  # maximum characters of a text in a table
Say = Callable[[str], object]


class Senders:
    """The trackers of a run in progress."""

    def __init__(self, names: Sequence[str], run: Path, project: str, say: Say) -> None:
        self._names, self._run, self._project, self._say = names, run, project, say
        self._senders: list[Sender] = []

    def begin(self, steps: int) -> None:
        """Starts sending. Call it after `rewind`, which removes the records of steps that will be repeated."""
        self._senders = [Sender(name, self._run, self._project, steps, self._say) for name in self._names]
        for one in self._senders:
            one.begin()

    def close(self) -> None:
        """Sends the remaining records and ends; a tracker that does not answer in time is abandoned with a message."""
        for one in self._senders:
            one.finishing.set()
        end = time.monotonic() + _FLUSH_S
        for one in self._senders:
            one.wait(max(0.0, end - time.monotonic()))


class Sender:
    """One tracker of one run.

    Args:
        steps: number of steps of the whole run; determines which steps get a table.
        say: called once if the tracker fails.
    """

    def __init__(self, name: str, run: Path, project: str, steps: int, say: Say) -> None:
        self.name, self.run, self.project, self.steps = name, run, project, max(1, steps)
        self.finishing = threading.Event()
        self._say, self._told = say, False
        self._note = run / TRACKERS / f"{name}.json"  # records what was sent
        self._thread = threading.Thread(target=self._work, name=f"tracker-{name}", daemon=True)
        self._busy_since: float | None = None
        self._places = {name: 0 for name in ("metrics.jsonl", "evaluations.jsonl")}  # file -> bytes read so far

    def begin(self) -> None:
        """Starts sending."""
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Waits for the end of sending, at most `seconds`."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._warn("it did not receive everything in time")

    def send(self) -> None:
        """Sends all records so far. Raises the tracker's exceptions."""
        self.finishing.set()
        self._all(find(self.name)())

    def _work(self) -> None:
        threading.Thread(target=self._watch, name=f"tracker-{self.name}-watch", daemon=True).start()
        try:
            self._all(find(self.name)())
        except BaseException as error:  # any error of the tracker's library; the run continues without it
            self._warn(f"{type(error).__name__}: {error}")

    def _watch(self) -> None:
        while self._thread.is_alive() and not self._told:
            since = self._busy_since
            if since is not None and time.monotonic() - since > _STALL_S:
                self._warn(f"it has not answered for {_STALL_S:.0f} s")
            time.sleep(_POLL_S)

    def _warn(self, why: str) -> None:
        if not self._told:
            self._told = True
            again = f"r1lite log {shlex.quote(str(self.run))} --to {self.name}"
            self._say(f"tracker {self.name}: {why}; the run continues. {again} sends the rest")

    def _all(self, tracker: Tracker) -> None:
        note = _note(self._note)
        sent = note.get("step") if isinstance(note.get("step"), int) else None
        self._busy_since = time.monotonic()
        held = tracker.start(about(self.run, str(note["id"]), self.project, sent))
        self._save({**note, "step": sent})
        last = max((step for step in (sent, held) if step is not None), default=-1)
        tested_at = note["tested"] if isinstance(note.get("tested"), int) else -1
        while True:
            ending = self.finishing.is_set()  # read first, so that everything written before `finishing` is sent
            for step, metrics, test in self._new():
                self._busy_since = time.monotonic()
                values = {**(metrics if step > last else {}), **(test if step > tested_at else {})}
                if values:
                    tracker.log(step, values)
                if metrics and step > last:
                    self._table(tracker, step)
                last, tested_at = max(last, step), max(tested_at, step if test else -1)
                self._save({**note, "step": last, "tested": tested_at})
            self._busy_since = None
            if ending:
                break
            self.finishing.wait(_POLL_S)
        self._busy_since = time.monotonic()
        tracker.finish(*outcome(self.run))
        self._busy_since = None

    def _new(self) -> Iterator[tuple[int, dict[str, float], dict[str, float]]]:
        """Yields new records in order (W&B drops earlier steps): step, metrics, and its evaluation if there is one."""
        evaluations = {line["step"]: line for line in self._lines("evaluations.jsonl")}
        metrics = {line["step"]: line for line in self._lines("metrics.jsonl")}
        for step in sorted({*evaluations, *metrics}):
            yield step, numbers(metrics.get(step, {})), tested(evaluations.get(step, {}))

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        path = self.run / name
        if not path.is_file():
            return
        with open(path, "rb") as file:
            file.seek(self._places[name])
            for line in file:
                if not line.endswith(b"\n"):
                    return  # the line is still being written
                self._places[name] += len(line)
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                record = plausible(record)
                if isinstance(record, dict) and isinstance(record.get("step"), int):
                    yield record

    def _table(self, tracker: Tracker, step: int) -> None:
        if step % max(1, self.steps // _TABLES) and step not in (1, self.steps):
            return
        path = dict(rows.step_files(self.run)).get(step)
        if path is None:
            return
        try:
            found = sample(path, step)
        except (OSError, ValueError):  # removed already (--keep-rollouts), or cut short: the rest is still sent
            return
        tracker.table(step, COLUMNS, found)

    def _save(self, note: Mapping[str, Any]) -> None:
        self._note.parent.mkdir(exist_ok=True)
        write_json(self._note, dict(note))


def about(run: Path, name: str, project: str, sent: int | None) -> About:
    """Returns the description of a run for a tracker. Raises UserError if its configuration can't be read."""
    try:
        config = read_yaml(read_bytes(run / "config.yaml"))
    except (OSError, ValueError) as error:
        raise UserError(f"{run}/config.yaml can't be read: {error}") from error
    stage = str(read_environment(run).get("stage") or "run")
    settings = plausible(config) if isinstance(config, dict) else {}
    return About(name, run.resolve().name, project, stage, run, settings, sent)


def numbers(line: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Returns the finite numbers of a record; nested names are joined by slashes."""
    found: dict[str, float] = {}
    for key, value in line.items():
        if isinstance(value, dict):
            found |= numbers(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and key != "step":
            found[f"{prefix}{key}"] = float(value)
    return found


def tested(evaluation: Mapping[str, Any]) -> dict[str, float]:
    """Returns the rates of an evaluation."""
    kept = {key: value for key, value in evaluation.items() if isinstance(value, int | float)}
    return {f"test/{key}": value for key, value in numbers(kept).items()}


def sample(path: Path, step: int) -> list[list[Any]]:
    """Returns some completions of a step: the same number for each problem."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for _, row in rows.rows(path):
        if isinstance(row, dict):
            groups.setdefault(str(row.get("problem_id")), []).append(row)
    each = max(1, _ROWS // max(1, len(groups)))
    chosen = [row for group in groups.values() for row in group[:each]][:_ROWS]
    return [
        [
            step,
            str(row.get("problem_id")),
            _short(row.get("question")),
            _short(row.get("gold")),
            _short(row.get("completion")),
            row.get("reward"),
            row.get("advantage"),
            row.get("correct"),
            ", ".join(
                f"{v.get('verifier')} {v.get('reason')}" for v in row.get("verdicts") or () if isinstance(v, dict)
            ),
        ]
        for row in chosen
    ]


def outcome(run: Path) -> tuple[dict[str, float], list[str]]:
    """Returns (numbers of the summary, findings) of a run, as far as they exist."""
    found = json_or_empty(run / "summary.json")  # none if the run has not ended
    summary = numbers({key: value for key, value in found.items() if key != "learnt"})
    summary = {name: value for name, value in summary.items() if "examples" not in name}
    try:
        return summary, [str(finding) for finding in diagnose(run)]
    except UserError:
        return summary, []


def _note(path: Path) -> dict[str, Any]:
    """Returns the record of what was sent, with a new id if nothing was sent yet."""
    try:
        note: dict[str, Any] = read_json(path)
    except UserError:
        note = {}
    return {"id": secrets.token_hex(4), "step": None, **note}


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, default=str)
    return text if len(text) <= _TEXT else f"{text[:_TEXT]} [{len(text) - _TEXT} more characters]"
