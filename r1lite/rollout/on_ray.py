"""Engines in actors on the nodes of a Ray cluster, used as one engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torch import Tensor

from r1lite.distributed.nodes import Nodes
from r1lite.rollout import Call, CompletionEngine, Sampling
from verifiers import Completion


class RayEngine(CompletionEngine):
    """Sends each call to one of several engines that have loaded the same model; its weights never change.

    One engine answers a call, so its completions are identical to those of an engine in this process if the
    kernels and the number of threads are the same. Log-probabilities are not returned.

    Args:
        nodes: actors that answer (prompts, seeds, sampling) with groups of completions.
    """

    shares_weights, runs_aside = True, False

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        for _, groups in self.each([(prompts, seeds)], sampling):
            yield from enumerate(groups)

    def each(self, calls: Iterable[Call], sampling: Sampling) -> Iterator[tuple[int, list[list[Completion]]]]:
        """Answers several calls at once, see `SpreadEngine`; a call lost with its actor or node is repeated."""
        yield from self._nodes.each((prompts, seeds, sampling) for prompts, seeds in calls)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Does nothing: each engine has loaded the model itself."""

    def sleep(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Stops the actors."""
        self._nodes.close()
