"""Uploads a folder to the Hugging Face Hub. Called only on the user's request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from r1lite.errors import RunError, first_line

# Files of a checkpoint that are uploaded: those of `from_pretrained`, and the card. Not the trainer's state.
MODEL_FILES = (
    *("README.md", "config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json"),
    "adapter/adapter_config.json",  # the patterns above name its tensors
    *("vocab.json", "merges.txt", "chat_template.jinja", "additional_chat_templates/*.jinja"),
)
# Of a curated set, without the run's own files: a configuration may name private paths.
SET_FILES = ("README.md", "manifest.json", "train.*", "rejected.jsonl", "pairs.jsonl", "problems.jsonl", "reward.json")


def push(
    folder: Path,
    repository: str,
    *,
    kind: Literal["model", "dataset"],
    files: Sequence[str],
    what: str,
    api: Any = None,
) -> str:
    """Uploads files of a folder; a repository that doesn't exist is created as a private one.

    Args:
        files: patterns of the file names.
        what: kind of the upload for messages: "set", "model".
        api: a `huggingface_hub.HfApi`; by default one with the user's own login.

    Returns: the URL of the upload.

    Raises: RunError if the Hub rejects the upload or is unreachable; the local folder is unaffected.
    """
    import huggingface_hub

    api = huggingface_hub.HfApi() if api is None else api
    try:
        api.create_repo(repository, repo_type=kind, private=True, exist_ok=True)
        done = api.upload_folder(
            repo_id=repository,
            repo_type=kind,
            folder_path=str(folder),
            allow_patterns=list(files),
            commit_message=f"A {what} made by r1lite",
        )
    except Exception as error:  # the library passes on any exception of its transport
        first = first_line(error, type(error).__name__)
        raise RunError(f"--push-to-hub {repository}: {first}. The {what} itself is complete, in {folder}") from error
    return str(getattr(done, "commit_url", "") or repository)
