"""Reads vectors in terms of unit vectors: 3i + 2j, 3\\mathbf{i} - \\hat{j} + k."""

from __future__ import annotations

from verifiers.mathexpr.nodes import Node, number

_AXES = {"i": 0, "j": 1, "k": 2}


def components(node: Node) -> tuple[Node, ...] | None:
    """Returns the two or three coordinates of a sum of multiples of i, j and k; None for any other node."""
    coordinates: dict[int, Node] = {}
    for term in node.args if node.op == "add" else (node,):
        part = _multiple(term)
        if part is None or part[0] in coordinates:
            return None
        coordinates[part[0]] = part[1]
    if 1 not in coordinates:
        return None  # without j, i may be the imaginary unit
    return tuple(coordinates.get(axis, number(0)) for axis in range(3 if 2 in coordinates else 2))


def _multiple(term: Node) -> tuple[int, Node] | None:
    """Returns (axis, factor) of a multiple of one unit vector, else None."""
    if term.op == "neg":
        inner = _multiple(term.args[0])
        return None if inner is None else (inner[0], Node("neg", (inner[1],)))
    if term.op == "div":
        inner = _multiple(term.args[0])
        return None if inner is None else (inner[0], Node("div", (inner[1], term.args[1])))
    factors = term.args if term.op == "mul" else (term,)
    axes = [axis for axis in map(_axis, factors) if axis is not None]
    if len(axes) != 1:
        return None
    rest = tuple(factor for factor in factors if _axis(factor) is None)
    return axes[0], number(1) if not rest else rest[0] if len(rest) == 1 else Node("mul", rest)


def _axis(node: Node) -> int | None:
    if node.op == "const" and node.value == "i":
        return 0
    return _AXES.get(node.value.split()[-1]) if node.op == "sym" and node.value else None
