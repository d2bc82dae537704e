"""A finished set on the Hugging Face Hub. Only ever when asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from r1lite.errors import RunError

# Not the run's own files: a configuration may name private places.
_UPLOADED = ["README.md", "manifest.json", "train.*", "rejected.jsonl", "pairs.jsonl", "problems.jsonl", "reward.json"]


def push(folder: Path, repository: str, api: Any = None) -> str:
    """Uploads the set; a repository that does not exist is made, and is private.

    Args:
        api: a `huggingface_hub.HfApi`; by default one with the user's own login.

    Returns: where it lies now.

    Raises: RunError if the Hub refuses or can't be reached; the set on disk is whole.
    """
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    api = huggingface_hub.HfApi() if api is None else api
    try:
        api.create_repo(repository, repo_type="dataset", private=True, exist_ok=True)
        done = api.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=str(folder),
            allow_patterns=_UPLOADED,
            commit_message="A set curated by r1lite",
        )
    except (OSError, HfHubHTTPError, HFValidationError, huggingface_hub.errors.OfflineModeIsEnabled) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise RunError(f"--push-to-hub {repository}: {first}. The set itself is whole, in {folder}") from error
    return str(getattr(done, "commit_url", "") or repository)
