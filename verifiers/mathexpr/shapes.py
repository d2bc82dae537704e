"""Converts expression trees to typed answers: chains of relations, groups, sets, ratios and plus-minus signs."""

from __future__ import annotations

import functools
from dataclasses import replace as changed

from verifiers.mathexpr import regions
from verifiers.mathexpr.answers import Answer, as_decimal
from verifiers.mathexpr.labels import difference_name, name_of, occurs, set_name, spelled
from verifiers.mathexpr.ladder import decimal_logs, equal, numeric_gap
from verifiers.mathexpr.limits import Unreadable, current
from verifiers.mathexpr.nodes import INFINITY, Node, digest, has_op, symbol, symbols, unevaluated, walk
from verifiers.mathexpr.normal import normal
from verifiers.mathexpr.vectors import as_group, components

_SIGNED = frozenset({"pm", "mp"})
_COORDINATES = frozenset({"matrix", "group", "set", "builder", "union", "cap"})
_REGION_OPS = frozenset({"union", "minus_set", "cap", "builder"})


def shaped(node: Node) -> Answer:
    """Returns a parsed expression as a typed answer. Raises Unreadable, TooHard."""
    if node.op == "chain":
        return _chain(node)
    vector = as_group(node)
    if node.op == "group" or vector is not None:
        return _group(vector or node)
    if node.op == "set":
        return Answer("set", items=_items(node.args), brackets="{}") if node.args else Answer("empty")
    if node.op in ("congruence", "cases"):
        return Answer("relation", node)
    if node.op in _REGION_OPS:
        return _region(node)
    if node.op == "const" and node.value == "empty":
        return Answer("empty")
    if node.op == "const" and node.value == "R":
        return Answer("region", pieces=regions.EVERYTHING)
    if node.op == "forall":
        return Answer("quantified", node)
    if node.op == "const" and node.value in ("Z", "N", "Q", "C"):
        return Answer("text", words=(node.value.lower(),))
    if node.op == "apply" and len(node.args) > 1 and node.value.isupper() and not any(map(symbols, node.args)):
        return Answer("tuple", items=_items(node.args), brackets="()", name=node.value)  # the point P(3, 4)
    if has_op(node, _SIGNED):
        values = both_signs(node)
        if any(value.op == "neg" and value.args[0].op == "group" for value in values):
            return Answer("list", items=tuple(map(_signed_group, values)))
        return Answer("list", items=tuple(Answer("scalar", value) for value in values))
    if has_op(node, frozenset({"set", "builder", "union", "chain"})) and node.op not in ("int", "lim", "sum", "fn"):
        raise Unreadable("a set or relation inside an expression")
    parts = _ratio(node)
    if len(parts) > 2:
        return Answer("ratio", items=tuple(Answer("scalar", part) for part in parts))
    if node.op in ("percent",) or (node.op == "neg" and node.args[0].op == "percent"):
        return Answer("scalar", node, percent=True)
    return Answer("scalar", node)


def _ratio(node: Node) -> list[Node]:
    """Returns the parts of a : b : c."""
    if node.op == "div" and node.value == ":":
        return [*_ratio(node.args[0]), node.args[1]]
    return [node]


def _items(nodes: tuple[Node, ...]) -> tuple[Answer, ...]:
    answers: list[Answer] = []
    for node in nodes:
        answer = shaped(node)
        answers.extend(answer.items if answer.kind == "list" else (answer,))
    return tuple(answers)


def _group(node: Node) -> Answer:
    if len(node.args) == 1:
        inner = shaped(node.args[0])
        return Answer("tuple", items=(inner,), brackets=node.value) if node.value == "[]" else inner
    brackets = node.value
    if brackets in ("(]", "[)") or INFINITY in [_unsigned(arg) for arg in node.args]:
        return _region(node)
    if has_op(node, _SIGNED):  # (±1, 2) is two points
        return Answer("list", items=tuple(_group(value) for value in both_signs(node)))
    if brackets == "<|" or brackets == "<|>":
        return Answer("tuple", items=tuple(Answer("scalar", arg) for arg in node.args), brackets=brackets)
    return Answer("tuple", items=tuple(shaped(arg) for arg in node.args), brackets=brackets)


def _signed_group(node: Node) -> Answer:
    if node.op != "neg":
        return _group(node)
    group = node.args[0]
    return _group(Node("group", tuple(Node("neg", (arg,)) for arg in group.args), group.value))


def _unsigned(node: Node) -> Node:
    return node.args[0] if node.op in ("neg", "add") and node.args else node


def _region(node: Node) -> Answer:
    try:
        inside = (_points(node) or _integers(node) or _over_integers(node)) if node.op == "builder" else None
        if inside is not None:
            return inside
        if node.op in ("union", "cap", "minus_set") and all(arg.op == "sym" for arg in node.args):
            return Answer("relation", node)  # sets by name: A and B
        pieces = regions.from_node(node)
    except regions.Unsolved:
        return Answer("relation", node)
    return Answer("region", pieces=pieces, brackets="interval")


def _points(node: Node) -> Answer | None:
    """Returns {(x, y) | y < 2x} as the relation of its coordinates; else None."""
    head, *conditions = node.args
    head = head.args[0] if head.op == "chain" and head.value == ("in",) else head
    names = {arg.value for arg in head.args if arg.op == "sym"}
    if head.op != "group" or len(conditions) != 1 or not 1 < len(names) == len(head.args):
        return None
    return shaped(conditions[0]) if symbols(conditions[0]) == names else None


def _over_integers(node: Node) -> Answer | None:
    """Returns {(4k + 1) pi/4 : k in Z} as its expression, in which k is any integer, also {(t, 2t) : t in R}."""
    head, *conditions = node.args
    if head.op == "chain" or len(conditions) != 1 or conditions[0].op != "chain" or conditions[0].value != ("in",):
        return None
    index, over = conditions[0].args
    numbers = {"Z": "integer", "R": "real" if head.op == "group" else ""}.get(over.value if over.op == "const" else "")
    if index.op != "sym" or not numbers or index.value not in symbols(head):
        return None
    return changed(shaped(head), bound=(index.value,), condition=numbers)


def _integers(node: Node) -> Answer | None:
    """Returns {x in Z | -2 < x < 3} as a finite set, also {x | x in Z, -2 < x < 3}; None for a builder over others."""
    head, *conditions = node.args
    over = [one for one in conditions if one.op == "chain" and one.value == ("in",) and one.args[0] == head]
    if head.op == "sym" and len(over) == 1 < len(conditions) and node.value == "and":
        return _integers(node.with_args((over[0], *(one for one in conditions if one is not over[0]))))
    if (
        head.op != "chain"
        or head.value != ("in",)
        or head.args[1] not in (Node("const", (), "Z"), Node("const", (), "N"))
    ):
        return None
    solutions = [regions.solved(condition) for condition in node.args[1:]]
    if node.value == "or" or any(name != head.args[0].value for name, _ in solutions):
        raise regions.Unsolved
    values = regions.integers_within(functools.reduce(regions.intersect, (pieces for _, pieces in solutions)))
    if values is None or (head.args[1].value == "N" and any(value.value < 0 for value in values)):
        raise Unreadable("a set of integers that can't be listed")  # whether 0 is natural is not said
    return Answer("set", items=tuple(Answer("scalar", value) for value in values), brackets="{}")


def _chain(node: Node) -> Answer:
    ops, args = node.value, node.args
    if set(ops) <= {"=", "approx", "equiv"}:
        return _equalities(node)
    if ops == ("in",):
        inner = shaped(args[1])
        if args[0].op == "sym" and inner.kind in ("set", "region", "tuple", "empty"):
            if inner.kind == "tuple" and len(inner.items) == 2:
                inner = Answer("region", pieces=regions.from_node(args[1]))
            return changed(inner, name=args[0].value)
        if args[0].op == "group" and inner.kind == "set" and all(arg.op == "sym" for arg in args[0].args):
            return inner  # (m, n) in {(3, 3), (2, 5)}
    try:
        name, pieces = regions.solved(_over_values(node))
    except regions.Unsolved:
        return Answer("relation", node)
    return Answer("region", pieces=pieces, name=name)


def _over_values(node: Node) -> Node:
    """Replaces f(x) in 0 < f(x) < 1 by a symbol for its values."""
    applied = [arg for arg in node.args if arg.op == "apply" and all(part.op == "sym" for part in arg.args)]
    if len(applied) != 1 or sum(map(bool, map(symbols, node.args))) != 1:
        return node
    return node.with_args(tuple(symbol(arg.value) if arg is applied[0] else arg for arg in node.args))


def _equalities(node: Node) -> Answer:
    args = node.args
    first = args[0]
    if "builder" in {arg.op for arg in args} and all(arg.op in ("builder", "group", "union") for arg in args):
        same = [_region(arg) for arg in args]  # {x | 1 < x} = (1, inf)
        if all(regions.same_region(same[0].pieces, other.pieces, current()) for other in same[1:]):
            return same[0]
    if all(arg == first for arg in args):
        raise Unreadable("an equation that says nothing")
    if first.op == "group" and len(args) == 2:
        args = (first, as_group(args[1]) or args[1])
    if first.op == "group" and len(args) == 2 and args[1].op == "group" and len(first.args) == len(args[1].args):
        pairs = [_chain(Node("chain", pair, ("=",))) for pair in zip(first.args, args[1].args, strict=True)]
        return Answer("tuple", items=tuple(pairs), brackets=args[1].value)
    if len(args) > 2 and not symbols(args[-1]) and all(arg.op == "sym" for arg in args[:-1]):
        pairs = [_chain(Node("chain", (arg, args[-1]), ("=",))) for arg in args[:-1]]  # x = y = 2
        return Answer("list", items=tuple(pairs), joined_by="=")
    name, bound = name_of(first)
    if name == "y" and first.op == "mul" and bound[0] not in symbols(args[-1]):
        name, bound = "", ()  # a product, no function of x
    if not name and len(args) == 2 and args[1].op in ("set", "builder", "union") and first.op == "add":
        name = difference_name(first)
    if not name and len(args) == 2 and _has_coordinates(args[1]) and not has_op(first, _COORDINATES):
        name = spelled(first)  # A^{-1} = a matrix, u x v = (1, 2, 3)
    values = tuple(arg for arg in args if not unevaluated(arg))
    if unevaluated(first) and values:  # an integral that is stated to be 7 is the name of 7
        name, bound, args = f"{first.op} {digest(normal(first)).hex()}", (), (first, *values)
    elif name and values[1:]:
        args = values  # x = an integral = 7
    rest = args[1:] if name else args
    if name and any(occurs(first, arg) or set_name(arg) for arg in rest):
        name, rest = "", args
    if len(rest) > 1:
        rest = _value(rest) if name else _one_value(rest) if not any(map(symbols, rest)) else _one_expression(rest)
    if not name and len(args) > 2 and symbols(first) and not any(map(symbols, args[1:])):
        args = (first, *_one_value(args[1:])[:1])  # x^2 + y^2 = 4^2 = 16
        return Answer("equation", Node("chain", args, ("=",)))
    if not rest:
        return Answer("equation", Node("chain", args[:2], ("=",))) if len(args) == 2 else Answer("relation", node)
    if not name and rest is args:
        return Answer("equation", node)
    if first.op == "fn" and first.value != "sqrt" and not symbols(first):
        name = spelled(first)  # cos(pi) = -1
    inner = shaped(rest[0])
    also = rest[1] if len(rest) > 1 else None
    if inner.kind in ("equation", "relation") and rest[0].op != "cases":
        raise Unreadable("an equation inside an equation")
    return changed(inner, name=name, bound=bound, also=also)


def _has_coordinates(node: Node) -> bool:
    return node.op == "matrix" or (node.op == "group" and len(node.args) > 1) or components(node) is not None


def _value(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Returns the value of a named chain: 12 for S = ab = 3 * 4 = 12."""
    start = next((index for index, node in enumerate(nodes) if not symbols(node)), len(nodes))
    if start < len(nodes) and not any(map(symbols, nodes[start:])):
        return _one_value(nodes[start:]) if start + 1 < len(nodes) else nodes[start:]
    return _one_expression(nodes)


def _one_value(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Returns the value of a chain of constants: (exact value, decimal), or one of them if only one kind occurs.

    Decimals must agree up to their last place. () if a node is no scalar.

    Raises:
        Unreadable: the constants differ.
    """
    if any(shaped(node).kind != "scalar" for node in nodes):
        return ()
    budget = current()
    for reading in (nodes, tuple(map(decimal_logs, nodes))):  # log 0.01 = -2 shows the base of its log
        exact = [node for node in reading if as_decimal(node) is None]
        rough = [(node, decimal) for node in reading if (decimal := as_decimal(node)) is not None]
        reference = exact[-1] if exact else rough[0][0]
        if all(equal(node, reference, budget) for node in exact[:-1]) and all(
            numeric_gap(node, reference, half, budget) for node, (_, half) in rough
        ):
            return (reference, rough[-1][0]) if exact and rough else (reference,)
    raise Unreadable("a chain of equalities that does not hold")


def _one_expression(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Returns the last expression of an identity such as (a+b)(a-b) = a^2 - b^2; () if it is no identity."""
    budget = current()
    if any(node.op in ("chain", "group", "set", "builder", "union") for node in nodes):
        return ()
    return (nodes[-1],) if all(equal(node, nodes[-1], budget) for node in nodes[:-1]) else ()


def both_signs(node: Node) -> list[Node]:
    """Returns the values of a node with plus-minus signs, which vary together only if there is a minus-plus."""
    together = has_op(node, frozenset({"mp"}))
    count = sum(signed.op in _SIGNED for signed in walk(node))
    if count > 4:
        raise Unreadable("too many plus-minus signs")
    if together or count == 1:
        return [_signed(node, [sign] * count)[0] for sign in (True, False)]
    signed = []
    for choice in range(2**count):
        signed.append(_signed(node, [bool(choice >> k & 1) for k in range(count)])[0])
    return signed


def _signed(node: Node, signs: list[bool]) -> tuple[Node, list[bool]]:
    """Returns the node with its plus-minus signs replaced according to `signs`, and the signs that are left."""
    if node.op in _SIGNED:
        plus, left = signs[0], signs[1:]
        inner, left = _signed(node.args[0], left)
        return (inner if plus == (node.op == "pm") else Node("neg", (inner,))), left
    args = []
    for arg in node.args:
        new, signs = _signed(arg, signs)
        args.append(new)
    return (node.with_args(tuple(args)) if args else node), signs
