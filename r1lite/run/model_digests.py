"""Digests of the models and files that a run or a pipeline reads, so that it notices a change when it is resumed."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from r1lite.hub.revisions import cached_commit, split
from r1lite.nano import model_place

WEIGHTS = ("*.safetensors", "*.bin")
_TEXTS = (  # what turns text into tokens and back, and the shape of the model
    "config.json", "generation_config.json", "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*",
    "merges.txt", "*.model", "*.tiktoken", "tekken.json", "chat_template*",
)  # fmt: skip
_SETTINGS = ("model", "teacher", "critic_model", "tokenizer")  # that name a model


def model_digests(config: Any) -> dict[str, dict[str, str | None]]:
    """Returns setting -> {"weights": digest, "tokenizer": digest} for each model that a configuration names."""
    named = {key: getattr(config, key, None) for key in _SETTINGS}
    return {
        key: {"weights": weights_digest(name), "tokenizer": _tokenizer_digest(name)}
        for key, name in named.items()
        if isinstance(name, str) and (_folder(name).is_dir() or _hub_commit(name))
    }


def changed_model(before: Mapping[str, Any], now: Mapping[str, Mapping[str, str | None]]) -> str:
    """Returns "the weights of --model" or the like for the first digest that differs; "" if none does.

    Models that one side lacks are not compared.
    """
    for key, digests in now.items():
        kept = before.get(key)
        for part, digest in digests.items():
            if isinstance(kept, Mapping) and kept.get(part) not in (None, digest) and digest is not None:
                what = "configuration or tokenizer" if part == "tokenizer" else part
                return f"the {what} of --{key.replace('_', '-')}"
    return ""


def weights_digest(model: str) -> str | None:
    """Returns "sha256:..." over the weights of a folder (or of nano), "hub:COMMIT" of a cached Hub model, or None."""
    folder = _folder(model)
    return files_digest(folder, WEIGHTS) if folder.is_dir() else _hub_commit(model)


def _tokenizer_digest(model: str) -> str | None:
    folder = _folder(model)
    return files_digest(folder, _TEXTS) if folder.is_dir() else _hub_commit(model)


def _folder(model: str) -> Path:
    return Path(model_place(model)).expanduser()


def files_digest(folder: Path, patterns: Iterable[str]) -> str | None:
    """Returns "sha256:..." over a folder's files with such names; None if there are none."""
    files = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
    seen = tuple((path, (stat := path.stat()).st_size, stat.st_mtime_ns) for path in files)
    return _digest_of(seen) if files else None


@functools.lru_cache  # a stage may also name its model's digest in what it makes
def _digest_of(files: tuple[tuple[Path, int, int], ...]) -> str:
    """Returns the digest of files, given with their size and time of change."""
    digest = hashlib.sha256()
    for path, _, _ in files:
        digest.update(path.name.encode())
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return f"sha256:{digest.hexdigest()}"


def _hub_commit(model: str) -> str | None:
    try:
        commit = cached_commit("model", *split(model))
    except ImportError:  # huggingface_hub is not installed
        return None
    return f"hub:{commit}" if commit else None
