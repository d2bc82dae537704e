"""Uploads a finished set to the Hugging Face Hub. Called only on the user's request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from r1lite.hub import upload

# Without the run's own files: a configuration may name private paths.
_UPLOADED = ("README.md", "manifest.json", "train.*", "rejected.jsonl", "pairs.jsonl", "problems.jsonl", "reward.json")


def push(folder: Path, repository: str, api: Any = None) -> str:
    """Uploads the set; see `r1lite.hub.upload.push`."""
    return upload.push(folder, repository, kind="dataset", files=_UPLOADED, what="set", api=api)
