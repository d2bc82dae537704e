"""`r1lite dpo`: trains on pairs of completions, such as those of `r1lite reject`."""

from __future__ import annotations

from typing import Any

from r1lite.config.supervised import DPOConfig
from r1lite.run.signals import StopSignal
from r1lite.supervised.loop import RowOrder, make_learner
from r1lite.supervised.preferences import PreferenceTuning, load_pairs
from r1lite.training.on_problems import run_training
from r1lite.training.setup import Setup


def run(config: DPOConfig) -> dict[str, Any]:
    """Trains a model and evaluates it before and after; see `training.run_training`."""
    return run_training(config, _make_loop, load_pairs)


def _make_loop(config: DPOConfig, setup: Setup, stop: StopSignal) -> PreferenceTuning:
    order = RowOrder.of(config, len(setup.training_data) // 2)
    learner = make_learner(config, setup, order, keeps_reference=True)
    return PreferenceTuning(config, setup.training_data, learner, order, setup.engine)
