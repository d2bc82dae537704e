"""Runs work so that it succeeds on every rank or fails on every rank."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from r1lite.distributed.world import World
from r1lite.errors import Interrupted, RunError, UserError

T = TypeVar("T")

# Exceptions that end a run in an orderly way. Any other ends its rank, and thereby the run.
_FAILURES = (UserError, RunError, Interrupted, OSError)


def everyone(world: World, work: Callable[[], T]) -> list[T]:
    """Does work without collectives on each rank. Returns the ranks' results, in the order of the ranks.

    Raises: on all ranks the exception of the first failed rank, with its number unless all failed in the same way.
    """
    found: list[T] = []
    failure: BaseException | None = None
    try:
        found.append(work())
    except _FAILURES as error:
        failure = error
    if world.size == 1:
        if failure is not None:
            raise failure
        return found
    parts = world.all_gather_object((failure, found))
    failures = [(rank, failed) for rank, (failed, _) in enumerate(parts) if failed is not None]
    if not failures:
        return [one for _, ones in parts for one in ones]
    rank, first = failures[0]
    alike = len(failures) == world.size and len({str(failed) for _, failed in failures}) == 1
    if failure is not None and alike:
        raise failure
    raise _of_rank(rank, first)


def together(world: World, work: Callable[[], T]) -> T:
    """Like `everyone`, but each rank returns only its own result."""
    found: list[T] = []
    everyone(world, lambda: found.append(work()))
    return found[0]


def shared_out(world: World, count: int, work: Callable[[range], Sequence[T]]) -> list[T]:
    """Does items 0 to `count` - 1; rank r does items r, r + size, r + 2 * size, ...

    Args:
        work: does the items with these numbers, without collectives, and returns a result for each.

    Returns: all results in order, on every rank.

    Raises: like `everyone`.
    """
    shares = everyone(world, lambda: work(range(world.rank, count, world.size)))
    return [shares[place % world.size][place // world.size] for place in range(count)]


def from_main(world: World, work: Callable[[], T]) -> T:
    """Does work only on the main rank. Every rank returns its result, or raises its exception."""
    found: list[T] = []
    failure: BaseException | None = None
    if world.is_main:
        try:
            found.append(work())
        except _FAILURES as error:
            failure = error
    if world.size > 1:
        known, found = world.broadcast_object((failure, found))
        failure = known if failure is None else failure
    if failure is not None:
        raise failure
    return found[0]


def streamed(
    world: World,
    work: Callable[[], Iterator[T]],
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[T]:
    """Yields the items of the main rank's iterator on every rank; each rank must consume all items.

    Args:
        work: makes the iterator, on the main rank.
        around: context in which the main rank waits for an item.

    Raises: the main rank's exception, on all ranks.
    """
    items: Iterator[T] | None = None
    while True:
        found: list[T] = []
        failure: BaseException | None = None
        if world.is_main:
            try:
                with around():
                    items = work() if items is None else items
                    found.extend(itertools.islice(items, 1))
            except (ValueError, *_FAILURES) as error:
                failure = error
        known, found = world.broadcast_object((failure, found))
        if (failure := known if failure is None else failure) is not None:
            raise failure
        if not found:
            return
        yield found[0]


def _of_rank(rank: int, error: BaseException) -> BaseException:
    """The error with the rank in its message."""
    if isinstance(error, UserError | RunError):
        return type(error)(f"rank {rank}: {error}")
    if isinstance(error, OSError):
        return RunError(f"rank {rank}: {error.filename or ''}: {error.strerror or error}")
    return error


def hands(costs: Sequence[int], count: int) -> list[list[int]]:
    """Deals items to `count` hands of nearly equal cost: costliest items first, each to the hand with the lowest cost.

    Returns the indexes of the items in each hand, in increasing order. The result depends only on the costs, so it is
    the same on every rank.
    """
    dealt: list[list[int]] = [[] for _ in range(count)]
    held = [0] * count
    for item in sorted(range(len(costs)), key=lambda item: (-costs[item], item)):
        least = min(range(count), key=lambda hand: (held[hand], hand))
        dealt[least].append(item)
        held[least] += costs[item]
    return [sorted(hand) for hand in dealt]
