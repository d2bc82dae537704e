"""Checkpoints: a model that `from_pretrained` opens, with the trainer's state beside it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from r1lite.errors import RunError
from r1lite.model.lora import has_adapter, merged_weights
from r1lite.run.files import new_folder, write_json

_MANIFEST, _STATE = "manifest.json", "trainer.pt"
_NAME = re.compile(r"step-(\d{6,})")


def save(folder: Path, step: int, *, model: Any, tokenizer: Any, state: dict[str, Any], keep: int) -> Path:
    """Writes `folder`/step-NNNNNN as one act and removes all but the `keep` newest.

    Args:
        step: steps that are done.
        state: what torch.save takes: optimizer, counters.

    Raises:
        RunError: it can't be written; the older checkpoints stand.
    """
    folder.mkdir(exist_ok=True)
    path = folder / f"step-{step:06d}"
    try:
        with new_folder(path) as aside:
            # An adapter is merged; its own weights are for the state.
            model.save_pretrained(aside, state_dict=dict(merged_weights(model)) if has_adapter(model) else None)
            tokenizer.save_pretrained(aside)
            torch.save(state, aside / _STATE)
            for file in aside.glob("*.safetensors"):  # the library makes them readable for their owner alone
                file.chmod((aside / "config.json").stat().st_mode)
            write_json(aside / _MANIFEST, {"step": step, "files": _hashes(aside)})
    except (OSError, RuntimeError, SafetensorError) as error:  # each library has its own word for a full disk
        free = shutil.disk_usage(folder).free / 1e6
        raise RunError(
            f"the checkpoint of step {step} can't be written to {path}: {error} ({free:,.1f} MB are free there)"
        ) from error
    others = [(number, other) for number, other in _numbered(folder) if number != step]
    later = [other for number, other in others if number > step]  # of a course of the run that was left
    earlier = [other for number, other in others if number < step]
    for old in [*later, *earlier[: max(0, len(earlier) - keep + 1)]]:
        shutil.rmtree(old)
    return path


def latest(folder: Path) -> tuple[tuple[int, Path] | None, list[Path]]:
    """The newest intact checkpoint as (steps done, path), and those that were passed over because they are damaged."""
    damaged = []
    for number, path in reversed(_numbered(folder)):
        if _is_intact(path):
            return (number, path), damaged
        damaged.append(path)
    return None, damaged


def load_state(path: Path) -> dict[str, Any]:
    """The trainer's state of a checkpoint."""
    state: dict[str, Any] = torch.load(path / _STATE, map_location="cpu", weights_only=True)
    return state


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints by step; other files in the folder are the user's."""
    found = [(_NAME.fullmatch(path.name), path) for path in folder.glob("step-*") if path.is_dir()]
    return sorted((int(match[1]), path) for match, path in found if match)


def _is_intact(path: Path) -> bool:
    """True if every file of the manifest is as it was written; what else lies there does not matter."""
    try:
        manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
        files: dict[str, str] = manifest["files"]
        return bool(files) and all(_hash(path / name) == digest for name, digest in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _hashes(folder: Path) -> dict[str, str]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != _MANIFEST)
    return {file.relative_to(folder).as_posix(): _hash(file) for file in files}


def _hash(file: Path) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
