"""Expression trees: the only form in which anything a model wrote is ever looked at."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple


class Node(NamedTuple):
    """One operation over its arguments.

    `num` (value: Fraction), `dec` (value: (Fraction, half a unit of the last place)), `sym` (value: name),
    `const` (value: pi, e, i, inf, R, Z, ...), `add`, `mul`, `div`, `neg`, `pow`, `pm`/`mp` (value: sign), `fn` (value:
    function), `apply` (value: name of an unknown function), `fact`, `binom`, `deg`, `abs`, `conj`, `matrix` (value:
    columns), `group` (value: its two brackets), `set`, `builder`, `union`, `minus_set`, `cap`, `chain` (value:
    relations), `ratio`, `base` (value: digits and base), `sum`, `prod`, `int`, `lim`, `deriv`, `prime`, `forall`.
    """

    op: str
    args: tuple[Node, ...] = ()
    value: Any = None


ZERO, ONE, MINUS_ONE = Node("num", (), Fraction(0)), Node("num", (), Fraction(1)), Node("num", (), Fraction(-1))
PI, INFINITY = Node("const", (), "pi"), Node("const", (), "inf")
BINDERS = frozenset({"sum", "prod", "lim", "int"})  # their first argument is the body, their value the bound name


def number(value: int | Fraction) -> Node:
    return Node("num", (), Fraction(value))


def symbol(name: str) -> Node:
    return Node("sym", (), name)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it; iterative, so that depth can't hurt."""
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(found.args)


def symbols(node: Node) -> frozenset[str]:
    """Names of the free symbols."""
    if node.op == "sym":
        return frozenset((node.value,))
    below: frozenset[str] = frozenset().union(*map(symbols, node.args)) if node.args else frozenset()
    if node.op in ("sum", "prod", "lim") or (node.op == "int" and len(node.args) > 1):
        bounds: frozenset[str] = frozenset().union(*map(symbols, node.args[1:]))
        return (symbols(node.args[0]) - {node.value}) | bounds
    return below


def has_op(node: Node, ops: frozenset[str]) -> bool:
    return any(found.op in ops for found in walk(node))


def rename(node: Node, names: dict[str, str]) -> Node:
    """The node with free symbols renamed."""
    if node.op == "sym":
        return symbol(names.get(node.value, node.value))
    if node.op in BINDERS and node.value in names:
        names = {old: new for old, new in names.items() if old != node.value}
    return node._replace(args=tuple(rename(arg, names) for arg in node.args)) if node.args else node


def replace(node: Node, old: Node, new: Node) -> Node:
    """The node with every `old` in it turned into `new`."""
    if node == old:
        return new
    return node._replace(args=tuple(replace(arg, old, new) for arg in node.args)) if node.args else node
