"""Subsets of the real line: converts intervals, inequalities, set-builders and unions to lists of intervals."""

from __future__ import annotations

import functools
from fractions import Fraction

from verifiers.mathexpr.answers import Piece
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.ladder import equal, order
from verifiers.mathexpr.limits import MAX_ITEMS, Budget, Unreadable, current
from verifiers.mathexpr.nodes import INFINITY, Node, number, symbol, symbols
from verifiers.mathexpr.normal import normal

MINUS_INFINITY = Node("neg", (INFINITY,))
Pieces = tuple[Piece, ...]
EVERYTHING: Pieces = (Piece(MINUS_INFINITY, False, INFINITY, False),)
MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


class Unsolved(Exception):
    """An inequality that is not solved for its variable."""


def from_node(node: Node) -> Pieces:
    """Returns an interval, set of points, union, difference or set-builder as pieces. Raises Unreadable, Unsolved."""
    match node.op:
        case "group" if len(node.args) == 2 and node.value in ("()", "[]", "(]", "[)"):
            return (Piece(node.args[0], node.value[0] == "[", node.args[1], node.value[1] == "]"),)
        case "set":
            return tuple(point(item) for item in node.args)
        case "union":
            return tuple(piece for arg in node.args for piece in from_node(arg))
        case "minus_set":
            return intersect(from_node(node.args[0]), complement(from_node(node.args[1])))
        case "cap":
            return intersect(from_node(node.args[0]), from_node(node.args[1]))
        case "const" if node.value == "R":
            return EVERYTHING
        case "const" if node.value == "empty":
            return ()
        case "builder":
            return _builder(node)[1]
    raise Unreadable("no set of real numbers")


def point(node: Node) -> Piece:
    """Returns the interval of a single value."""
    return Piece(node, True, node, True)


def _builder(node: Node) -> tuple[str, Pieces]:
    head, *conditions = node.args
    start = EVERYTHING
    if head.op == "chain" and head.value == ("in",):
        start, head = from_node(head.args[1]), head.args[0]
    if head.op != "sym":
        raise Unsolved
    regions: list[Pieces] = []
    for condition in conditions:
        name, pieces = solved(condition)
        if name != head.value:
            raise Unsolved
        regions.append(pieces)
    if node.value == "or":
        return head.value, intersect(start, tuple(piece for pieces in regions for piece in pieces))
    return head.value, functools.reduce(intersect, regions, start)


def solved(node: Node) -> tuple[str, Pieces]:
    """Returns (variable, pieces) of a solved inequality: x > 3, -1 < x <= 3, x != 2, x in [0, 1).

    Raises:
        Unsolved: the variable is not alone on its side.
        Unreadable: the bounds can't be ordered.
    """
    if node.op != "chain":
        raise Unsolved
    ops, args = node.value, node.args
    if ops == ("in",) and args[0].op == "sym":
        return args[0].value, from_node(args[1])
    if ops == ("notin",) and args[0].op == "sym":
        return args[0].value, complement(from_node(args[1]))
    indices = [index for index, arg in enumerate(args) if arg.op == "sym"]
    alone = [i for i in indices if not any(args[i].value in symbols(arg) for j, arg in enumerate(args) if j != i)]
    if len(alone) > 1 and len(args) == 3 and 1 in alone:
        alone = [1]
    if len(alone) != 1 or len(args) > 3 or (len(args) == 3 and alone != [1]):
        raise Unsolved
    index = alone[0]
    name = args[index].value
    region = EVERYTHING
    for i, op in enumerate(ops):
        if op not in MIRROR and op != "=":
            raise Unsolved
        if i == index:
            region = intersect(region, _half(op, args[i + 1]))
        elif i + 1 == index:
            region = intersect(region, _half(MIRROR.get(op, op), args[i]))
    return name, region


def scaled(node: Node, *, sign_only: bool = False) -> tuple[str, Pieces] | None:
    """Returns (variable, pieces) of an inequality in a multiple of its variable: 2x > 6, -x <= 1; else None.

    Args:
        sign_only: accept no multiple but -x.
    """
    if node.op != "chain":
        return None
    multiples = [(index, _multiple(arg)) for index, arg in enumerate(node.args) if symbols(arg)]
    if len(multiples) != 1 or multiples[0][1] is None or not set(node.value) <= set(MIRROR) - {"!="}:
        return None
    index, (name, factor) = multiples[0][0], multiples[0][1]
    if sign_only and factor != -1:
        return None
    args = [Node("div", (arg, number(factor))) for arg in node.args]
    args[index] = symbol(name)
    ops = node.value if factor > 0 else tuple(MIRROR[op] for op in node.value)
    try:
        return solved(Node("chain", tuple(args), ops))
    except Unsolved:
        return None


def _multiple(node: Node) -> tuple[str, Fraction] | None:
    """Returns (x, c) for c x, else None."""
    inner = normal(node)
    if inner.op == "sym":
        return inner.value, Fraction(1)
    if inner.op == "mul" and len(inner.args) == 2 and inner.args[0].op == "num" and inner.args[1].op == "sym":
        return inner.args[1].value, inner.args[0].value
    return None


def _half(op: str, end: Node) -> Pieces:
    """Returns all x with x op end."""
    match op:
        case "<" | "<=":
            return (Piece(MINUS_INFINITY, False, end, op == "<="),)
        case ">" | ">=":
            return (Piece(end, op == ">=", INFINITY, False),)
        case "=":
            return (point(end),)
    return (Piece(MINUS_INFINITY, False, end, False), Piece(end, False, INFINITY, False))


def intersect(a: Pieces, b: Pieces) -> Pieces:
    """Returns the intersection.

    Raises:
        Unreadable: two finite bounds can't be ordered, or there are too many pieces.
    """
    budget = current()
    if len(a) * len(b) > MAX_ITEMS:
        raise Unreadable("an intersection of too many pieces")
    common = []
    for x in a:
        for y in b:
            low, low_closed = _tighter(x.low, x.low_closed, y.low, y.low_closed, 1, budget)
            high, high_closed = _tighter(x.high, x.high_closed, y.high, y.high_closed, -1, budget)
            sign = order(low, high, budget)
            if sign is None or sign < 0 or (sign == 0 and low_closed and high_closed):
                common.append(Piece(low, low_closed, high, high_closed))
    return tuple(common)


def _tighter(a: Node, a_closed: bool, b: Node, b_closed: bool, sign: int, budget: Budget) -> tuple[Node, bool]:
    unbounded = MINUS_INFINITY if sign == 1 else INFINITY
    if a == unbounded:
        return b, b_closed
    if b == unbounded:
        return a, a_closed
    ordering = order(a, b, budget)
    if ordering is None:
        raise Unreadable("bounds that can't be ordered")
    if ordering == 0:
        return a, a_closed and b_closed
    return (a, a_closed) if ordering == sign else (b, b_closed)


def complement(a: Pieces) -> Pieces:
    """Returns the complement. Raises Unreadable as `intersect`."""
    rest = EVERYTHING
    for piece in a:
        outside = []
        if piece.low != MINUS_INFINITY:
            outside.append(Piece(MINUS_INFINITY, False, piece.low, not piece.low_closed))
        if piece.high != INFINITY:
            outside.append(Piece(piece.high, not piece.high_closed, INFINITY, False))
        rest = intersect(rest, tuple(outside))
    return rest


def canonical(pieces: Pieces, budget: Budget) -> Pieces:
    """Sorts the pieces, merges touching ones and drops empty ones; unchanged if the ends can't be ordered."""
    live: list[Piece] = []
    for piece in pieces:
        sign = 0 if piece.low == piece.high else order(piece.low, piece.high, budget)
        if sign is None:
            return pieces
        if sign is not None and (sign < 0 or (sign == 0 and piece.low_closed and piece.high_closed)):
            live.append(piece)
    try:
        live.sort(key=functools.cmp_to_key(functools.partial(_ordered, budget=budget)))
    except ValueError:
        return pieces
    merged: list[Piece] = []
    for piece in live:
        if merged:
            last = merged[-1]
            touch = order(piece.low, last.high, budget)
            if touch is not None and (touch < 0 or (touch == 0 and (piece.low_closed or last.high_closed))):
                longer = order(piece.high, last.high, budget)
                high = piece if longer == 1 else last
                closed = high.high_closed or (longer == 0 and (piece.high_closed or last.high_closed))
                merged[-1] = Piece(last.low, last.low_closed, high.high, closed)
                continue
        merged.append(piece)
    return tuple(merged)


def _ordered(a: Piece, b: Piece, budget: Budget) -> int:
    sign = order(a.low, b.low, budget)
    if sign is None:
        raise ValueError
    return sign or (b.low_closed - a.low_closed)


def same_region(a: Pieces, b: Pieces, budget: Budget) -> bool:
    """Returns whether the two are equal as sets of real numbers. Raises TooHard."""
    a, b = canonical(a, budget), canonical(b, budget)
    if len(a) != len(b):
        return budget.decided("region", False)
    left = list(b)
    for piece in a:
        match = next((other for other in left if _same_piece(piece, other, budget)), None)
        if match is None:
            return budget.decided("region", False)
        left.remove(match)
    return budget.decided("region", True)


def _same_piece(a: Piece, b: Piece, budget: Budget) -> bool:
    if (a.low_closed, a.high_closed) != (b.low_closed, b.high_closed):
        return False
    return _same_end(a.low, b.low, budget) and _same_end(a.high, b.high, budget)


def _same_end(a: Node, b: Node, budget: Budget) -> bool:
    if INFINITY in (a, b) or MINUS_INFINITY in (a, b):
        return a == b
    return equal(a, b, budget)


def integers_within(pieces: Pieces) -> list[Node] | None:
    """Returns the integers in the pieces; None if an end is not rational or a piece longer than MAX_ITEMS."""
    integers: list[int] = []
    for piece in pieces:
        low, high = rational(piece.low), rational(piece.high)
        if low is None or high is None or high - low > MAX_ITEMS:
            return None
        first = -((-low.numerator) // low.denominator)
        last = high.numerator // high.denominator
        inside = range(first, last + 1)
        integers += [k for k in inside if (k > low or piece.low_closed) and (k < high or piece.high_closed)]
    return [number(k) for k in sorted(set(integers))]
