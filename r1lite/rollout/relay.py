"""Servers of a run with several ranks: the main rank talks to them on behalf of all ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from torch import Tensor

from r1lite.distributed.together import from_main, streamed
from r1lite.distributed.world import World
from r1lite.model.lora import Adapter
from r1lite.rollout import RolloutEngine, Sampling
from r1lite.rollout.fleet import ServerEngine
from verifiers import Completion

T = TypeVar("T")

Named = Iterable[tuple[str, Tensor]]


def of_weights(world: World, weights: Named, work: Callable[[Named], T]) -> T:
    """Runs `work` on the main rank with the weights; every rank returns its result, or raises its exception.

    Every rank iterates over all weights, because all ranks gather each sharded weight together; ranks other than the
    main one keep at most one of them at a time.
    """
    rest = iter(weights)

    def through() -> T:
        try:
            return work(rest)
        finally:
            _drain(rest)

    if not world.is_main:
        _drain(rest)
    return from_main(world, through)


class RelayedEngine(RolloutEngine):
    """Makes the main rank's servers an engine of every rank. All ranks call each method but `close`, in the same order.

    Args:
        servers: the main rank's servers; None on other ranks.
    """

    shares_weights, runs_aside = False, True

    def __init__(self, servers: ServerEngine | None, world: World) -> None:
        self._servers, self.world = servers, world
        # Entered by the main rank while it waits for completions; an exception in it ends the call on all ranks.
        self.around: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def servers(self) -> ServerEngine:
        """The main rank's servers; not available on other ranks."""
        assert self._servers is not None
        return self._servers

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        """Each rank requests its own groups, perhaps none, and gets them as they finish; `sampling` must be the same
        on all ranks. Every rank must consume the iterator to its end."""
        requests = self.world.all_gather_object(([list(prompt) for prompt in prompts], [list(row) for row in seeds]))
        # The order in which a single rank would request them, because the ranks share the prompts in turns.
        order = sorted((i, rank) for rank, (asked, _) in enumerate(requests) for i in range(len(asked)))

        def work() -> Iterator[tuple[int, list[Completion]]]:
            return self.servers.stream(
                [requests[rank][0][i] for i, rank in order],
                [requests[rank][1][i] for i, rank in order],
                sampling,
            )

        for number, group in streamed(self.world, work, self.around):
            i, rank = order[number]
            if rank == self.world.rank:
                yield i, group

    def load_weights(self, weights: Named, *, version: int) -> None:
        of_weights(self.world, weights, lambda whole: self.servers.load_weights(whole, version=version))

    @property
    def takes_parts(self) -> bool:
        """As `ServerEngine.takes_parts`."""
        return from_main(self.world, lambda: self.servers.takes_parts)

    @property
    def no_adapters(self) -> str:
        """As `AdapterEngine.no_adapters`."""
        return from_main(self.world, lambda: self.servers.no_adapters)

    @property
    def base_loads(self) -> int:
        """As `AdapterEngine.base_loads`."""
        return from_main(self.world, lambda: self.servers.base_loads)

    def load_adapter(self, adapter: Adapter, *, version: int, base_too: bool = False) -> None:
        """As `AdapterEngine.load_adapter`."""
        from_main(self.world, lambda: self.servers.load_adapter(adapter, version=version, base_too=base_too))

    def forget(self) -> None:
        """Empties the prefix caches."""
        from_main(self.world, lambda: self.servers.forget())

    def weight_digests(self) -> list[tuple[str, dict[str, str]]]:
        """As `ServerEngine.weight_digests`."""
        return from_main(self.world, lambda: self.servers.weight_digests())

    @property
    def urls(self) -> list[str]:
        """The live servers."""
        return from_main(self.world, lambda: self.servers.urls)

    def at(self, url: str) -> AbstractContextManager[None]:
        """Inside the context, this server answers all requests, as long as it lives."""
        return self.servers.at(url) if self.world.is_main else contextlib.nullcontext()

    @property
    def bytes_given(self) -> int:
        """Bytes of weights sent; 0 on ranks that send none."""
        return 0 if self._servers is None else self._servers.bytes_given

    def sleep(self) -> None:
        """Does nothing: the servers have their own devices."""

    def close(self) -> None:
        if self._servers is not None:
            self._servers.close()


def _drain(weights: Iterator[tuple[str, Tensor]]) -> None:
    for _ in weights:
        pass
