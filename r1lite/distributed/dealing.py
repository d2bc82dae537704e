"""Distributes work over ranks."""

from __future__ import annotations

from collections.abc import Sequence


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
