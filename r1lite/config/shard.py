"""How several ranks hold a model that is trained."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from r1lite.config.base import Section


class ShardConfig(Section):
    """Models whole on each rank, or in parts."""

    shard: Literal["none", "grad", "full"] = "none"
    """With several ranks (torchrun), none: each holds the whole model, and gradients are added up; full: each holds its
    part of weights, gradients and optimizer, and a layer's weights are put together when it is their turn (FSDP2);
    grad: likewise, but they stay together from the forward to the backward pass."""
    shard_copies: int = Field(1, ge=1)
    """With --shard full or grad: so many copies of the model among the ranks, as one a machine (HSDP). Ranks of one
    copy, which follow one another, exchange weights; copies exchange gradients alone."""

    def in_parts(self, ranks: int) -> bool:
        """True if so many ranks hold models in parts."""
        return ranks > 1 and self.shard != "none"

    @model_validator(mode="after")
    def _copies_of_parts(self) -> ShardConfig:
        if self.shard_copies > 1 and self.shard == "none":
            raise ValueError(
                f"--shard-copies {self.shard_copies} with --shard none: each rank holds a copy by itself; say --shard "
                "full"
            )
        return self
