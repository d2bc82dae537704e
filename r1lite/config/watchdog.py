"""Time limits after which a run counts as hung."""

from __future__ import annotations

from pydantic import Field

from r1lite.config.base import Section


class WatchdogConfig(Section):
    """Seconds without progress after which a run ends and prints the stacks of its threads; 0: never."""

    stall_load_s: float = Field(3600.0, ge=0)
    """Time limit in seconds for loading the model and the problems. When it is exceeded, the run ends and prints the
    stacks of its threads. 0: no limit."""
    stall_rollout_s: float = Field(3600.0, ge=0)
    """The same for sampling the completions of one step, or one part of an evaluation."""
    stall_score_s: float = Field(1800.0, ge=0)
    """The same for scoring the completions of one step."""
    stall_train_s: float = Field(3600.0, ge=0)
    """The same for the updates of one step."""
    stall_save_s: float = Field(1800.0, ge=0)
    """The same for writing a checkpoint or the records of a step."""
    stall_rank_s: float = Field(120.0, ge=0)
    """With several ranks: seconds without a heartbeat of a rank after which the run ends; 0: never."""
