"""The servers of a run with several ranks: the main rank speaks to them, for all."""

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
    """What the main rank makes of the weights; every rank returns it, or raises what the main rank raised.

    Every rank goes through the weights to their end, since parts of a weight are put together by all at once: none but
    the main one keeps more than one of them.
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
    """The main rank's servers as an engine of every rank. Each method but `close` is called by all, in the same order.

    Args:
        servers: of the main rank; None on the others.
    """

    shares_weights, runs_aside = False, True

    def __init__(self, servers: ServerEngine | None, world: World) -> None:
        self._servers, self.world = servers, world
        # Entered by the main rank while it waits for completions; what this raises ends the call on all ranks.
        self.around: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def servers(self) -> ServerEngine:
        """The main rank's; nobody else asks."""
        assert self._servers is not None
        return self._servers

    def stream(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Completion]]]:
        """Each rank asks for its own groups, perhaps for none, and gets them as they are finished; `sampling` is the
        same on all. Every rank takes what comes to its end."""
        requests = self.world.all_gather_object(([list(prompt) for prompt in prompts], [list(row) for row in seeds]))
        # One rank alone would ask in this order, where each rank has every so many prompts.
        places = sorted((place, rank) for rank, (asked, _) in enumerate(requests) for place in range(len(asked)))

        def work() -> Iterator[tuple[int, list[Completion]]]:
            return self.servers.stream(
                [requests[rank][0][place] for place, rank in places],
                [requests[rank][1][place] for place, rank in places],
                sampling,
            )

        for number, group in streamed(self.world, work, self.around):
            place, rank = places[number]
            if rank == self.world.rank:
                yield place, group

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
        """The servers that live."""
        return from_main(self.world, lambda: self.servers.urls)

    def at(self, url: str) -> AbstractContextManager[None]:
        """Inside, that server does everything, as long as it lives."""
        return self.servers.at(url) if self.world.is_main else contextlib.nullcontext()

    @property
    def bytes_given(self) -> int:
        """Of weights in files; 0 on ranks that write none."""
        return 0 if self._servers is None else self._servers.bytes_given

    def sleep(self) -> None:
        """Nothing: the servers' devices are their own."""

    def close(self) -> None:
        if self._servers is not None:
            self._servers.close()


def _drain(weights: Iterator[tuple[str, Tensor]]) -> None:
    for _ in weights:
        pass
