"""A folder on the Hugging Face Hub. Only ever when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from r1lite.errors import RunError

# Of a checkpoint: what `from_pretrained` opens, and its card. The trainer's state stays, and so do files of the user's.
MODEL_FILES = (
    *("README.md", "config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "merges.txt", "chat_template.jinja", "additional_chat_templates/*.jinja"),
)


def push(
    folder: Path,
    repository: str,
    *,
    kind: Literal["model", "dataset"],
    files: Sequence[str],
    what: str,
    api: Any = None,
) -> str:
    """Uploads files of a folder; a repository that does not exist is made, and is private.

    Args:
        files: patterns of their names.
        what: is uploaded, for messages: "set", "model".
        api: a `huggingface_hub.HfApi`; by default one with the user's own login.

    Returns: where it lies now.

    Raises: RunError if the Hub refuses or can't be reached; what is on the disk is whole.
    """
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

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
    except (OSError, HfHubHTTPError, HFValidationError, OfflineModeIsEnabled) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise RunError(f"--push-to-hub {repository}: {first}. The {what} itself is whole, in {folder}") from error
    return str(getattr(done, "commit_url", "") or repository)
