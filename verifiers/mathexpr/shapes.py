"""Expression trees to typed answers: chains of relations, groups, sets, ratios and plus-minus signs."""

from __future__ import annotations

from dataclasses import replace as changed

from verifiers.mathexpr import regions
from verifiers.mathexpr.answers import Answer, as_decimal
from verifiers.mathexpr.ladder import equal, numeric_gap
from verifiers.mathexpr.limits import Budget, Unreadable
from verifiers.mathexpr.nodes import INFINITY, Node, has_op, symbols

_SIGNED = frozenset({"pm", "mp"})
_REGION_OPS = frozenset({"union", "minus_set", "cap", "builder"})


def shaped(node: Node) -> Answer:
    """The typed answer that a parsed expression is. Raises Unreadable."""
    if node.op == "chain":
        return _chain(node)
    if node.op == "group":
        return _group(node)
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
    """The parts of a : b : c."""
    if node.op == "div" and node.value == ":":
        return [*_ratio(node.args[0]), node.args[1]]
    return [node]


def _items(nodes: tuple[Node, ...]) -> tuple[Answer, ...]:
    found: list[Answer] = []
    for node in nodes:
        answer = shaped(node)
        found.extend(answer.items if answer.kind == "list" else (answer,))
    return tuple(found)


def _group(node: Node) -> Answer:
    if len(node.args) == 1:
        inner = shaped(node.args[0])
        return Answer("tuple", items=(inner,), brackets=node.value) if node.value == "[]" else inner
    brackets = node.value
    if brackets in ("(]", "[)") or INFINITY in [_unsigned(arg) for arg in node.args]:
        return _region(node)
    if brackets == "<|" or brackets == "<|>":
        return Answer("tuple", items=tuple(Answer("scalar", arg) for arg in node.args), brackets=brackets)
    return Answer("tuple", items=tuple(shaped(arg) for arg in node.args), brackets=brackets)


def _unsigned(node: Node) -> Node:
    return node.args[0] if node.op in ("neg", "add") and node.args else node


def _region(node: Node) -> Answer:
    try:
        inside = _integers(node) if node.op == "builder" else None
        if inside is not None:
            return inside
        if node.op in ("union", "cap", "minus_set") and all(arg.op == "sym" for arg in node.args):
            return Answer("relation", node)  # sets by name: A and B
        found = regions.from_node(node)
    except regions.Unsolved:
        return Answer("relation", node)
    return Answer("region", pieces=found, brackets="interval" if node.op == "group" else "")


def _integers(node: Node) -> Answer | None:
    """{x in Z | -2 < x < 3} as the finite set it is."""
    head = node.args[0]
    if (
        head.op != "chain"
        or head.value != ("in",)
        or head.args[1] not in (Node("const", (), "Z"), Node("const", (), "N"))
    ):
        return None
    name, pieces = regions.solved(node.args[1])
    values = regions.integers_within(pieces) if name == head.args[0].value else None
    if values is None:
        raise Unreadable("a set of integers that can't be listed")
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
    try:
        name, pieces = regions.solved(node)
    except regions.Unsolved:
        return Answer("relation", node)
    return Answer("region", pieces=pieces, name=name)


def _equalities(node: Node) -> Answer:
    args = node.args
    first = args[0]
    if first.op == "group" and len(args) == 2 and args[1].op == "group" and len(first.args) == len(args[1].args):
        pairs = [_chain(Node("chain", pair, ("=",))) for pair in zip(first.args, args[1].args, strict=True)]
        return Answer("tuple", items=tuple(pairs), brackets=args[1].value)
    name, bound = _name_of(first)
    rest = args[1:] if name else args
    if name and any(_occurs(first, arg) for arg in rest):
        name, rest = "", args
    if len(rest) > 1:
        rest = _one_value(rest) if not any(map(symbols, rest)) else _one_expression(rest)
    if not rest:
        return Answer("equation", Node("chain", args[:2], ("=",))) if len(args) == 2 else Answer("relation", node)
    if not name and rest is args:
        return Answer("equation", node)
    inner = shaped(rest[0])
    also = rest[1] if len(rest) > 1 else None
    if inner.kind in ("equation", "relation"):
        raise Unreadable("an equation inside an equation")
    return changed(inner, name=name, bound=bound, also=also)


def _name_of(node: Node) -> tuple[str, tuple[str, ...]]:
    """x of "x = ...", f and its variables of "f(x) = ...", "" for anything else."""
    if node.op == "sym":
        base = node.value
        if "_{" in base and base.endswith("}") and len(base.partition("_{")[2]) == 2:
            index = base.partition("_{")[2][:-1]
            if index.isalpha():
                return base.partition("_{")[0], (index,)  # a_n is a function of n
        return base, ()
    if node.op == "apply" and all(arg.op == "sym" for arg in node.args):
        return node.value, tuple(arg.value for arg in node.args)
    if node.op == "mul" and len(node.args) == 2 and all(arg.op == "sym" for arg in node.args):
        first, second = node.args  # S(n) = ..., read as a product where S is no known function name
        if first.value.isupper() and second.value.islower() and len(second.value) == 1:
            return first.value, (second.value,)
    inside = symbols(node)
    if node.op in ("abs", "conj", "fn") and inside and all(name[:1].isupper() or name[:4] == "vec " for name in inside):
        return f"{node.value or node.op} {' '.join(sorted(inside))}", ()  # |AB|, cos A: what is named is a quantity
    if node.op == "apply" and not inside:
        return f"{node.value}(..)", ()  # f(3) = 7
    return "", ()


def _occurs(name: Node, node: Node) -> bool:
    if name.op == "sym":
        return name.value in symbols(node)
    return any(found == name or (found.op == "apply" and found.value == name.value) for found in _all(node))


def _all(node: Node) -> list[Node]:
    return [node, *(found for arg in node.args for found in _all(arg))]


def _one_value(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The constants of a chain, exact one first, if they agree (a decimal up to its last place); () if they do not."""
    budget = Budget(4000)
    exact = [node for node in nodes if as_decimal(node) is None]
    rough = [node for node in nodes if as_decimal(node) is not None]
    if any(shaped(node).kind != "scalar" for node in nodes):
        return ()
    reference = exact[-1] if exact else rough[0]
    for node in exact[:-1]:
        if not equal(node, reference, budget):
            raise Unreadable("a chain of equalities that does not hold")
    for node in rough:
        found = as_decimal(node)
        assert found is not None
        if not numeric_gap(node, reference, found[1], budget):
            raise Unreadable("a chain of equalities that does not hold")
    return (reference, rough[-1]) if exact and rough else (reference,)


def _one_expression(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The last expression of an identity such as (a+b)(a-b) = a^2 - b^2; () if it is no identity."""
    budget = Budget(6000)
    if any(node.op in ("chain", "group", "set", "builder", "union") for node in nodes):
        return ()
    return (nodes[-1],) if all(equal(node, nodes[-1], budget) for node in nodes[:-1]) else ()


def both_signs(node: Node) -> list[Node]:
    """What the plus-minus signs stand for: all of them together, or each by itself where there is no minus-plus."""
    together = has_op(node, frozenset({"mp"}))
    count = sum(found.op in _SIGNED for found in _all(node))
    if count > 4:
        raise Unreadable("too many plus-minus signs")
    if together or count == 1:
        return [_signed(node, [sign] * count)[0] for sign in (True, False)]
    found = []
    for choice in range(2**count):
        found.append(_signed(node, [bool(choice >> k & 1) for k in range(count)])[0])
    return found


def _signed(node: Node, signs: list[bool]) -> tuple[Node, list[bool]]:
    """The node with its plus-minus signs decided, and the decisions that are left."""
    if node.op in _SIGNED:
        plus, left = signs[0], signs[1:]
        inner, left = _signed(node.args[0], left)
        return (inner if plus == (node.op == "pm") else Node("neg", (inner,))), left
    args = []
    for arg in node.args:
        new, signs = _signed(arg, signs)
        args.append(new)
    return (node._replace(args=tuple(args)) if args else node), signs
