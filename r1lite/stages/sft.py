"""`r1lite sft`: fine-tuning on prompts with completions."""

from __future__ import annotations

from typing import Any

from r1lite.config import SFTConfig
from r1lite.run.signals import StopSignal
from r1lite.setup import Setup
from r1lite.sft.encode import load_set
from r1lite.supervised import FineTuning, RowOrder, make_learner
from r1lite.trainer.training import conduct


def run(config: SFTConfig) -> dict[str, Any]:
    """Trains, and measures before and after; everything lies in the run directory. See `training.conduct`."""
    return conduct(config, _course, load_set)


def _course(config: SFTConfig, setup: Setup, stop: StopSignal) -> FineTuning:
    order = RowOrder.of(config, len(setup.material))
    return FineTuning(config, setup.material, make_learner(config, setup, order.steps), order)
