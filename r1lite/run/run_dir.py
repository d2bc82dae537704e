"""The run directory, which holds everything that is known about a run.

environment.json     schema of the directory, versions, machine, command line; likewise for each time it was resumed
reward.json          the reward's formula, options and verifiers' versions
config.yaml          the resolved configuration; `r1lite grpo config.yaml` repeats the run. It is written last: a
                     folder without it holds no run yet, and the same command can start in it again
metrics.jsonl        one line per step
evaluations.jsonl    one line per evaluation during training (--eval-every)
arrivals.jsonl       groups that were sampled ahead, in order of completion (--max-staleness); `r1lite.run.arrivals`
bad_batches/         batches whose gradient was not finite
stacks.txt           stacks of all threads, if the watchdog ended the run
rollouts/            one compressed JSONL file per step (.jsonl.gz), one row per completion; `r1lite.run.records`
evaluations/         one such file per evaluation, one row per test problem with its answer
checkpoints/         step-NNNNNN/, which `from_pretrained` loads, with the trainer's state; manifest.json has the
                     digests of the checkpoint's files and of everything recorded up to its step
optimal_values.json  rewards of the reference's samples for each problem (--value-samples)
launch/              logs of all processes, if `r1lite launch` started them
eval_before.json     the evaluation before the first step, eval_after.json that after the last
summary.json         the outcome
findings.json        findings of `r1lite doctor` at the end of the run
report.html          the HTML report (r1lite report)
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from r1lite.errors import UserError
from r1lite.run import environment, records
from r1lite.run.environment import read_environment
from r1lite.run.files import (
    LOCK,
    as_json,
    check_contents,
    clear_parts,
    digest,
    lock_folder,
    read_json,
    write_json,
    write_rows,
    write_text,
)
from r1lite.run.places import BESIDE, CONFIG, check_begun, check_free, check_name, described, leftovers, weights_folder
from r1lite.run.records import rollout_rows
from r1lite.types import Group
from verifiers import rows

_DIGITS = 6
_ANSWERS = "evaluations"


class RunDir:
    """A run directory that only this process writes to. Half-written files of killed processes are removed.

    Args:
        resume: continue the run in the directory.
        restarts: name of a stage that can't be resumed: files of its unfinished run (no summary.json) are removed.

    Raises:
        UserError: the directory can't be written or is in use, or it holds a run already (with `resume`: holds none).
    """

    def __init__(self, path: Path, *, resume: bool = False, restarts: str | None = None) -> None:
        self.path, self._restarts = path, restarts
        self.rollouts = path / records.ROLLOUTS
        self.checkpoints = path / "checkpoints"
        self.bad_batches: Path | None = path / "bad_batches"  # None: not stored here
        self.ranks = 1
        self.keep_rollouts: int | None = None  # number of newest steps to keep; None: all
        self.settings: dict[str, Any] = {}  # settings that can't change, for the manifests of checkpoints
        self._digests: records.Digests = {}  # digests of the rollouts so far
        check_name(path)
        try:
            self._check(resume)
            self._lock = lock_folder(path)
        except BlockingIOError:
            raise UserError(f"{path} is in use by another r1lite process") from None
        except OSError as error:
            raise UserError(f"--out {path}: can't be written: {error.strerror}") from error
        try:
            self._check(resume)  # again, under the lock: another process may have written in between
            check_contents(path)
            if not resume:
                self._clear()
            for folder in (path, *filter(Path.is_dir, path.iterdir())):
                if folder == path or not (folder / LOCK).exists():  # the other is a run itself
                    clear_parts(folder)
            for left in weights_folder(path).glob("*"):  # of a killed process, maybe on another machine
                shutil.rmtree(left, ignore_errors=True)
        except BaseException:
            self.close()
            raise

    def _check(self, resume: bool) -> None:
        if resume:
            check_begun(self.path)
        else:
            check_free(self.path, self._restarts)

    def _leftovers(self) -> list[Path] | None:
        return leftovers(self.path, self._restarts)

    def _clear(self) -> None:
        """Removes leftovers: config.yaml first, environment.json, which identifies them, last."""
        found = self._leftovers() or []
        for file in sorted(found, key=lambda file: (file.name == environment.FILE, file.name != CONFIG)):
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)

    def close(self) -> None:
        """Releases the lock."""
        self._lock.close()

    def discard_if_empty(self) -> None:
        """Removes the directory if no run has started in it, and releases the lock."""
        if not (self.path / CONFIG).exists() and self._leftovers() is not None:
            self._clear()
            if [file.name for file in self.path.iterdir()] == [LOCK]:
                (self.path / LOCK).unlink()
                self.path.rmdir()
        self.close()

    def discard(self) -> None:
        """Removes a run that will not be resumed, unless it holds more than its description."""
        own = {*BESIDE, CONFIG, environment.FILE, *described(read_environment(self.path))}
        if self._restarts is not None:
            self._clear()
        elif {file.name for file in self.path.iterdir()} <= own:
            (self.path / CONFIG).unlink(missing_ok=True)
        self.discard_if_empty()

    def write_config(
        self, text: str, *, stage: str, learned: Mapping[str, Any], results: Mapping[str, Any] | None = None
    ) -> None:
        """Starts the run: writes environment and results, and then the resolved configuration.

        Args:
            learned: digests of the problems and models of the run, so that a resumed run notices a change.
            results: values that are stored as NAME.json.
        """
        texts = {f"{name}.json": as_json(value) for name, value in (results or {}).items()}
        about = {"schema": environment.SCHEMA, "stage": stage, **learned, "files": list(texts)}
        write_json(self.path / environment.FILE, {**about, **environment.environment(self.settings, ranks=self.ranks)})
        for name, content in texts.items():
            write_text(self.path / name, content)
        write_text(self.path / CONFIG, text)

    def go_on(self, text: str, *, stage: str, learned: Mapping[str, Any], results: Mapping[str, Any]) -> list[str]:
        """Continues the run with a changed configuration. Returns remarks for the user.

        Lost files that describe the run are written again.
        """
        write_text(self.path / CONFIG, text)
        said = []
        now = environment.environment(self.settings, ranks=self.ranks)
        if (self.path / environment.FILE).exists():
            about = read_json(self.path / environment.FILE)
            before = [about, *about.get("resumed", ())]
            said += environment.differences(before[-1], now)
            if "problems" not in about:
                said.append(f"{environment.FILE} does not name the run's problems: changes of them can't be noticed")
            about |= {"schema": environment.SCHEMA, **learned}  # from here on this version writes the directory
            write_json(self.path / environment.FILE, {**about, "resumed": [*before[1:], now]})
        else:
            about = {"schema": environment.SCHEMA, "stage": stage, **learned, "files": []}
            write_json(self.path / environment.FILE, {**about, **now})
            said.append(f"{environment.FILE} was missing: changes of problems, models and versions can't be noticed")
        for name, value in results.items():
            said += self._mend(name, value)
        return said

    def _mend(self, name: str, value: Any) -> list[str]:
        """Writes a missing or damaged result again; returns remarks, also on verifiers that have changed since."""
        path = self.path / f"{name}.json"
        try:
            kept = read_json(path)
        except UserError:
            why = "damaged" if path.exists() else "missing"
            write_json(path, value)
            return [f"{path.name} was {why}: it was written again"]
        before, now = kept.get("versions"), value.get("versions")
        if not isinstance(before, dict) or not isinstance(now, dict):
            return []
        return [
            f"verifier '{one}' was version {version} when this run began and is {now[one]}: rewards may differ from "
            "here on"
            for one, version in before.items()
            if one in now and now[one] != version
        ]

    def rewrite_config(self, text: str) -> None:
        """Replaces the stored configuration."""
        write_text(self.path / CONFIG, text)

    def write_result(self, name: str, value: Any) -> None:
        """Stores a result as NAME.json."""
        write_json(self.path / f"{name}.json", value)

    def read_result(self, name: str, keys: Iterable[str] = (), say: Callable[[str], object] = print) -> Any:
        """Returns a stored result that has these keys; None if it is missing or, after a message, if it is damaged."""
        path = self.path / f"{name}.json"
        if not path.exists():
            return None
        try:
            found = read_json(path)
        except UserError as error:
            say(f"{error}: it is computed again")
            return None
        if lacking := [key for key in keys if key not in found]:
            say(f"{path}: damaged: it lacks {', '.join(lacking)}: it is computed again")
            return None
        return found

    def append_metrics(self, record: dict[str, Any]) -> None:
        """Adds one line to metrics.jsonl."""
        _append(self.path / "metrics.jsonl", record)

    def metrics(self) -> list[dict[str, Any]]:
        """Returns the lines of metrics.jsonl so far; a truncated last line is dropped."""
        return records.read_records(self.path / "metrics.jsonl")

    def append_evaluation(self, record: dict[str, Any]) -> None:
        """Adds one line to evaluations.jsonl."""
        _append(self.path / "evaluations.jsonl", record)

    def evaluations(self) -> list[dict[str, Any]]:
        """Returns the lines of evaluations.jsonl so far; a truncated last line is dropped."""
        return records.read_records(self.path / "evaluations.jsonl")

    def write_answers(self, step: int, answers: Iterable[Mapping[str, Any]]) -> None:
        """Stores the answers to the test problems by the weights after `step` steps."""
        folder = self.path / _ANSWERS
        folder.mkdir(exist_ok=True)
        write_rows(folder / f"step-{step:0{_DIGITS}d}.jsonl.gz", answers)

    def answers(self, step: int) -> list[dict[str, Any]]:
        """Returns the stored answers of a step; an empty list if there are none, or if they are damaged."""
        path = self.path / _ANSWERS / f"step-{step:0{_DIGITS}d}.jsonl.gz"
        try:
            return [row for _, row in rows.rows(path)]
        except (OSError, ValueError):  # they are only displayed: a run need not end for them
            return []

    def recorded(self) -> dict[str, Any]:
        """Syncs the records so far and returns their description for a checkpoint's manifest."""
        return records.take(self.path, self._digests, self.settings)

    def losses(self, kept: Mapping[str, Any] | None, step: int) -> list[str]:
        """Returns a line for each file with lost or changed records up to `step`.

        Args:
            kept: records in the manifest of that step's checkpoint; None if an old version wrote it without digests.
        """
        whole = self.keep_rollouts is None
        if kept is None:
            return records.losses_by_steps(self.path, step, [line["step"] for line in self.metrics()], rollouts=whole)
        return records.losses(self.path, kept, rollouts=whole)

    def write_rollouts(self, step: int, groups: Iterable[Group]) -> None:
        """Stores every completion of a step, and removes the files of steps beyond `keep_rollouts`."""
        if self.keep_rollouts != 0:
            self.rollouts.mkdir(exist_ok=True)
            path = self.rollouts / f"step-{step:0{_DIGITS}d}.jsonl.gz"
            write_rows(path, rollout_rows(step, groups))
            if self.keep_rollouts is None:
                self._digests[path.name] = digest(path)
        if self.keep_rollouts is not None:
            for number, path in rows.step_files(self.path):
                if number <= step - self.keep_rollouts:
                    path.unlink()

    def rewind(self, step: int) -> None:
        """Removes the records of steps after `step`, which are about to be repeated."""
        for path in (self.path / "metrics.jsonl", self.path / "evaluations.jsonl"):
            if path.exists():
                kept = [line for line in records.read_records(path) if line["step"] <= step]
                write_text(path, "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in kept))
        self._digests = {}
        answers = (self.path / _ANSWERS).glob("step-*.jsonl.gz")
        bad = self.bad_batches.glob("step-*.pt") if self.bad_batches else ()
        for file in (*self.rollouts.glob("step-*.jsonl*"), *bad, *answers):
            number = file.stem.partition(".")[0].removeprefix("step-").partition("-")[0]
            if number.isdecimal() and int(number) > step:
                file.unlink()
        if self.keep_rollouts is None:
            self._digests = {path.name: digest(path) for _, path in rows.step_files(self.path)}


def _append(path: Path, record: dict[str, Any]) -> None:
    line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    with open(path, "a", encoding="utf-8") as file:
        file.write(line)


class Unwritten(RunDir):
    """Knows the path but writes nothing; the folder need not exist on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rollouts = path / records.ROLLOUTS
        self.checkpoints = path / "checkpoints"
        self.bad_batches = None
        self.settings = {}

    def _nothing(self, *given: Any, **named: Any) -> None:
        """Does nothing: the main rank does this."""

    close = discard_if_empty = discard = rewrite_config = write_result = _nothing
    append_metrics = append_evaluation = write_answers = write_rollouts = rewind = _nothing
