"""Items with names: "x = 1, y = 2" against "(1, 2)", whatever order they stand in."""

from __future__ import annotations

from verifiers.mathexpr.answers import Answer

Items = tuple[Answer, ...]


def names(items: Items) -> list[str]:
    """The names of items that all have one, each its own; [] for any others."""
    found = [item.name.casefold() for item in items]
    return found if all(found) and len(set(found)) == len(found) > 1 else []


def arrangements(wanted: Items, items: Items) -> list[tuple[Items, Items]] | None:
    """The orders in which the two may stand against each other; None where names do not order them."""
    if len(wanted) != len(items):
        return None
    ours, theirs = names(wanted), names(items)
    if ours and theirs:
        return [(wanted, tuple(items[theirs.index(name)] for name in ours))] if set(ours) == set(theirs) else None
    if ours and not any(item.name for item in items) and not _roots(ours):
        return [(_by_coordinate(wanted, ours), items)]
    if theirs and not any(item.name for item in wanted) and not _roots(theirs):
        if set(theirs) <= {"x", "y", "z"}:
            return [(wanted, _by_coordinate(items, theirs))]
        return [(wanted, items), (wanted, tuple(sorted(items, key=lambda item: item.name)))]
    return None


def _by_coordinate(items: Items, names: list[str]) -> Items:
    return tuple(sorted(items, key=lambda item: item.name)) if set(names) <= {"x", "y", "z"} else items


def _roots(names: list[str]) -> bool:
    """x_1 and x_2 number the solutions of one equation: their order means nothing."""
    return len({name.partition("_")[0] for name in names}) == 1 and names[0].partition("_")[0] in ("x", "z", "t")
