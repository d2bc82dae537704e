"""Settings of how several ranks hold a model in training."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from r1lite.config.base import Section


class ShardConfig(Section):
    """Replicated or sharded models."""

    shard: Literal["none", "grad", "full"] = "none"
    """With several ranks (torchrun). none: each rank holds the whole model, and gradients are summed; full: each rank
    holds a shard of weights, gradients and optimizer state, and a layer's weights are gathered when they are needed
    (FSDP2); grad: like full, but weights stay gathered from the forward to the backward pass."""
    shard_copies: int = Field(1, ge=1)
    """With --shard full or grad: number of copies of the model among the ranks, for example one per machine (HSDP). A
    copy is held by consecutive ranks, which exchange weights; copies exchange only gradients."""

    def in_parts(self, ranks: int) -> bool:
        """True if this many ranks hold models in parts."""
        return ranks > 1 and self.shard != "none"

    @model_validator(mode="after")
    def _copies_of_parts(self) -> ShardConfig:
        if self.shard_copies > 1 and self.shard == "none":
            raise ValueError(
                f"--shard-copies {self.shard_copies} with --shard none: each rank already holds a whole copy; use "
                "--shard full"
            )
        return self
