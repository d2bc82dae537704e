"""When a run counts as hung."""

from __future__ import annotations

from pydantic import Field

from r1lite.config.base import Section


class WatchdogConfig(Section):
    """Seconds without any progress after which a run ends with the stacks of its threads; 0 = never."""

    stall_load_s: float = Field(3600.0, ge=0)
    """The run ends with its threads' stacks when loading model and problems takes longer; 0: never."""
    stall_rollout_s: float = Field(3600.0, ge=0)
    """Likewise for sampling the completions of one step, or a piece of an evaluation."""
    stall_score_s: float = Field(1800.0, ge=0)
    """Likewise for scoring one step's completions."""
    stall_train_s: float = Field(3600.0, ge=0)
    """Likewise for one step's updates."""
    stall_save_s: float = Field(1800.0, ge=0)
    """Likewise for writing a checkpoint or a step's records."""
    stall_rank_s: float = Field(120.0, ge=0)
    """With several ranks: the run ends when one of them gives no sign of life for so long; 0: never."""
