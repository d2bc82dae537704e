"""The run directory: the source of truth about a run.

config.yaml          the resolved configuration; `r1lite grpo config.yaml` runs it again
environment.json     versions, machine, command line
metrics.jsonl        one line a step
evaluations.jsonl    one line an evaluation on the way (--eval-every)
bad_batches/         what was learnt from where the gradient was not finite
stacks.txt           what the threads were doing when the watchdog ended the run
rollouts/            one JSONL file a step, a row a completion
checkpoints/         step-NNNNNN/, as `from_pretrained` opens them, with the trainer's state beside
eval_before.json     the evaluation before the first step, eval_after.json that after the last
summary.json         the outcome
findings.json        what `r1lite doctor` said at its end
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import itertools
import json
import os
import platform
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from r1lite import __version__
from r1lite.errors import UserError
from r1lite.run.files import replaced_file, write_json, write_text
from r1lite.trainer.trajectory import Group

_DIGITS = 6


class RunDir:
    """A run directory that this process alone writes to.

    Raises (when made): UserError if the place can't be written, holds a run already, or is in use.
    """

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self.path = path
        try:
            str(path).encode("utf-8")
        except UnicodeEncodeError:
            raise UserError(
                f"--out {str(path)!r}: the libraries that write models want a name in UTF-8; this locale has another "
                "encoding. Choose an ASCII name, or set PYTHONUTF8=1"
            ) from None
        if resume and not (path / "config.yaml").exists():
            raise UserError(f"--resume: {path} holds no run (no config.yaml)")
        try:
            if path.exists() and not path.is_dir():
                raise UserError(f"--out {path} is not a folder")
            if not resume and path.exists() and any(file.name != ".lock" for file in path.iterdir()):
                raise UserError(f"--out {path} is not empty; continue its run with --resume, or choose another --out")
            path.mkdir(parents=True, exist_ok=True)
            self._lock = open(path / ".lock", "a")  # noqa: SIM115  # held until close()
        except OSError as error:
            raise UserError(f"--out {path}: can't be written: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise UserError(f"{path} is in use by another r1lite process") from None
        self.rollouts = path / "rollouts"
        self.checkpoints = path / "checkpoints"
        self.bad_batches = path / "bad_batches"

    def close(self) -> None:
        """Lets others in."""
        self._lock.close()

    def discard_if_empty(self) -> None:
        """Removes the directory again if nothing but the lock is in it: the run never began."""
        self.close()
        if [file.name for file in self.path.iterdir()] == [".lock"]:
            (self.path / ".lock").unlink()
            self.path.rmdir()

    def discard(self) -> None:
        """Removes what describes a run that will not be continued."""
        for name in ("config.yaml", "environment.json", "reward.json", "set.json"):
            (self.path / name).unlink(missing_ok=True)
        self.discard_if_empty()

    def write_config(self, text: str, *, stage: str, problems: str) -> None:
        """Keeps the resolved configuration, and what it runs on.

        Args:
            problems: a fingerprint of them, so that a resumed run notices others.
        """
        write_text(self.path / "config.yaml", text)
        write_json(self.path / "environment.json", {"stage": stage, "problems": problems, **_environment()})

    def rewrite_config(self, text: str) -> None:
        """Keeps what a resumed run was told to change."""
        write_text(self.path / "config.yaml", text)

    def write_result(self, name: str, value: Any) -> None:
        """Keeps a result as NAME.json."""
        write_json(self.path / f"{name}.json", value)

    def read_result(self, name: str) -> Any:
        """A result that was kept, or None."""
        path = self.path / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

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

    def write_rollouts(self, step: int, groups: Iterable[Group]) -> None:
        """Keeps every completion of a step: what was asked, sampled, decided and learnt from."""
        self.rollouts.mkdir(exist_ok=True)
        with (
            replaced_file(self.rollouts / f"step-{step:0{_DIGITS}d}.jsonl") as aside,
            # A lone surrogate in a detail becomes its JSON escape.
            open(aside, "w", encoding="utf-8", errors="backslashreplace") as file,
        ):
            for group in groups:
                for sample, rollout in enumerate(group.rollouts):
                    completion, score = rollout.completion, rollout.score
                    row = {
                        "step": step,
                        "problem_id": group.problem.id,
                        "sample": sample,
                        "question": group.problem.prompt,
                        "gold": group.problem.answer,
                        "language": group.problem.language,
                        "tests": None if group.problem.tests is None else dict(group.problem.tests),
                        "meta": dict(group.problem.meta),
                        "prompt": group.prompt,
                        "completion": completion.text,
                        "reward": score.reward,
                        "advantage": rollout.advantage,
                        "correct": rollout.correct,
                        "well_formed": rollout.well_formed,
                        "verdicts": [
                            {
                                "verifier": name,
                                "score": verdict.score,
                                "reason": verdict.reason,
                                "detail": verdict.detail,
                                "answer": verdict.answer,
                                "flags": list(verdict.flags),
                                "version": score.versions.get(name, ""),
                            }
                            for name, verdict in score.verdicts.items()
                        ],
                        "error": score.error,
                        "finish_reason": completion.finish_reason,
                        "policy_version": completion.policy_version,
                        "prompt_ids": group.prompt_ids,
                        "token_ids": completion.token_ids,
                        "logprobs": completion.logprobs,
                    }
                    file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, default=str) + "\n")

    def rewind(self, step: int) -> None:
        """Forgets what was recorded after `step`: it is about to be done again."""
        for path in (self.path / "metrics.jsonl", self.path / "evaluations.jsonl"):
            if path.exists():
                kept = [line for line in read_records(path) if line["step"] <= step]
                write_text(path, "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in kept))
        for file in (*self.rollouts.glob("step-*.jsonl"), *self.bad_batches.glob("step-*.pt")):
            number = file.stem.removeprefix("step-").partition("-")[0]
            if number.isdecimal() and int(number) > step:
                file.unlink()


def read_records(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file of a run; none if there is no file. A last line cut short by a kill is left out."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        try:
            records.append(json.loads(line))
        except ValueError:  # torn by a crash of the machine: what follows can't be trusted either
            break
    return records


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
    return max(runs, key=lambda path: (path / "environment.json").stat().st_mtime)


def read_environment(path: Path) -> dict[str, Any]:
    """The run's environment.json; stage and problems are None where it can't be read."""
    try:
        kept: dict[str, Any] = json.loads((path / "environment.json").read_text(encoding="utf-8"))
        return {"stage": None, "problems": None, **kept}
    except (OSError, ValueError, TypeError):
        return {"stage": None, "problems": None}


def _environment() -> dict[str, Any]:
    versions = {}
    for name in ("torch", "transformers", "tokenizers", "datasets", "sympy", "numpy"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "r1lite": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu_count": os.cpu_count(),
        "versions": versions,
        "argv": [os.fsencode(word).decode("utf-8", "backslashreplace") for word in sys.argv],
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
