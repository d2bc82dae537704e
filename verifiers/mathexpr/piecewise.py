"""Compares functions by cases: values with their conditions, in any order."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from verifiers.mathexpr import regions
from verifiers.mathexpr.ladder import equal
from verifiers.mathexpr.limits import MAX_ITEMS, Budget, Unreadable
from verifiers.mathexpr.nodes import Node, symbol
from verifiers.mathexpr.regions import Pieces

if TYPE_CHECKING:
    from verifiers.mathexpr.parser import Parser

OTHERWISE = symbol("otherwise")
_LEADS = frozenset(["if", "for", "when", "where", "as", "and"])
_ELSE = frozenset(["otherwise", "else", "elsewhere"])


def condition(parser: Parser) -> Node:
    """Parses `\\text{if } x > 0`, `x < 0 \\text{ or } x > 1`, `\\text{otherwise}`. Raises Unreadable."""
    relations: list[Node] = []
    joint = "and"
    while True:
        while parser.peek().kind in ("text", "word") and parser.peek().value.strip(",.").lower() in _LEADS | _ELSE:
            if parser.take().value.strip(",.").lower() in _ELSE:
                return OTHERWISE
        relations.append(parser.relation())
        if not parser.is_op("and", "or") or len(relations) > MAX_ITEMS:
            break
        joint = parser.take().value
    return relations[0] if len(relations) == 1 else Node("when", tuple(relations), joint)


def same_cases(first: Node, second: Node, budget: Budget) -> bool:
    """Returns whether both have equal values on the same parts of the line. Raises TooHard."""
    try:
        ours, theirs = _rows(first), _rows(second)
    except (Unreadable, regions.Unsolved):
        return False
    if len(ours) != len(theirs) or len({row[0] for row in (*ours, *theirs)}) != 1:
        return False
    left = list(theirs)
    for _, where, value in ours:
        match = next((row for row in left if regions.same_region(where, row[1], budget)), None)
        if match is None or not equal(value, match[2], budget):
            return False
        left.remove(match)
    return True


def _rows(node: Node) -> list[tuple[str, Pieces, Node]]:
    """Returns (variable, region, value) of every case. Raises Unreadable, Unsolved."""
    if node.value != 2:
        raise Unreadable("values without conditions")
    pairs = list(zip(node.args[::2], node.args[1::2], strict=True))
    known = [(value, *_where(when)) for value, when in pairs if when != OTHERWISE]
    if not known or len(pairs) - len(known) > 1:
        raise Unreadable("cases without conditions")
    rows = [(name, where, value) for value, name, where in known]
    rest = functools.reduce(regions.intersect, (regions.complement(where) for _, where, _ in rows))
    return rows + [(rows[0][0], rest, value) for value, when in pairs if when == OTHERWISE]


def _where(when: Node) -> tuple[str, Pieces]:
    if when.op != "when":
        return regions.solved(when)
    parts = [regions.solved(part) for part in when.args]
    if len({name for name, _ in parts}) != 1:
        raise regions.Unsolved
    if when.value == "or":
        return parts[0][0], tuple(piece for _, pieces in parts for piece in pieces)
    return parts[0][0], functools.reduce(regions.intersect, (pieces for _, pieces in parts))
