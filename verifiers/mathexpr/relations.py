"""Compares answers that are not single values: subsets of the line, equations, inequalities, congruences, ratios."""

from __future__ import annotations

import functools
from fractions import Fraction

from verifiers.mathexpr import regions
from verifiers.mathexpr.answers import Answer, Piece
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.ladder import equal, order
from verifiers.mathexpr.limits import Budget, Unreadable
from verifiers.mathexpr.nodes import INFINITY, Node, has_op, number, substitute, symbol, symbols, walk
from verifiers.mathexpr.normal import normal
from verifiers.mathexpr.piecewise import same_cases
from verifiers.mathexpr.regions import MIRROR, Pieces

_INJECTIVE = frozenset("exp ln log lg lb sqrt cbrt sinh tanh asin acos atan asinh atanh".split())
_COORDINATES = frozenset({"x", "y", "z", "r", "rho", "theta", "t"})


def verdict(same: bool, same_kind: bool) -> str:
    """Returns the reason for a finding: "equal", or "different" for the same kind, or "type_clash" for another."""
    return "equal" if same else "different" if same_kind else "type_clash"


def regions_of(gold: Answer, answer: Answer, budget: Budget) -> str:
    """Compares a list of intervals or points (gold) with a region (answer)."""
    pieces: list[Piece] = []
    for item in gold.items:
        if item.kind == "region":
            pieces.extend(item.pieces)
        elif item.kind == "tuple" and len(item.items) == 2 and item.brackets in ("()", "[]"):
            low, high = item.items[0].node, item.items[1].node
            if low is None or high is None:
                return "type_clash"
            pieces.append(Piece(low, item.brackets == "[]", high, item.brackets == "[]"))
        elif item.kind == "scalar" and item.node is not None:
            pieces.append(regions.point(item.node))
        else:
            return "type_clash"
    if len(regions.canonical(tuple(pieces), budget)) != len(pieces):
        return "different"  # overlapping intervals are not a union
    return verdict(regions.same_region(tuple(pieces), answer.pieces, budget), True)


def region_gold(gold: Answer, answer: Answer, budget: Budget) -> str:
    """Compares an answer with a gold region. Returns the reason; raises TooHard."""
    pieces: Pieces
    if answer.kind == "region":
        pieces = answer.pieces
    elif answer.kind == "tuple" and len(answer.items) == 2 and answer.brackets in ("()", "[]"):
        nodes = tuple(item.node for item in answer.items if item.node is not None)
        if len(nodes) != 2:
            return "type_clash"
        pieces = regions.from_node(Node("group", nodes, answer.brackets))
    elif answer.kind in ("set", "list") and all(item.node is not None for item in answer.items) and answer.items:
        pieces = tuple(regions.point(item.node) for item in answer.items if item.node is not None)
        if any(piece.low != piece.high for piece in gold.pieces):
            return "hedged" if answer.joined_by == "or" else "different"
    elif answer.kind == "list":
        try:
            return regions_of(answer, gold, budget)
        except Unreadable:
            return "type_clash"
    elif answer.kind == "scalar" and answer.node is not None:
        pieces = (regions.point(answer.node),)
    elif answer.kind == "empty":
        pieces = ()
    elif answer.kind == "relation" and answer.node is not None:
        turned, plane = regions.scaled(answer.node, sign_only=True), _half_plane(gold)
        if turned is None and plane is not None and answer.node.op == "chain":
            return _same_inequality(plane, answer.node, budget)
        if turned is None:
            return "unsolved"
        pieces = turned[1]
    else:
        return "type_clash"
    return verdict(regions.same_region(gold.pieces, pieces, budget), True)


def equation_gold(gold: Answer, answer: Answer, budget: Budget) -> str:
    """Compares an answer with a gold equation. Returns the reason; raises TooHard."""
    assert gold.node is not None
    if answer.kind == "equation" and answer.node is not None:
        return verdict(same_equation(gold.node, answer.node, budget), True)
    if answer.kind == "scalar" and answer.node is not None:
        if answer.name:
            named = Node("chain", (symbol(answer.name), answer.node), ("=",))
            return verdict(same_equation(gold.node, named, budget), True)
        if names_value(gold.node):
            same = not symbols(answer.node) and equal(gold.node.args[-1], answer.node, budget)
            return verdict(same, True)
        if "y" in symbols(gold.node) and "y" not in symbols(answer.node):
            return verdict(symbols(gold.node) > {"y"} and _solves(gold.node, answer.node, budget), False)
    return "type_clash"


def _solves(chain: Node, value: Node, budget: Budget) -> bool:
    """Returns whether the value is the only y of an equation. sqrt(1-x^2) is half of the circle x^2 + y^2 = 1."""
    f = _difference(chain)
    above, at, below = (substitute(f, {"y": Node("add", (value, number(step)))}) for step in (1, 0, -1))
    if not equal(at, number(0), budget):
        return False
    linear = equal(Node("add", (above, below)), Node("mul", (number(2), at)), budget)
    return linear or _is_injective(f, "y")


def _is_injective(node: Node, name: str) -> bool:
    """Returns whether the name occurs once, in operations that take no value twice: y^3, ln y, but not y^2 or |y|."""
    if node.op == "sym":
        return True
    inside = [index for index, arg in enumerate(node.args) if name in symbols(arg)]
    exponent = rational(node.args[1]) if node.op in ("pow", "root") and inside == [0] else None
    odd = exponent is not None and exponent.numerator % 2 == 1
    steps = node.op in ("add", "neg", "mul", "div") or (node.op == "fn" and node.value in _INJECTIVE)
    if len(inside) != 1 or not (steps or odd or (node.op == "pow" and inside == [1])):
        return False
    return _is_injective(node.args[inside[0]], name)


def names_value(chain: Node) -> bool:
    """Returns whether the chain states a value, as m + n = 7; x + y = 7, a^2 + b = 0 and 2a = 14 are equations."""
    left, *right = chain.args
    names = symbols(left)
    if len(right) != 1 or symbols(right[0]) or rational(right[0]) == 0 or len(names) < 2:
        return False
    return not names & _COORDINATES and all(node.op in ("add", "mul", "neg", "num", "sym") for node in walk(left))


def same_residues(congruence: Node, form: Node) -> bool:
    """Returns whether a congruence and a form have the same residues, as n = 3 (mod 7), and 7k + 3 or 3 (mod 7)."""
    names = symbols(form)
    if form.op == "fn" and form.value == "mod" and congruence.args[0].op == "sym":
        values = [value for node in (*congruence.args[1:], *form.args) if (value := rational(node)) is not None]
        return len(values) == 4 and values[1] == values[3] > 1 and (values[0] - values[2]) % values[1] == 0
    if len(names) != 1 or has_op(form, frozenset({"pow", "div", "fn", "fact", "binom", "root", "abs"})):
        return False
    name = next(iter(names))
    at = [rational(substitute(form, {name: number(k)})) for k in range(3)]
    residue, size = (rational(node) for node in congruence.args[1:])
    if congruence.args[0].op != "sym" or residue is None or size is None or None in at:
        return False
    first, second, third = (value or Fraction(0) for value in at)
    step = second - first
    return third - second == step and abs(step) == size > 1 and (first - residue) % size == 0


def _difference(chain: Node) -> Node:
    return Node("add", (chain.args[0], Node("neg", (chain.args[1],))))


def same_equation(a: Node, b: Node, budget: Budget) -> bool:
    """Returns whether the equations are equal up to a constant factor and rearrangement. Raises TooHard."""
    if normal(a) == normal(b):
        return budget.decided("normal", True)
    return _proportion(_difference(a), _difference(b), budget) is not None


def _proportion(f: Node, g: Node, budget: Budget) -> int | None:
    """Returns the sign of c if f = c g for a constant c, else None."""
    if symbols(f) != symbols(g):
        return None
    for shift in (0, 1, 2):
        names = enumerate(sorted(symbols(f)))
        point = {name: number(Fraction(2 * index + 3 + 5 * shift, 2 + shift)) for index, name in names}
        values = [substitute(f, point), substitute(g, point)]
        at_f, at_g = values
        zero = number(0)
        if equal(at_f, zero, budget) or equal(at_g, zero, budget):
            continue
        if not equal(Node("mul", (f, at_g)), Node("mul", (g, at_f)), budget):
            return None
        # Both may be complex at the point, as roots of negative numbers are; their quotient is the constant c anyway.
        return order(Node("fn", (Node("div", (at_f, at_g)),), "re"), zero, budget)
    return None


def same_ratio(gold: Answer, answer: Answer, budget: Budget) -> str:
    """Compares two ratios, which are equal up to a common factor."""
    if answer.kind not in ("ratio", "clock") or len(answer.items) != len(gold.items):
        return "different" if answer.kind == "ratio" else "type_clash"
    ours = [item.node for item in gold.items if item.node is not None]
    theirs = [item.node for item in answer.items if item.node is not None]
    if equal(ours[0], number(0), budget) or equal(theirs[0], number(0), budget):
        return verdict(all(equal(a, b, budget) for a, b in zip(ours, theirs, strict=True)), True)
    pairs = zip(ours[1:], theirs[1:], strict=True)
    return verdict(all(equal(Node("mul", (a, theirs[0])), Node("mul", (b, ours[0])), budget) for a, b in pairs), True)


def structure(gold: Answer, answer: Answer, budget: Budget) -> str:
    """Compares relations, up to a positive factor and rearrangement; others by their canonical form."""
    g, a = gold.node, answer.node
    if g is not None and g.op == "congruence" and answer.kind == "scalar" and a is not None:
        return verdict(same_residues(g, a), True)
    if g is not None and g.op == "chain" and answer.kind == "region":
        solved, plane = regions.scaled(g), _half_plane(answer)
        if solved is None and plane is not None:
            return _same_inequality(g, plane, budget)
        same_name = solved is not None and answer.name in ("", solved[0])
        return verdict(solved is not None and same_name and regions.same_region(solved[1], answer.pieces, budget), True)
    if g is not None and g.op == "chain" and answer.kind == "list" and len(set(g.value)) == 1 and g.value[0] in "<>":
        items = [item.node for item in answer.items if item.node is not None]  # "0.5, 60%, 2/3" for "0.5 < 60% < 2/3"
        same = len(items) == len(g.args) and all(map(functools.partial(equal, budget=budget), g.args, items))
        return verdict(budget.decided("points", same and len(items) == len(answer.items)), True)
    if g is not None and g.op == "cases" and answer.kind == "equation" and a is not None:
        kind, a = "relation", a.args[-1]  # "|x| = ...", by cases
    else:
        kind = answer.kind
    if kind != gold.kind or g is None or a is None:
        return "type_clash"
    if normal(g) == normal(a):
        return verdict(budget.decided("normal", True), True)
    if g.op == a.op == "cases":
        return verdict(budget.decided("region", same_cases(g, a, budget)), True)
    if g.op == a.op == "congruence":
        gap = rational(Node("div", (Node("add", (g.args[1], Node("neg", (a.args[1],)))), g.args[2])))
        same = gap is not None and gap.denominator == 1
        same = same and equal(g.args[0], a.args[0], budget) and equal(g.args[2], a.args[2], budget)
        return verdict(budget.decided("rational", same), True)
    if g.op == a.op == "chain" and set(g.value + a.value) == {"="} and len(g.args) == len(a.args) > 2:
        left = list(a.args)  # x/2 = y/3 = z/4 in any order
        for side in g.args:
            found = next((other for other in left if equal(side, other, budget)), None)
            if found is None:
                return "different"
            left.remove(found)
        return "equal"
    if g.op == a.op == "chain":
        return _same_inequality(g, a, budget)
    return verdict(budget.decided("normal", False), True)


def _half_plane(answer: Answer) -> Node | None:
    """Returns y < 2x - 2 as a relation, of a region with one end in which there are names; else None."""
    if not answer.name or len(answer.pieces) != 1:
        return None
    (piece,) = answer.pieces
    if piece.low == regions.MINUS_INFINITY and symbols(piece.high):
        return Node("chain", (symbol(answer.name), piece.high), ("<=" if piece.high_closed else "<",))
    if piece.high == INFINITY and symbols(piece.low):
        return Node("chain", (symbol(answer.name), piece.low), (">=" if piece.low_closed else ">",))
    return None


def _same_inequality(g: Node, a: Node, budget: Budget) -> str:
    """Compares inequalities of two sides, up to a factor."""
    if not len(g.args) == len(a.args) == 2 or not {g.value[0], a.value[0]} <= set(MIRROR):
        return verdict(budget.decided("normal", False), True)
    sign = _proportion(_difference(g), _difference(a), budget)
    wanted = g.value[0] if sign == 1 else MIRROR[g.value[0]]
    return verdict(budget.decided("points", bool(sign) and a.value[0] == wanted), True)
