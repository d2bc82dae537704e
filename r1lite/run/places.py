"""Where a run may begin or be continued: the folders that hold a run, leftovers of one, or nothing."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from r1lite.errors import UserError
from r1lite.run import environment
from r1lite.run.environment import read_environment
from r1lite.run.files import LOCK, part_of

CONFIG = "config.yaml"
LAUNCH = "launch"  # logs of all processes of `r1lite launch`; it exists before the run and is never removed
BESIDE = {LOCK, LAUNCH}  # not part of the run itself
_CHECKPOINT = re.compile(r"step-(\d{6,})")
_DESCRIPTIONS = frozenset({"reward.json", "dropped.json", "set.json", "teacher.json"})


def check_place(path: Path, restarts: str | None = None) -> None:
    """Raises UserError if RunDir would refuse a new run at this path; creates nothing. `restarts`: see RunDir."""
    check_name(path)
    there = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    try:
        check_free(path, restarts)
    except OSError as error:
        raise UserError(f"--out {path}: can't be written: {error.strerror}") from error
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"--out {path}: can't be written: {there} is {'read-only' if there.is_dir() else 'a file'}")


def check_name(path: Path) -> None:
    """Raises UserError if the libraries that write models can't use the name."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise UserError(
            f"--out {str(path)!r}: the libraries that write models need a UTF-8 name, but this locale has "
            "another encoding. Choose an ASCII name, or set PYTHONUTF8=1"
        ) from None


def check_free(path: Path, restarts: str | None) -> None:
    """Raises UserError if the path holds anything but leftovers."""
    if path.exists() and not path.is_dir():
        raise UserError(f"--out {path} is not a folder")
    if path.exists() and leftovers(path, restarts) is None:
        if not (path / CONFIG).exists():
            raise UserError(f"--out {path} is not empty and holds no run; choose another --out")
        finished = any((path / name).exists() for name in ("summary.json", "manifest.json"))
        what = "a finished run: --resume shows its results" if finished else "a run: --resume continues it"
        raise UserError(f"--out {path} is not empty. It holds {what}; for a new run, choose another --out")


def leftovers(path: Path, restarts: str | None) -> list[Path] | None:
    """Returns the files of an interrupted start or of a run that can't be resumed; None if there are other files."""
    kept = read_environment(path)
    own = restarts is not None and kept["stage"] == restarts
    if (path / CONFIG).exists() and (not own or (path / "summary.json").exists()):
        return None
    names = {CONFIG, environment.FILE, *described(kept)} if own or "schema" in kept else set()
    parts = {part_of(path / name).name for name in (*names, CONFIG, environment.FILE, "summary.json")}
    if own:
        names |= {"reward.json", "problems.jsonl", "against", part_of(path / "problems.jsonl").name}
    found = [file for file in path.iterdir() if file.name not in BESIDE]
    return found if {file.name for file in found} <= names | parts else None


def described(about: Mapping[str, Any]) -> set[str]:
    """Returns the files that describe a run besides its configuration. Others that `about` may name are not a run's."""
    named = about.get("files")
    return {name for name in _DESCRIPTIONS if name in named} if isinstance(named, list) else set()


def path_to_resume(out: str | None, stage: str) -> Path:
    """Returns the directory of the run to resume: `out`, or the newest of the stage. Raises UserError."""
    path = newest_path(stage) if out is None else Path(out).expanduser()
    check_begun(path)
    if (other := read_environment(path)["stage"]) not in (None, stage):
        raise UserError(f"--resume: {path} is a run of r1lite {other}, not {stage}")
    return path


def numbered_checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """Returns the checkpoints in a folder sorted by step; other files in it belong to the user."""
    found = [(_CHECKPOINT.fullmatch(path.name), path) for path in folder.glob("step-*") if path.is_dir()]
    return sorted((int(match[1]), path) for match, path in found if match)


def check_begun(path: Path) -> None:
    """Raises UserError unless the folder holds a run that this version can continue."""
    if not (path / CONFIG).is_file():
        raise UserError(f"--resume: {path} holds no run yet (no {CONFIG}); use the same command without --resume")
    environment.check_schema(path)


def claim_path(stage: str, task: str, model: str) -> Path:
    """Creates a folder under runs/ with a new, dated name. Raises UserError."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{stage}-{task}-{Path(model).name}".replace(":", "_")
    for number in itertools.count(1):
        path = Path("runs") / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:  # another run started in the same second
            continue
        except OSError as error:
            raise UserError(f"{path}: can't be written: {error.strerror}; choose another folder with --out") from error
    raise AssertionError


def weights_folder(path: Path) -> Path:
    """Returns the folder of a launched run for weights that go to engines on other nodes."""
    return path / LAUNCH / "weights"


def newest_path(stage: str) -> Path:
    """Returns the run of this stage under runs/ that started last. Raises UserError if there is none."""
    runs = [
        path.parent for path in Path("runs").glob("*/config.yaml") if read_environment(path.parent)["stage"] == stage
    ]
    if not runs:
        raise UserError(f"--resume: there is no {stage} run under runs/; name it with --out DIR")

    def began(path: Path) -> tuple[float, float]:
        written = (path / environment.FILE).stat().st_mtime
        try:  # local time: later runs may have another offset
            return datetime.fromisoformat(read_environment(path)["started"]).timestamp(), written
        except (KeyError, TypeError, ValueError, OverflowError):  # of an older version, or damaged
            return written, written

    return max(runs, key=began)
