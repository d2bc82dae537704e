"""Engines in actors on the nodes of a Ray cluster, asked as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torch import Tensor

from r1lite.distributed.nodes import Nodes
from r1lite.rollout import Call, CompletionEngine, Sampling
from verifiers import Completion


class RayEngine(CompletionEngine):
    """Hands each call to one of some engines that have loaded the same model; its weights never change.

    A call is answered by one engine, so its completions are those of an engine in this process, bit for bit, where the
    kernels and the number of threads are the same. Log-probabilities are left out.

    Args:
        nodes: actors that answer (prompts, seeds, sampling) by groups of completions.
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
        """Several calls at once, see `SpreadEngine`; a call that is lost with its actor or node is made again."""
        yield from self._nodes.each((prompts, seeds, sampling) for prompts, seeds in calls)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Nothing to do: each engine has the model's own."""

    def sleep(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Ends the actors."""
        self._nodes.close()
