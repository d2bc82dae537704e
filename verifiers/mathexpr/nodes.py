"""Expression trees: the only form in which the text of a model is evaluated."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from verifiers.mathexpr.limits import MAX_HEIGHT, MAX_NODES, TooHard, spend

BINDERS = frozenset({"sum", "prod", "lim", "int"})  # the first argument is the body, the value the bound name
CALCULUS = frozenset({"int", "lim", "deriv"})
_CALCULUS = CALCULUS | {"sum", "prod"}
_NOTHING: frozenset[str] = frozenset()


class Node:
    """One operation over its arguments; immutable by convention.

    `num` (value: Fraction), `dec` (value: (Fraction, half a unit of the last place)), `sym` (value: name),
    `const` (value: pi, e, i, inf, R, Z, ...), `add`, `mul`, `div`, `neg`, `pow`, `pm`/`mp` (value: sign), `fn` (value:
    function), `apply` (value: name of an unknown function), `fact`, `binom`, `deg`, `abs`, `conj`, `matrix` (value:
    columns), `group` (value: its two brackets), `set`, `builder`, `union`, `minus_set`, `cap`, `chain` (value:
    relations), `ratio`, `base` (value: digits and base), `sum`, `prod`, `int`, `lim`, `deriv`, `prime`, `forall`.

    No tree is higher than MAX_HEIGHT or larger than MAX_NODES: constructing one raises TooHard, so every recursion over
    a tree is shallow and every walk short. Free symbols, operations and digest of a node are computed once.
    """

    __slots__ = ("_digest", "_kinds", "_names", "args", "height", "op", "size", "value")
    size: int  # number of nodes; one that occurs twice counts twice
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
        """Returns the same operation over other arguments."""
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


MINUS_ONE = Node("num", (), Fraction(-1))
PI, INFINITY = Node("const", (), "pi"), Node("const", (), "inf")


def number(value: int | Fraction) -> Node:
    """Returns an exact rational as a node."""
    return Node("num", (), Fraction(value))


def symbol(name: str) -> Node:
    """Returns the symbol of that name as a node."""
    return Node("sym", (), name)


def walk(node: Node) -> Iterator[Node]:
    """Yields the node and all nodes below it. Raises TooHard."""
    spend(node.size >> 3)
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(current.args)


def symbols(node: Node) -> frozenset[str]:
    """Returns the names of the free symbols, computed once per node."""
    names = node._names
    if names is None:
        if node.op == "sym":
            names = frozenset((node.value,))
        elif not node.args:
            names = _NOTHING
        elif _binds(node):
            inside = symbols(node.args[0])
            names = (inside - {node.value}).union(*map(symbols, node.args[1:]))
        else:
            names = symbols(node.args[0])
            for arg in node.args[1:]:
                more = symbols(arg)
                if not more <= names:
                    names |= more
        node._names = names
    return names


def _binds(node: Node) -> bool:
    """Returns whether the node binds its name in its body; the x of an indefinite integral is free."""
    return node.op in BINDERS and (node.op != "int" or len(node.args) > 1)


def kinds(node: Node) -> frozenset[str]:
    """Returns the operations in the tree, computed once per node."""
    ops = node._kinds
    if ops is None:
        ops = _NOTHING
        for arg in node.args:
            more = kinds(arg)
            if not more <= ops:
                ops = ops | more if ops else more
        if node.op not in ops:
            ops = ops | {node.op} if ops else _alone(node.op)
        node._kinds = ops
    return ops


@functools.cache
def _alone(op: str) -> frozenset[str]:
    return frozenset((op,))


def has_op(node: Node, ops: frozenset[str]) -> bool:
    """Returns whether any of the operations occurs in the tree."""
    return not kinds(node).isdisjoint(ops)


def unevaluated(node: Node) -> bool:
    """Returns whether the tree contains an integral, a limit, a derivative or an infinite sum."""
    ops = kinds(node)
    if ops.isdisjoint(_CALCULUS):
        return False
    return not ops.isdisjoint(CALCULUS) or any(map(_is_infinite, walk(node)))


def is_calculus(node: Node) -> bool:
    """Returns whether the node itself is an integral, a limit, a derivative or an infinite sum."""
    return node.op in CALCULUS or _is_infinite(node)


def _is_infinite(node: Node) -> bool:
    return node.op in ("sum", "prod") and INFINITY in node.args[1:]


def digest(node: Node) -> bytes:
    """Returns a 16-byte hash of the tree, the same in every process; computed once per node."""
    known = node._digest
    if known is None:
        hashed = hashlib.blake2b(f"{node.op} {len(node.args)} {_spelled(node.value)}".encode(), digest_size=16)
        for arg in node.args:
            hashed.update(digest(arg))
        known = node._digest = hashed.digest()
    return known


def _spelled(value: Any) -> str:
    if isinstance(value, Fraction):  # in base 16, as only that takes linear time for long integers
        return f"{value.numerator:x}/{value.denominator:x}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_spelled, value))})"
    return repr(value)


def rename(node: Node, names: Mapping[str, str]) -> Node:
    """Returns the node with free symbols renamed. Raises TooHard."""
    return substitute(node, {old: symbol(new) for old, new in names.items()})


def substitute(node: Node, values: Mapping[str, Node]) -> Node:
    """Returns the node with free symbols replaced by values, all at once. Raises TooHard."""
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
