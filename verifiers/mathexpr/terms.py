"""Compares infinite sums and integrals by their terms: another index, another start, factors inside or outside."""

from __future__ import annotations

from fractions import Fraction

from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.nodes import INFINITY, MINUS_ONE, Node, number, rename, substitute, symbol, symbols, unevaluated

_DOTS = symbol("...")
_FEWEST = 3  # terms before the dots
_MOST_FIRST = 3  # terms that may stand before a sum
Pairs = list[tuple[Node, Node]]


def term_pairs(first: Node, second: Node) -> list[Pairs]:
    """Returns lists of pairs of expressions; if those of each pair in one list are equal, so are both nodes."""
    ours, theirs = _split(first), _split(second)
    if ours is None or theirs is None:
        return []
    (rest, body, bound), (other_rest, other_body, other) = ours, theirs
    if bound.op != other.op or (bound.value != other.value and bound.value in symbols(other_body)):
        return []
    name, (low, high), (other_low, other_high) = bound.value, bound.args[1:], other.args[1:]
    other_body = rename(other_body, {other.value: name})
    if bound.op == "int":
        return [[(rest, other_rest), (low, other_low), (high, other_high), (body, other_body)]]
    start, other_start = rational(low), rational(other_low)
    if start is None or other_start is None or high != INFINITY or other_high != INFINITY:
        return []
    gap, found = other_start - start, []
    whole = Node("pow", (MINUS_ONE, symbol(name)))  # as a factor, it tells that the index is an integer
    for shift in dict.fromkeys((gap, Fraction(0), gap + 1, gap - 1)):
        moved = substitute(other_body, {name: Node("add", (symbol(name), number(shift)))})
        ahead, behind = gap - shift, shift - gap  # terms that only the one sum has
        if gap.denominator != 1 or abs(ahead) > _MOST_FIRST:
            continue
        more = [substitute(body, {name: number(start + at)}) for at in range(int(ahead))]
        others = [substitute(other_body, {name: number(other_start + at)}) for at in range(int(behind))]
        rests = Node("add", (rest, *more)), Node("add", (other_rest, *others))
        found.append([rests, (Node("mul", (whole, body)), Node("mul", (whole, moved)))])
    return found


def first_terms(series: Node, listed: Node) -> Pairs | None:
    """Returns pairs as `term_pairs`, of the first terms of an infinite sum: 1 - x^2 + x^4 - ..."""
    split = _split(series) if listed.op == "add" else None
    terms = [(arg.args[0], arg) if arg.op == "neg" else (arg, arg) for arg in listed.args]
    dots = [index for index, (plain, _) in enumerate(terms) if plain == _DOTS]
    if split is None or not dots or dots[0] < _FEWEST or dots[-1] + 1 < len(terms):
        return None
    rest, body, bound = split
    start = rational(bound.args[1])
    if bound.op != "sum" or bound.args[2] != INFINITY or start is None:
        return None
    pairs = [(rest, number(0))]
    for index, (_, term) in enumerate(terms[: dots[0]]):
        pairs.append((substitute(body, {bound.value: number(start + index)}), term))
    if dots[1:]:  # ... + (-1)^n x^{2n} + ...
        general = terms[dots[0] + 1][1]
        names = symbols(general) - symbols(series)
        if dots[1:] != [dots[0] + 2] or len(names) != 1:
            return None
        (name,) = names
        pairs.append((rename(body, {bound.value: name}), general))
    return pairs


def _split(node: Node) -> tuple[Node, Node, Node] | None:
    """Returns (what is added, the body with the factors before the sign, the sum or integral with bounds), or None."""
    if node.op in ("sum", "int"):
        return (number(0), node.args[0], node) if len(node.args) == 3 else None
    inside = [index for index, arg in enumerate(node.args) if unevaluated(arg)]
    if len(inside) != 1 or node.op not in ("add", "mul", "div", "neg"):
        return None
    (at,) = inside
    split = _split(node.args[at])
    others = node.args[:at] + node.args[at + 1 :]
    if split is None:
        return None
    rest, body, bound = split
    if node.op == "add":
        return Node("add", (rest, *others)), body, bound
    if any(bound.value in symbols(other) for other in others) or (node.op == "div" and at):
        return None

    def scaled(part: Node) -> Node:
        return node.with_args((*node.args[:at], part, *node.args[at + 1 :]))

    return scaled(rest), scaled(body), bound
