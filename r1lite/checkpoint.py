"""Checkpoints: a model that `from_pretrained` opens, with the trainer's state beside it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from r1lite.errors import RunError
from r1lite.files import new_folder, write_json

_MANIFEST, _STATE = "manifest.json", "trainer.pt"


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
            model.save_pretrained(aside)
            tokenizer.save_pretrained(aside)
            torch.save(state, aside / _STATE)
            write_json(aside / _MANIFEST, {"step": step, "files": _hashes(aside)})
    except (OSError, RuntimeError, SafetensorError) as error:  # each library has its own word for a full disk
        raise RunError(f"the checkpoint of step {step} can't be written to {path}: {error}") from error
    for old in sorted(folder.glob("step-*"))[:-keep]:
        shutil.rmtree(old)
    return path


def latest(folder: Path) -> tuple[int, Path] | None:
    """The newest complete checkpoint: (steps done, path). One whose files don't match its manifest is passed over."""
    for path in sorted(folder.glob("step-*"), reverse=True):
        try:
            manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
            if manifest["files"] == _hashes(path):
                return int(manifest["step"]), path
        except (OSError, ValueError, KeyError):
            continue
    return None


def load_state(path: Path) -> dict[str, Any]:
    """The trainer's state of a checkpoint."""
    state: dict[str, Any] = torch.load(path / _STATE, map_location="cpu", weights_only=True)
    return state


def _hashes(folder: Path) -> dict[str, str]:
    found = {}
    for file in sorted(folder.iterdir()):
        if file.name != _MANIFEST:
            with open(file, "rb") as opened:
                found[file.name] = hashlib.file_digest(opened, "sha256").hexdigest()
    return found
