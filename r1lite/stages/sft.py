"""`r1lite sft`: fine-tunes a model on prompts with completions."""

from __future__ import annotations

from typing import Any

from r1lite.config import SFTConfig
from r1lite.run.signals import StopSignal
from r1lite.supervised.loop import FineTuning, RowOrder, make_learner
from r1lite.supervised.sft.encode import load_set
from r1lite.training.on_problems import run_training
from r1lite.training.setup import Setup


def run(config: SFTConfig) -> dict[str, Any]:
    """Trains a model and evaluates it before and after; see `training.run_training`."""
    return run_training(config, _make_loop, load_set)


def _make_loop(config: SFTConfig, setup: Setup, stop: StopSignal) -> FineTuning:
    order = RowOrder.of(config, len(setup.training_data))
    return FineTuning(config, setup.training_data, make_learner(config, setup, order), order, setup.engine)
