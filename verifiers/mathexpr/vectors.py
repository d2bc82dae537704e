"""Reads vectors in terms of unit vectors: 3i + 2j, 3\\mathbf{i} - \\hat{j} + k."""

from __future__ import annotations

from verifiers.mathexpr.nodes import Node, has_op, number, symbols

_AXES = {"i": 0, "j": 1, "k": 2}
_NAMED_AXES = {
    f"{before}{name}{after}": axis
    for before, names, after in (("e_{", "123", "}"), ("e_{", "xyz", "}"), ("hat ", "xyz", ""))
    for axis, name in enumerate(names)
}
_GROUP = frozenset({"group"})
_VECTORS = _GROUP | {"matrix"}
_TRANSPOSED = ("T", "top", "intercal")


def coordinates(node: Node) -> tuple[Node, ...] | None:
    """Returns the coordinates of a vector; None for other nodes, and for V(3, 4), which may be a point."""
    named = node.op == "mul" and any(symbols(arg) for arg in node.args if not has_op(arg, _GROUP))
    return None if named and has_op(node, _GROUP) else _coordinates(node)


def _coordinates(node: Node) -> tuple[Node, ...] | None:
    """Returns the coordinates of a tuple, a row, a column, or a sum of multiples of these; None for other nodes."""
    if node.op == "group" and len(node.args) > 1:
        plain = node.value in ("()", "[]", "<>") and not any(has_op(arg, _VECTORS) for arg in node.args)
        return node.args if plain else None
    if node.op == "matrix":
        return node.args if node.value in (1, len(node.args)) else None
    if node.op == "neg":
        parts = _coordinates(node.args[0])
        return None if parts is None else tuple(Node("neg", (part,)) for part in parts)
    if node.op == "pow" and node.args[1].value in _TRANSPOSED:
        return _coordinates(node.args[0])
    if node.op == "add" and has_op(node, _VECTORS):
        terms = [_coordinates(arg) for arg in node.args]
        vectors = [term for term in terms if term is not None]
        if len(vectors) < len(terms) or len(set(map(len, vectors))) > 1:
            return None
        return tuple(Node("add", parts) for parts in zip(*vectors, strict=True))
    in_axes = components(node)
    if in_axes is not None or node.op not in ("mul", "div"):
        return in_axes
    found = [index for index, arg in enumerate(node.args) if _coordinates(arg) is not None]
    scalars = tuple(arg for index, arg in enumerate(node.args) if found != [index])
    if len(found) != 1 or (node.op == "div" and found != [0]) or any(has_op(arg, _VECTORS) for arg in scalars):
        return None
    parts = _coordinates(node.args[found[0]]) or ()
    if node.op == "div":
        return tuple(Node("div", (part, *scalars)) for part in parts)
    return tuple(Node("mul", (*scalars, part)) for part in parts)


def as_group(node: Node) -> Node | None:
    """Returns 1/5 (3, 4) or (1, 2) + t (3, 4) as one tuple; None for other nodes."""
    if node.op not in ("add", "mul", "div", "neg", "pow") or not has_op(node, _GROUP):
        return None
    parts = coordinates(node)
    return None if parts is None else Node("group", parts, "()")


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
    if node.op != "sym" or not node.value:
        return None
    return _NAMED_AXES.get(node.value, _AXES.get(node.value.split()[-1]))
