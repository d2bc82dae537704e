"""Evaluates the integrals, limits, derivatives and infinite sums of a gold with SymPy, within bounds.

SymPy objects are built from our own trees, node by node; no text reaches SymPy. Nothing of a completion does either:
only the reading of a gold uses this module, and comparisons look the results up.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.nodes import BINDERS, INFINITY, Node, is_calculus, number, symbol, symbols, unevaluated, walk

_MAX_NODES = 40
_MAX_BITS = 1 << 20
_POINT_BITS = 10.0
_MAX_CALLS = 450_000  # calls and returns within SymPy for one gold, about a quarter of a second
_FUNCTIONS = {"sin": "sin", "cos": "cos", "tan": "tan", "ln": "log", "log": "log", "atan": "atan", "asin": "asin",
              "acos": "acos", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "sqrt": "sqrt", "cot": "cot"}  # fmt: skip
_BACK = {theirs: ours for ours, theirs in _FUNCTIONS.items() if ours not in ("log", "sqrt")}


_turn = threading.Lock()


class _Stop(BaseException):
    """SymPy has used up its calls. A BaseException, so that SymPy's own handlers don't catch it."""


def evaluated(nodes: Iterable[Node]) -> dict[Node, Node]:
    """Returns the values of the outermost integrals, limits, derivatives and infinite sums in a gold's expressions.

    The result omits those whose size or numbers are too large, and those that SymPy can't evaluate within its calls.
    """
    values: dict[Node, Node] = {}
    left = _MAX_CALLS
    outermost = [part for node in nodes for part in _outermost(node)]
    for node in dict.fromkeys(outermost):
        if node.size > _MAX_NODES or _too_large(node):
            continue
        result, spent = _value(node, left)
        left -= spent
        if result is not None:
            values[node] = result
    return values


def _outermost(node: Node) -> list[Node]:
    if not unevaluated(node):
        return []
    if is_calculus(node):
        return [node]
    return [part for arg in node.args for part in _outermost(arg)]


def _value(node: Node, most: int) -> tuple[Node | None, int]:
    """Returns (the value of the node or None, the number of calls that it took).

    One thread at a time: SymPy's cache, which spares calls, and the hook for lost exceptions are the whole process's.
    """
    with _turn:
        return _value_alone(node, most)


def _renew_turn() -> None:
    global _turn
    _turn = threading.Lock()  # a thread that does not exist in a forked child may hold the old one


os.register_at_fork(after_in_child=_renew_turn)


def _value_alone(node: Node, most: int) -> tuple[Node | None, int]:
    sympy = _loaded()
    sympy.core.cache.clear_cache()  # cached results would change the count
    calls = _Calls(most)
    try:
        result = calls.of(lambda: _build(node, sympy).doit())
        value = _read_back(result, sympy)
    except (_Stop, RecursionError):
        return None, most
    except (ValueError, TypeError, NotImplementedError, ArithmeticError, AttributeError, KeyError, IndexError):
        value = None  # SymPy raises these for what it can't evaluate
    return (None if value == node else value), most - calls.left


@functools.cache
def _loaded() -> Any:
    """Imports SymPy and the parts that it loads on first use, so that loading them is not counted against a gold."""
    import sympy
    import sympy.core.cache

    x = sympy.Symbol("x", real=True)
    sympy.Integral(sympy.exp(-(x**2)), (x, 0, sympy.oo)).doit()
    sympy.Limit(sympy.sin(x) / x, x, 0).doit()
    sympy.Sum(x / 3**x, (x, 1, sympy.oo)).doit()
    return sympy


def _too_large(node: Node) -> bool:
    if sum(part.op in BINDERS or part.op == "deriv" for part in walk(node)) > 2:
        return True
    for part in walk(node):
        if part.op in ("pow", "fact"):
            size = rational(part.args[-1])
            if size is None and not symbols(part.args[-1]):
                return True
            if size is not None and abs(size) > 20:
                return True
    bounds = [arg for part in walk(node) if part.op in BINDERS for arg in part.args[1:]]
    point = max([_POINT_BITS, *(_bits(bound, _POINT_BITS) for bound in bounds)])
    if _bits(node, point) > _MAX_BITS:
        return True
    numbers = [part.value for part in walk(node) if part.op == "num"]
    return any(abs(value.numerator) > 1000 or value.denominator > 1000 for value in numbers)


def _bits(node: Node, point: float) -> float:
    """Bounds the bits of a number that SymPy may compute in one uninterruptible step once symbols have values.

    Args:
        point: bits of the largest value that replaces a symbol.
    """
    if node.op == "num":
        return float(max(abs(node.value.numerator), node.value.denominator).bit_length())
    if not node.args:
        return point if node.op == "sym" else 0.0  # pi, e and infinity are never computed
    sizes = [_bits(arg, point) for arg in node.args]
    if node.op == "pow" and sizes[0]:
        return float(sizes[0] * 2.0 ** min(sizes[1], 200.0))
    if node.op == "fact":
        return float(sizes[0] * 2.0 ** min(sizes[0], 200.0))
    return sum(sizes)


class _Calls:
    """Runs work in this thread and stops it after a number of calls, without a clock or a signal.

    An exception that a hook raises while a generator is closed is lost, and Python removes the hook. So each of two
    hooks sets the other before it raises: work that continues is stopped at its next call.
    """

    def __init__(self, most: int) -> None:
        self.left = most
        self.over = False

    def of(self, work: Callable[[], Any]) -> Any:
        before, trace, unraisable = sys.getprofile(), sys.gettrace(), sys.unraisablehook

        def count(frame: Any, event: str, argument: Any) -> None:
            self.left -= 1
            if self.left < 0 and not self.over and frame.f_code is not report.__code__:
                sys.settrace(again)
                raise _Stop

        def again(frame: Any, event: str, argument: Any) -> None:
            if not self.over and frame.f_code is not report.__code__:
                sys.setprofile(count)
                raise _Stop

        def report(lost: Any) -> None:  # a lost _Stop needs no message
            if lost.exc_type is not _Stop:
                unraisable(lost)

        sys.unraisablehook = report
        sys.setprofile(count)
        try:
            return work()
        finally:
            self.over = True
            sys.unraisablehook = unraisable
            sys.setprofile(before)
            sys.settrace(trace)


def _build(node: Node, sympy: Any) -> Any:
    """Returns the SymPy object of a node. Raises KeyError for an operation or name outside the whitelist."""
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


def _read_back(expression: Any, sympy: Any) -> Node | None:
    """Returns a SymPy object as a node; None if it contains anything but elementary functions."""
    if expression.is_Rational:
        return number(Fraction(int(expression.p), int(expression.q)))
    if expression.is_Symbol:
        return symbol(expression.name)
    constants = {sympy.pi: "pi", sympy.E: "e", sympy.I: "i", sympy.oo: "inf"}
    if expression in constants:
        return Node("const", (), constants[expression])
    if expression == -sympy.oo:
        return Node("neg", (INFINITY,))
    args = [_read_back(arg, sympy) for arg in expression.args]
    if not args or None in args:
        return None
    nodes = tuple(arg for arg in args if arg is not None)
    if expression.is_Add:
        return Node("add", nodes)
    if expression.is_Mul:
        return Node("mul", nodes)
    if expression.is_Pow:
        return Node("pow", nodes)
    name = type(expression).__name__
    if name == "exp":
        return Node("pow", (Node("const", (), "e"), nodes[0]))
    return Node("fn", nodes, _BACK[name]) if name in _BACK else None
