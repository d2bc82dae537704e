"""Pairs the items of two answers by their names: "x = 1, y = 2" with "(1, 2)" or with "y = 2, x = 1"."""

from __future__ import annotations

from verifiers.mathexpr.answers import Answer

Items = tuple[Answer, ...]


def names(items: Items) -> list[str]:
    """Returns the names of the items if all have one and no two the same, else []."""
    lowered = [item.name.casefold() for item in items]
    return lowered if all(lowered) and len(set(lowered)) == len(lowered) > 1 else []


def arrangements(wanted: Items, items: Items) -> list[tuple[Items, Items]] | None:
    """Returns the (wanted, items) pairs of orders to compare; None if names do not determine an order."""
    if len(wanted) != len(items):
        return None
    ours, theirs = names(wanted), names(items)
    if ours and theirs:
        return [(wanted, tuple(items[theirs.index(name)] for name in ours))] if set(ours) == set(theirs) else None
    if ours and not any(item.name for item in items) and not roots(ours):
        return [(_by_coordinate(wanted, ours), items)]
    if theirs and not any(item.name for item in wanted) and not roots(theirs):
        if set(theirs) <= {"x", "y", "z"}:
            return [(wanted, _by_coordinate(items, theirs))]
        return [(wanted, items), (wanted, tuple(sorted(items, key=lambda item: item.name)))]
    return None


def _by_coordinate(items: Items, names: list[str]) -> Items:
    return tuple(sorted(items, key=lambda item: item.name)) if set(names) <= {"x", "y", "z"} else items


def roots(names: list[str]) -> bool:
    """Returns whether the names number the solutions of one equation (x_1, x_2), whose order is free."""
    letters = {name.partition("_")[0] for name in names}
    return len(letters) == 1 and letters <= {"x", "z", "t", "lambda"}
