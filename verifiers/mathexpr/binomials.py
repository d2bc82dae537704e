"""Reads binomial coefficients in other notations: C_{2n}^n and C(2n, n)."""

from __future__ import annotations

import itertools

from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.limits import Unreadable
from verifiers.mathexpr.nodes import Node, symbol
from verifiers.mathexpr.parser import Parser
from verifiers.mathexpr.tokens import tokenize

_INDEXED = lazy_pattern(r"C_\{([\w+-]{1,20})\}")


def chosen(node: Node) -> Node:
    """Returns the node with its C_n^k and C(n, k) as binomial coefficients. For an answer whose gold knows no C."""
    args = tuple(map(chosen, node.args))
    indexed = _INDEXED.fullmatch(args[0].value) if node.op == "pow" and args[0].op == "sym" else None
    if indexed:
        try:
            return Node("binom", (Parser(tokenize(indexed[1])).whole(), args[1]))
        except Unreadable:
            return node
    if node.op == "apply" and node.value == "C" and len(args) == 2:
        return Node("binom", args)
    if node.op == "mul":
        for at, (first, second) in enumerate(itertools.pairwise(args)):
            if first == symbol("C") and second.op == "group" and len(second.args) == 2 and second.value == "()":
                ways = Node("binom", second.args)
                return Node("mul", (*args[:at], ways, *args[at + 2 :])) if len(args) > 2 else ways
    return node.with_args(args) if args else node
