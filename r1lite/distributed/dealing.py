"""Who does which part of the work."""

from __future__ import annotations

from collections.abc import Sequence


def hands(costs: Sequence[int], count: int) -> list[list[int]]:
    """Numbers of items in `count` hands of nearly equal cost: the costliest first, each to the hand that has the least.

    Every rank comes to the same result, since costs are all that decides. A hand is in the order of its items.
    """
    dealt: list[list[int]] = [[] for _ in range(count)]
    held = [0] * count
    for item in sorted(range(len(costs)), key=lambda item: (-costs[item], item)):
        least = min(range(count), key=lambda hand: (held[hand], hand))
        dealt[least].append(item)
        held[least] += costs[item]
    return [sorted(hand) for hand in dealt]
