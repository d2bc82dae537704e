"""Loads models and data sets of the Hugging Face Hub at a revision, records it, and never runs their code."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path
from typing import Any

_REPOSITORY = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_REVISION = re.compile(r"[\w][\w./-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_loaded: dict[tuple[str, str, str | None], str | None] = {}  # (kind, repository, revision) -> commit, if known


def split(name: str) -> tuple[str, str | None]:
    """ "ID@REVISION" -> (ID, revision); anything else, and a path that exists -> (name, None)."""
    place, at, revision = name.rpartition("@")
    if not at or Path(name).expanduser().exists():
        return name, None
    if not _REPOSITORY.fullmatch(place) or not _REVISION.fullmatch(revision):
        return name, None
    return place, revision


def is_path(name: str) -> bool:
    """True for names that can only be a path, not an id on the Hub."""
    return name.startswith((".", "/", "~", "runs/")) or split(name)[0].count("/") > 1


def hub_id(name: str) -> str | None:
    """The id of a model named by "ID" or "ID@REVISION"; None for a folder and for names that the Hub can't have."""
    place = split(name)[0]
    return None if is_path(name) or Path(place).exists() or not _REPOSITORY.fullmatch(place) else place


def is_cached(name: str) -> bool:
    """True if a model of the Hub, "ID" or "ID@REVISION", is in the local cache."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    place, revision = split(name)
    try:
        return isinstance(try_to_load_from_cache(place, "config.json", revision=revision), str)
    except HFValidationError:  # no name that the Hub could have
        return False


def pinned(name: object) -> dict[str, Any]:
    """Arguments of `from_pretrained` for a model, tokenizer or configuration: "ID", "ID@REVISION" or a path.

    `trust_remote_code` is set explicitly: otherwise transformers asks on standard input, and a piped "y" would run
    foreign code.
    """
    place, revision = split(str(name))
    if not Path(place).expanduser().exists():
        _loaded.setdefault(("model", place, revision), None)
    more = {} if revision is None else {"revision": revision}
    return {"pretrained_model_name_or_path": place, "trust_remote_code": False, **more}


def load_rows(name: str, config: str | None = None, *, split_name: str) -> Any:
    """A split of a data set of the Hub, "ID" or "ID@REVISION". Raises the library's exceptions."""
    from datasets import load_dataset

    place, revision = split(name)
    found = load_dataset(*(part for part in (place, config) if part), split=split_name, **_said(revision))
    _loaded["dataset", place, revision] = _commit_in(getattr(found, "info", None))
    return found


def split_names(name: str) -> list[str]:
    """The splits of a data set of the Hub. Raises the library's exceptions."""
    from datasets import get_dataset_split_names

    place, revision = split(name)
    found: list[str] = get_dataset_split_names(place, **_said(revision))
    return found


def _said(revision: str | None) -> dict[str, Any]:
    """Arguments for loading data sets. Since version 4 the library has no code in data sets and rejects the option."""
    old = int(importlib.metadata.version("datasets").partition(".")[0]) < 4
    return {**({"trust_remote_code": False} if old else {}), **({"revision": revision} if revision else {})}


def _commit_in(info: Any) -> str | None:
    """The commit in the URLs that a data set was loaded from."""
    for address in getattr(info, "download_checksums", None) or ():
        if match := re.search(r"@([0-9a-f]{40})/", str(address)):
            return match[1]
    return None


def commits() -> list[dict[str, str | None]]:
    """Everything that this process loaded from the Hub: kind, repository, requested revision, and its commit."""
    return [
        {"kind": kind, "id": name, "revision": revision, "commit": commit or cached_commit(kind, name, revision)}
        for (kind, name, revision), commit in sorted(_loaded.items(), key=str)
    ]


def cached_commit(kind: str, name: str, revision: str | None = None) -> str | None:
    """The commit of a revision (None: main) in the local cache."""
    from huggingface_hub import constants

    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    folder = Path(constants.HF_HUB_CACHE) / f"{kind}s--{name.replace('/', '--')}"
    try:
        commit = (folder / "refs" / (revision or "main")).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.fullmatch(commit) else None
