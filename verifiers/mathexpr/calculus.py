"""The last rung: what small integrals, limits, derivatives and infinite sums of a gold come to, by SymPy in bounds.

SymPy objects are built from our own trees, node by node; no text ever reaches it. It is loaded only when a gold holds
such an expression: a completion that leaves one unevaluated where the gold does not is refused before.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.limits import TooHard
from verifiers.mathexpr.nodes import BINDERS, INFINITY, Node, number, symbol, symbols, walk

CALCULUS = frozenset({"int", "lim", "deriv"})
_MAX_NODES = 40
_MAX_BITS = 1 << 20
_POINT_BITS = 10.0
_MAX_CALLS = 4_000_000  # calls and returns inside SymPy, about a second at most, once for every gold
_FUNCTIONS = {"sin": "sin", "cos": "cos", "tan": "tan", "ln": "log", "log": "log", "atan": "atan", "asin": "asin",
              "acos": "acos", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "sqrt": "sqrt", "cot": "cot"}  # fmt: skip
_BACK = {"sin": "sin", "cos": "cos", "tan": "tan", "log": "ln", "atan": "atan", "asin": "asin", "acos": "acos",
         "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "cot": "cot"}  # fmt: skip


def unevaluated(node: Node) -> bool:
    """Does it hold an integral, a limit, a derivative or an infinite sum?"""
    return any(
        found.op in CALCULUS or (found.op in ("sum", "prod") and INFINITY in found.args[1:]) for found in walk(node)
    )


class _Stop(BaseException):
    """SymPy has used up its calls; no handler of SymPy's own may swallow this."""


def done(node: Node) -> Node:
    """The node with its integrals, limits, derivatives and infinite sums carried out; unchanged where that fails.

    Raises: TooHard if SymPy needs more than its share of calls.
    """
    found = _done(node)
    if found is None:
        raise TooHard("calculus")
    return found


@functools.lru_cache(maxsize=1024)
def _done(node: Node) -> Node | None:
    if not unevaluated(node) or sum(1 for _ in walk(node)) > _MAX_NODES or _too_large(node):
        return node
    import sympy

    found: Any = None
    try:
        found = _counted(lambda: _build(node, sympy).doit())
    except (_Stop, RecursionError):
        return None
    except (ValueError, TypeError, NotImplementedError, ArithmeticError, AttributeError, KeyError, IndexError):
        return node  # what SymPy raises for what it can't do
    back = _read_back(found, sympy) if found is not None else None
    return node if back is None else back


def _too_large(node: Node) -> bool:
    if sum(found.op in BINDERS or found.op == "deriv" for found in walk(node)) > 2:
        return True
    for found in walk(node):
        if found.op in ("pow", "fact"):
            size = rational(found.args[-1])
            if size is None and not symbols(found.args[-1]):
                return True
            if size is not None and abs(size) > 20:
                return True
    bounds = [arg for found in walk(node) if found.op in BINDERS for arg in found.args[1:]]
    point = max([_POINT_BITS, *(_bits(bound, _POINT_BITS) for bound in bounds)])
    if _bits(node, point) > _MAX_BITS:
        return True
    numbers = [found.value for found in walk(node) if found.op == "num"]
    return any(abs(value.numerator) > 1000 or value.denominator > 1000 for value in numbers)


def _bits(node: Node, point: float) -> float:
    """A bound on the bits of what SymPy may write out, in one step that nothing can stop, once symbols have values.

    Args:
        point: bits of the largest value that stands in for a symbol.
    """
    if node.op == "num":
        return float(max(abs(node.value.numerator), node.value.denominator).bit_length())
    if not node.args:
        return point if node.op == "sym" else 0.0  # pi, e and infinity are never written out
    sizes = [_bits(arg, point) for arg in node.args]
    if node.op == "pow" and sizes[0]:
        return float(sizes[0] * 2.0 ** min(sizes[1], 200.0))
    if node.op == "fact":
        return float(sizes[0] * 2.0 ** min(sizes[0], 200.0))
    return sum(sizes)


def _counted(work: Callable[[], Any]) -> Any:
    """Runs `work` in this thread and stops it after _MAX_CALLS calls; no clock, no signal."""
    left = _MAX_CALLS
    before = sys.getprofile()

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            sys.setprofile(before)
            raise _Stop

    sys.setprofile(count)
    try:
        return work()
    finally:
        sys.setprofile(before)


def _build(node: Node, sympy: Any) -> Any:
    """The SymPy object of a node. Raises KeyError for what is outside the whitelist."""
    args = [_build(arg, sympy) for arg in node.args] if node.op not in ("lim",) else []
    match node.op:
        case "num":
            return sympy.Rational(node.value.numerator, node.value.denominator)
        case "sym":
            return sympy.Symbol(node.value, real=True)
        case "const":
            return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "inf": sympy.oo}[node.value]
        case "add":
            return sympy.Add(*args)
        case "mul":
            return sympy.Mul(*args)
        case "neg":
            return -args[0]
        case "div":
            return args[0] / args[1]
        case "pow":
            return sympy.Pow(*args)
        case "abs":
            return sympy.Abs(args[0])
        case "fn":
            return getattr(sympy, _FUNCTIONS[node.value])(args[0])
        case "fact":
            return sympy.factorial(args[0])
        case "int" if len(args) == 3:
            return sympy.Integral(args[0], (sympy.Symbol(node.value, real=True), args[1], args[2]))
        case "sum":
            return sympy.Sum(args[0], (sympy.Symbol(node.value, real=True), args[1], args[2]))
        case "deriv" if node.args[1].op == "sym":
            return sympy.Derivative(args[0], args[1])
        case "lim":
            body, to = _build(node.args[0], sympy), _build(node.args[1], sympy)
            side = node.args[2].value[4:] or "+-"
            if to in (sympy.oo, -sympy.oo):
                side = "-" if to == sympy.oo else "+"
            return sympy.Limit(body, sympy.Symbol(node.value, real=True), to, side)
    raise KeyError(node.op)


def _read_back(found: Any, sympy: Any) -> Node | None:
    """A SymPy object as a node; None if it holds anything else than elementary functions."""
    if found.is_Rational:
        return number(Fraction(int(found.p), int(found.q)))
    if found.is_Symbol:
        return symbol(found.name)
    constants = {sympy.pi: "pi", sympy.E: "e", sympy.I: "i", sympy.oo: "inf"}
    if found in constants:
        return Node("const", (), constants[found])
    if found == -sympy.oo:
        return Node("neg", (INFINITY,))
    args = [_read_back(arg, sympy) for arg in found.args]
    if not args or None in args:
        return None
    nodes = tuple(arg for arg in args if arg is not None)
    if found.is_Add:
        return Node("add", nodes)
    if found.is_Mul:
        return Node("mul", nodes)
    if found.is_Pow:
        return Node("pow", nodes)
    name = type(found).__name__
    if name == "exp":
        return Node("pow", (Node("const", (), "e"), nodes[0]))
    return Node("fn", nodes, _BACK[name]) if name in _BACK else None
