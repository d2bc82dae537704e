"""Engines on the nodes of a Ray cluster, for stages that sample from a fixed model."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from r1lite.config import OnRayConfig
from r1lite.distributed.nodes import Nodes
from r1lite.errors import UserError
from r1lite.rollout import Call, Sampling
from r1lite.rollout.build import Started
from r1lite.rollout.on_ray import RayEngine
from verifiers import Completion


def start_on_nodes(config: OnRayConfig) -> Started:
    """Starts the engines, each with its own copy of the model.

    Raises:
        UserError: the cluster has no room for them, they can't be started, or their versions differ.
        RunError: the cluster does not answer.
    """
    here = config.model_copy(update={"on": "local"})
    nodes = Nodes(functools.partial(EngineNode, here), config.on, config.engines)
    try:
        told = sorted(set(nodes.start()))
        if len(told) > 1:
            raise UserError(
                f"--on: the nodes have different versions of the engine: {'; '.join(told)}; install the same one"
            )
    except BaseException:
        nodes.close()
        raise
    version, line = told[0].split(", ", 1)
    return Started(RayEngine(nodes), f"{line} on {nodes.describe()}", version, name=config.engine)


class EngineNode:
    """An engine in an actor, with its own copy of the model."""

    def __init__(self, config: OnRayConfig) -> None:
        from r1lite.training.loading import load_model
        from r1lite.training.setup import open_engine, set_up_libraries

        set_up_libraries(config)
        model, tokenizer = load_model(config)
        self._engine, started = open_engine(config, model, tokenizer)
        self.told: Any = f"{started.version}, {started.line}"

    def __call__(self, job: tuple[*Call, Sampling]) -> list[list[Completion]]:
        """Returns groups of completions, without log-probabilities."""
        return [
            [dataclasses.replace(completion, logprobs=()) for completion in group]
            for group in self._engine.generate(*job)
        ]
