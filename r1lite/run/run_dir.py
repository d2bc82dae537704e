"""The run directory: the source of truth about a run.

environment.json     schema of the directory, versions, machine, command line; the same for each time it was resumed
reward.json          the reward's formula, options and verifiers' versions
config.yaml          the resolved configuration; `r1lite grpo config.yaml` runs it again. It is put in place last: a
                     folder without it holds no run yet, and the command that was stopped starts in it once more
metrics.jsonl        one line a step
evaluations.jsonl    one line an evaluation on the way (--eval-every)
arrivals.jsonl       groups that were sampled ahead, as they were finished (--max-staleness); `r1lite.run.arrivals`
bad_batches/         what was learnt from where the gradient was not finite
stacks.txt           what the threads were doing when the watchdog ended the run
rollouts/            one compressed JSONL file a step (.jsonl.gz), a row a completion; `r1lite.run.rollout_rows`
evaluations/         one such file an evaluation, a row a test problem with what was said to it
checkpoints/         step-NNNNNN/, as `from_pretrained` opens them, with the trainer's state beside; manifest.json has
                     the digests of its files and of all that was recorded up to its step
optimal_values.json  rewards of the reference's samples, by problem (--value-samples)
launch/              logs of all processes, where `r1lite launch` started them
eval_before.json     the evaluation before the first step, eval_after.json that after the last
summary.json         the outcome
findings.json        what `r1lite doctor` said at its end
report.html          all of it to look at (r1lite report)
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from r1lite.errors import UserError
from r1lite.run import environment, records
from r1lite.run.environment import read_environment
from r1lite.run.files import (
    as_json,
    clear_parts,
    digest,
    part_of,
    read_json,
    write_json,
    write_rows,
    write_text,
)
from r1lite.run.rollout_rows import rollout_rows
from r1lite.types import Group
from verifiers import rows

_DIGITS = 6
_CONFIG, _LOCK = "config.yaml", ".lock"
LAUNCH = "launch"  # what `r1lite launch` keeps: logs of all processes; there before the run, and never removed
_BESIDE = {_LOCK, LAUNCH}  # not the run's own
_ANSWERS = "evaluations"


class RunDir:
    """A run directory that this process alone writes to.

    What a killed process left half written in it is removed.

    Args:
        resume: a run has begun in it.
        restarts: of a stage that can't be continued: what an unfinished run of it (no summary.json) left is removed.

    Raises (when made): UserError if the place can't be written, holds a run already (or none, to resume), or is in use.
    """

    def __init__(self, path: Path, *, resume: bool = False, restarts: str | None = None) -> None:
        self.path, self._restarts = path, restarts
        self.rollouts = path / records.ROLLOUTS
        self.checkpoints = path / "checkpoints"
        self.bad_batches: Path | None = path / "bad_batches"  # None = they are not kept here
        self.ranks = 1
        self.keep_rollouts: int | None = None  # those of so many newest steps; None: all
        self.settings: dict[str, Any] = {}  # those that can't change, for the checkpoints' manifests
        self._digests: records.Digests = {}  # of the rollouts so far
        _check_name(path)
        try:
            self._check(resume)
            path.mkdir(parents=True, exist_ok=True)
            self._lock = open(path / _LOCK, "a")  # noqa: SIM115  # held until close()
        except OSError as error:
            raise UserError(f"--out {path}: can't be written: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise UserError(f"{path} is in use by another r1lite process") from None
        try:
            self._check(resume)  # once more: another process may have been here
            if not resume:
                self._clear()
            for folder in (path, *(other for other in path.iterdir() if other.is_dir() and not _is_run(other))):
                clear_parts(folder)
        except BaseException:
            self.close()
            raise

    def _check(self, resume: bool) -> None:
        if resume:
            check_begun(self.path)
        else:
            _check_free(self.path, self._restarts)

    def _leftovers(self) -> list[Path] | None:
        return _leftovers(self.path, self._restarts)

    def _clear(self) -> None:
        """Removes what was left, the word of what it is last."""
        found = self._leftovers() or []
        for file in sorted(found, key=lambda file: (file.name == environment.FILE, file.name != _CONFIG)):
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)

    def close(self) -> None:
        """Lets others in."""
        self._lock.close()

    def discard_if_empty(self) -> None:
        """Removes the directory again if no run has begun in it."""
        if not (self.path / _CONFIG).exists() and self._leftovers() is not None:
            self._clear()
            if [file.name for file in self.path.iterdir()] == [_LOCK]:
                (self.path / _LOCK).unlink()
                self.path.rmdir()
        self.close()

    def discard(self) -> None:
        """Removes a run that will not be continued, unless there is more than what describes it."""
        described = {*_BESIDE, _CONFIG, environment.FILE, *read_environment(self.path).get("files", ())}
        if self._restarts is not None:
            self._clear()
        elif {file.name for file in self.path.iterdir()} <= described:
            (self.path / _CONFIG).unlink(missing_ok=True)
        self.discard_if_empty()

    def write_config(self, text: str, *, stage: str, problems: str, results: Mapping[str, Any] | None = None) -> None:
        """Begins the run: keeps what it runs on, and then its resolved configuration.

        Args:
            problems: a fingerprint of them, so that a resumed run notices others.
            results: kept as NAME.json.
        """
        texts = {f"{name}.json": as_json(value) for name, value in (results or {}).items()}
        about = {"schema": environment.SCHEMA, "stage": stage, "problems": problems, "files": list(texts)}
        write_json(self.path / environment.FILE, {**about, **environment.environment(self.settings, ranks=self.ranks)})
        for name, content in texts.items():
            write_text(self.path / name, content)
        write_text(self.path / _CONFIG, text)

    def go_on(self, text: str, *, stage: str, problems: str, results: Mapping[str, Any]) -> list[str]:
        """Continues the run with what it was told to change. Returns: what the reader should know.

        Files that describe the run and were lost are made again.
        """
        write_text(self.path / _CONFIG, text)
        said = []
        now = environment.environment(self.settings, ranks=self.ranks)
        if (self.path / environment.FILE).exists():
            about = read_json(self.path / environment.FILE)
            before = [about, *about.get("resumed", ())]
            said += environment.differences(before[-1], now)
            about["schema"] = environment.SCHEMA  # from here on it is written as this version does
            write_json(self.path / environment.FILE, {**about, "resumed": [*before[1:], now]})
        else:
            about = {"schema": environment.SCHEMA, "stage": stage, "problems": problems, "files": []}
            write_json(self.path / environment.FILE, {**about, **now})
            said.append(
                f"{environment.FILE} was missing: whether problems and versions are still the same is not known"
            )
        for name, value in results.items():
            said += self._mend(name, value)
        return said

    def _mend(self, name: str, value: Any) -> list[str]:
        """Makes a result again that is missing or damaged; says if verifiers have changed since it was made."""
        path = self.path / f"{name}.json"
        try:
            kept = read_json(path)
        except UserError:
            why = "damaged" if path.exists() else "missing"
            write_json(path, value)
            return [f"{path.name} was {why}: it was made again"]
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
        """Keeps another configuration."""
        write_text(self.path / _CONFIG, text)

    def write_result(self, name: str, value: Any) -> None:
        """Keeps a result as NAME.json."""
        write_json(self.path / f"{name}.json", value)

    def read_result(self, name: str, keys: Iterable[str] = (), say: Callable[[str], object] = print) -> Any:
        """A result that was kept with these keys; None, having said so, if it was lost or is damaged."""
        path = self.path / f"{name}.json"
        if not path.exists():
            return None
        try:
            found = read_json(path)
        except UserError as error:
            say(f"{error}: it is made again")
            return None
        if lacking := [key for key in keys if key not in found]:
            say(f"{path}: damaged: it lacks {', '.join(lacking)}: it is made again")
            return None
        return found

    def append_metrics(self, record: dict[str, Any]) -> None:
        """Adds one line to metrics.jsonl."""
        _append(self.path / "metrics.jsonl", record)

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl so far; a last line cut short by a kill is left out."""
        return read_records(self.path / "metrics.jsonl")

    def append_evaluation(self, record: dict[str, Any]) -> None:
        """Adds one line to evaluations.jsonl."""
        _append(self.path / "evaluations.jsonl", record)

    def evaluations(self) -> list[dict[str, Any]]:
        """The lines of evaluations.jsonl so far, likewise."""
        return read_records(self.path / "evaluations.jsonl")

    def write_answers(self, step: int, answers: Iterable[Mapping[str, Any]]) -> None:
        """Keeps what was said to each test problem by the weights after `step` steps."""
        folder = self.path / _ANSWERS
        folder.mkdir(exist_ok=True)
        write_rows(folder / f"step-{step:0{_DIGITS}d}.jsonl.gz", answers)

    def answers(self, step: int) -> list[dict[str, Any]]:
        """Them again; none if they are not kept."""
        path = self.path / _ANSWERS / f"step-{step:0{_DIGITS}d}.jsonl.gz"
        return [row for _, row in rows.rows(path)] if path.exists() else []

    def recorded(self) -> dict[str, Any]:
        """What a checkpoint keeps of the records so far, which the disk holds from now on."""
        return records.take(self.path, self._digests, self.settings)

    def losses(self, kept: Mapping[str, Any] | None, step: int) -> list[str]:
        """What was recorded up to `step` and is lost: a line for each file.

        Args:
            kept: by the checkpoint of that step; None if it was written before there were digests.
        """
        whole = self.keep_rollouts is None
        if kept is None:
            return records.losses_by_steps(self.path, step, [line["step"] for line in self.metrics()], rollouts=whole)
        return records.losses(self.path, kept, rollouts=whole)

    def write_rollouts(self, step: int, groups: Iterable[Group]) -> None:
        """Keeps every completion of a step, and removes those of steps that are no longer to be kept."""
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
        """Forgets what was recorded after `step`: it is about to be done again."""
        for path in (self.path / "metrics.jsonl", self.path / "evaluations.jsonl"):
            if path.exists():
                kept = [line for line in read_records(path) if line["step"] <= step]
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


def check_place(path: Path, restarts: str | None = None) -> None:
    """Raises UserError if a new run can't be made there, as RunDir would; makes nothing. `restarts`: see RunDir."""
    _check_name(path)
    there = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    try:
        _check_free(path, restarts)
    except OSError as error:
        raise UserError(f"--out {path}: can't be written: {error.strerror}") from error
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"--out {path}: can't be written: {there} is {'read-only' if there.is_dir() else 'a file'}")


def _check_name(path: Path) -> None:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise UserError(
            f"--out {str(path)!r}: the libraries that write models want a name in UTF-8; this locale has another "
            "encoding. Choose an ASCII name, or set PYTHONUTF8=1"
        ) from None


def _check_free(path: Path, restarts: str | None) -> None:
    """Raises UserError if the place holds anything but leftovers."""
    if path.exists() and not path.is_dir():
        raise UserError(f"--out {path} is not a folder")
    if path.exists() and _leftovers(path, restarts) is None:
        if not (path / _CONFIG).exists():
            raise UserError(f"--out {path} is not empty, and holds no run; choose another --out")
        raise UserError(
            f"--out {path} is not empty: it holds a run; continue it with --resume, or choose another --out"
        )


def _leftovers(path: Path, restarts: str | None) -> list[Path] | None:
    """What a start, or a run that can't be continued, left when it was stopped; None if there is anything else."""
    kept = read_environment(path)
    own = restarts is not None and kept["stage"] == restarts
    if (path / _CONFIG).exists() and (not own or (path / "summary.json").exists()):
        return None
    names = {_CONFIG, environment.FILE, *kept.get("files", ())} if own or "schema" in kept else set()
    parts = {part_of(path / name).name for name in (*names, _CONFIG, environment.FILE, "summary.json")}
    if own:
        names |= {"reward.json", "problems.jsonl", "against", part_of(path / "problems.jsonl").name}
    found = [file for file in path.iterdir() if file.name not in _BESIDE]
    return found if {file.name for file in found} <= names | parts else None


def check_begun(path: Path) -> None:
    """Raises UserError unless a run that this version can continue has begun in the folder."""
    if not (path / _CONFIG).exists():
        raise UserError(
            f"--resume: {path} holds no run that has begun (no {_CONFIG}); start it by the same command without "
            "--resume"
        )
    environment.check_schema(path)


def read_records(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file of a run; none if there is no file. A last line cut short by a kill is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # torn by a crash of the machine: what follows can't be trusted either
            break
        if not isinstance(record, dict) or not isinstance(record.get("step"), int):
            break
        found.append(record)
    return found


def _is_run(folder: Path) -> bool:
    return (folder / _LOCK).exists()


def _append(path: Path, record: dict[str, Any]) -> None:
    line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    with open(path, "a", encoding="utf-8") as file:
        file.write(line)


def claim_path(stage: str, task: str, model: str) -> Path:
    """Makes a folder with a fresh dated name under runs/. Raises UserError."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{stage}-{task}-{Path(model).name}".replace(":", "_")
    for number in itertools.count(1):
        path = Path("runs") / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:  # another run was begun in the same second
            continue
        except OSError as error:
            raise UserError(f"{path}: can't be written: {error.strerror}; choose another place with --out") from error
    raise AssertionError


def newest_path(stage: str) -> Path:
    """The run of this stage under runs/ that was begun last. Raises UserError."""
    runs = [
        path.parent for path in Path("runs").glob("*/config.yaml") if read_environment(path.parent)["stage"] == stage
    ]
    if not runs:
        raise UserError(f"--resume: there is no {stage} run under runs/; name it with --out DIR")

    def begun(path: Path) -> tuple[str, float]:
        return str(read_environment(path).get("started")), (path / environment.FILE).stat().st_mtime

    return max(runs, key=begun)
