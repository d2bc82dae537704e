"""Expression trees: the only form in which anything a model wrote is ever looked at."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from verifiers.mathexpr.limits import MAX_HEIGHT, MAX_NODES, TooHard, spend


class Node:
    """One operation over its arguments; never changed once made.

    `num` (value: Fraction), `dec` (value: (Fraction, half a unit of the last place)), `sym` (value: name),
    `const` (value: pi, e, i, inf, R, Z, ...), `add`, `mul`, `div`, `neg`, `pow`, `pm`/`mp` (value: sign), `fn` (value:
    function), `apply` (value: name of an unknown function), `fact`, `binom`, `deg`, `abs`, `conj`, `matrix` (value:
    columns), `group` (value: its two brackets), `set`, `builder`, `union`, `minus_set`, `cap`, `chain` (value:
    relations), `ratio`, `base` (value: digits and base), `sum`, `prod`, `int`, `lim`, `deriv`, `prime`, `forall`.

    No tree is higher than MAX_HEIGHT or larger than MAX_NODES: making it raises TooHard, so every recursion over a
    tree is shallow and every walk short. What is asked of a node again and again is worked out once.
    """

    __slots__ = ("_digest", "_kinds", "_names", "args", "height", "op", "size", "value")
    size: int  # nodes of the tree; one that stands in two places counts twice
    height: int

    def __init__(self, op: str, args: tuple[Node, ...] = (), value: Any = None) -> None:
        self.op = op
        self.args = args
        self.value = value
        self._names: frozenset[str] | None = None
        self._kinds: frozenset[str] | None = None
        self._digest: bytes | None = None
        size, height = 1, 0
        for arg in args:
            size += arg.size
            if arg.height >= height:
                height = arg.height + 1
        if height > MAX_HEIGHT or size > MAX_NODES:
            raise TooHard(f"an expression of {size} parts, nested {height} deep")
        self.size = size
        self.height = height

    def with_args(self, args: tuple[Node, ...]) -> Node:
        """The same operation over other arguments."""
        return Node(self.op, args, self.value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Node):
            return NotImplemented
        return self.size == other.size and self.op == other.op and self.value == other.value and self.args == other.args

    def __hash__(self) -> int:
        return hash(digest(self))

    def __repr__(self) -> str:
        return f"Node({self.op!r}, {self.args!r}, {self.value!r})"


ZERO, ONE, MINUS_ONE = Node("num", (), Fraction(0)), Node("num", (), Fraction(1)), Node("num", (), Fraction(-1))
PI, INFINITY = Node("const", (), "pi"), Node("const", (), "inf")
BINDERS = frozenset({"sum", "prod", "lim", "int"})  # their first argument is the body, their value the bound name
CALCULUS = frozenset({"int", "lim", "deriv"})
_CALCULUS = CALCULUS | {"sum", "prod"}
_NOTHING: frozenset[str] = frozenset()


def number(value: int | Fraction) -> Node:
    return Node("num", (), Fraction(value))


def symbol(name: str) -> Node:
    return Node("sym", (), name)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    spend(node.size >> 3)
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(found.args)


def symbols(node: Node) -> frozenset[str]:
    """Names of the free symbols, worked out once for every node."""
    found = node._names
    if found is None:
        if node.op == "sym":
            found = frozenset((node.value,))
        elif not node.args:
            found = _NOTHING
        elif _binds(node):
            inside = symbols(node.args[0])
            found = (inside - {node.value}).union(*map(symbols, node.args[1:]))
        else:
            found = symbols(node.args[0])
            for arg in node.args[1:]:
                more = symbols(arg)
                if not more <= found:
                    found |= more
        node._names = found
    return found


def _binds(node: Node) -> bool:
    """Is the name of the node bound in its body? The x of an indefinite integral is free."""
    return node.op in BINDERS and (node.op != "int" or len(node.args) > 1)


def kinds(node: Node) -> frozenset[str]:
    """The operations in the tree, worked out once for every node."""
    found = node._kinds
    if found is None:
        found = _NOTHING
        for arg in node.args:
            more = kinds(arg)
            if not more <= found:
                found = found | more if found else more
        if node.op not in found:
            found = found | {node.op} if found else _alone(node.op)
        node._kinds = found
    return found


@functools.cache
def _alone(op: str) -> frozenset[str]:
    return frozenset((op,))


def has_op(node: Node, ops: frozenset[str]) -> bool:
    return not kinds(node).isdisjoint(ops)


def unevaluated(node: Node) -> bool:
    """Does it hold an integral, a limit, a derivative or an infinite sum?"""
    found = kinds(node)
    if found.isdisjoint(_CALCULUS):
        return False
    return not found.isdisjoint(CALCULUS) or any(map(_is_infinite, walk(node)))


def is_calculus(node: Node) -> bool:
    """Is the node itself an integral, a limit, a derivative or an infinite sum?"""
    return node.op in CALCULUS or _is_infinite(node)


def _is_infinite(node: Node) -> bool:
    return node.op in ("sum", "prod") and INFINITY in node.args[1:]


def digest(node: Node) -> bytes:
    """16 bytes that are the same for equal trees only, in every process; worked out once for every node."""
    found = node._digest
    if found is None:
        told = hashlib.blake2b(f"{node.op} {len(node.args)} {_spelled(node.value)}".encode(), digest_size=16)
        for arg in node.args:
            told.update(digest(arg))
        found = node._digest = told.digest()
    return found


def _spelled(value: Any) -> str:
    if isinstance(value, Fraction):  # in base 16: long integers have no other spelling in linear time
        return f"{value.numerator:x}/{value.denominator:x}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_spelled, value))})"
    return repr(value)


def rename(node: Node, names: Mapping[str, str]) -> Node:
    """The node with free symbols renamed."""
    return substitute(node, {old: symbol(new) for old, new in names.items()})


def substitute(node: Node, values: Mapping[str, Node]) -> Node:
    """The node with values in the place of free symbols, all at once."""
    spend(node.size >> 2)
    return _substituted(node, values)


def _substituted(node: Node, values: Mapping[str, Node]) -> Node:
    if symbols(node).isdisjoint(values):
        return node
    if node.op == "sym":
        return values[node.value]
    if node.op == "int" and len(node.args) == 1 and node.value in values:
        name = values[node.value]
        return Node("int", (_substituted(node.args[0], values),), name.value) if name.op == "sym" else node
    if _binds(node) and node.value in values:
        outside = {name: value for name, value in values.items() if name != node.value}
        body, *bounds = node.args
        return node.with_args((_substituted(body, outside), *(_substituted(bound, values) for bound in bounds)))
    return node.with_args(tuple([_substituted(arg, values) for arg in node.args]))
