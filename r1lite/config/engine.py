"""Who samples the completions."""

from __future__ import annotations

from pydantic import Field

from r1lite.config.base import RunConfig


class EngineConfig(RunConfig):
    """The engine that samples, and how it is reached."""

    rollout_rows: int = Field(128, ge=1)
    """Completions sampled at once by the transformers engine."""
