"""Engines on the nodes of a Ray cluster, for stages that sample from a fixed model."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torch import Tensor

from r1lite.config import OnRayConfig
from r1lite.distributed.nodes import Nodes
from r1lite.errors import UserError
from r1lite.rollout import Call, CompletionEngine, Sampling
from r1lite.rollout.build import Started
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


class RayEngine(CompletionEngine):
    """Sends each call to one of several engines that have loaded the same model; its weights never change.

    One engine answers a call, so its completions are identical to those of an engine in this process if the
    kernels and the number of threads are the same. Log-probabilities are not returned.

    Args:
        nodes: actors that answer (prompts, seeds, sampling) with groups of completions.
    """

    shares_weights, runs_aside, spreads = True, False, True

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        for _, groups in self.each([(prompts, seeds)], sampling):
            yield from enumerate(groups)

    def each(self, calls: Iterable[Call], sampling: Sampling) -> Iterator[tuple[int, list[list[Completion]]]]:
        """Answers several calls at once, see `CompletionEngine`; a call lost with its actor or node is repeated."""
        yield from self._nodes.each((prompts, seeds, sampling) for prompts, seeds in calls)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Does nothing: each engine has loaded the model itself."""

    def sleep(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Stops the actors."""
        self._nodes.close()
