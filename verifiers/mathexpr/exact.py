"""Exact rational values of constant expressions; the size of each result is estimated before it is computed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

from verifiers.mathexpr.limits import MAX_BITS, MAX_TERMS, spend
from verifiers.mathexpr.nodes import Node, has_op, number, substitute, symbols

_UNARY: dict[str, Callable[[Fraction], Fraction]] = {
    "neg": lambda value: -value, "percent": lambda value: value / 100, "abs": abs, "conj": lambda value: value,
}  # fmt: skip
_factorial = functools.lru_cache(maxsize=64)(math.factorial)
_binomial = functools.lru_cache(maxsize=64)(math.comb)


def rational(node: Node) -> Fraction | None:
    """Returns the value if it is rational with at most MAX_BITS bits, else None. Raises TooHard."""
    if node.op == "num":
        return node.value if isinstance(node.value, Fraction) else None
    if symbols(node):
        return None
    spend(1 + (node.size >> 2))
    return _value(node)


def _value(node: Node) -> Fraction | None:
    match node.op:
        case "num":
            return node.value if isinstance(node.value, Fraction) else None
        case "dec":
            return Fraction(node.value[0])
        case "base":
            return Fraction(int(*node.value))
        case "add" | "mul":
            return _folded(node)
        case "neg" | "percent" | "abs" | "conj":
            inner = _value(node.args[0])
            return None if inner is None else _UNARY[node.op](inner)
        case "div":
            top = _value(node.args[0])
            bottom = None if top is None else _value(node.args[1])
            return None if top is None or not bottom or not _small(top, bottom) else top / bottom
        case "pow":
            return _power(node)
        case "fact" | "binom" | "root" | "fn":
            return _function(node)
        case "sum" | "prod":
            return _series(node)
    return None


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def _small(*values: Fraction) -> bool:
    """Returns whether an operation on the values stays small; spends its cost, quadratic in their length."""
    bits = sum(map(_bits, values))
    if bits > MAX_BITS:
        return False
    if bits > 1000:
        spend(bits * bits >> 20)
    return True


def _folded(node: Node) -> Fraction | None:
    total = _value(node.args[0])
    for arg in node.args[1:]:
        value = None if total is None else _value(arg)
        if total is None or value is None or not _small(total, value):
            return None
        total = total + value if node.op == "add" else total * value
    return total


def _power(node: Node) -> Fraction | None:
    base = _value(node.args[0])
    exponent = None if base is None else _value(node.args[1])
    if base is None or exponent is None:
        return None
    if exponent.denominator != 1:
        if exponent.denominator > 64 or base < 0:
            return None
        rooted = exact_root(base, exponent.denominator)
        if rooted is None:
            return None
        base, exponent = rooted, Fraction(exponent.numerator)
    if base == 0:
        return Fraction(0) if exponent > 0 else None  # 0^0 is left undecided
    if abs(base) == 1:
        return Fraction(1) if base == 1 or exponent.numerator % 2 == 0 else Fraction(-1)
    bits = abs(exponent) * _bits(base)
    if bits > MAX_BITS:
        return None
    spend(int(bits * bits) >> 22)
    return Fraction(base**exponent.numerator)


def exact_root(value: Fraction, degree: int) -> Fraction | None:
    """Returns the root of a non-negative rational if the root is rational, else None."""
    top, bottom = _integer_root(value.numerator, degree), _integer_root(value.denominator, degree)
    return None if top is None or bottom is None else Fraction(top, bottom)


def _integer_root(value: int, degree: int) -> int | None:
    bits = value.bit_length()
    if degree == 2:
        spend(bits * bits >> 22)
        root = math.isqrt(value)
        return root if root * root == value else None
    if bits > 2000 or degree < 1:
        return None
    if value < 2 or degree == 1:
        return value
    spend(1 + (bits >> 6))
    root = 1 << -(-bits // degree)  # Newton's method from above
    while True:
        lower = ((degree - 1) * root + value // root ** (degree - 1)) // degree
        if lower >= root:
            return root if root**degree == value else None
        root = lower


def integer(value: Fraction | None, most: int) -> int | None:
    """Returns the value as an integer if it is one from 0 to `most`, else None."""
    return value.numerator if value is not None and value.denominator == 1 and 0 <= value <= most else None


def _function(node: Node) -> Fraction | None:
    values: list[Fraction] = []
    for arg in node.args:
        value = _value(arg)
        if value is None:
            return None
        values.append(value)
    if node.op == "fact":
        count = integer(values[0], 1000)
        return None if count is None else Fraction(_factorial(count))
    if node.op == "binom":
        n, k = integer(values[0], 2000), integer(values[1], 2000)
        return None if n is None or k is None else Fraction(_binomial(n, k))
    if node.op == "root":
        degree = integer(values[1], 64)
        if not degree or (values[0] < 0 and degree % 2 == 0):
            return None
        root = exact_root(abs(values[0]), degree)
        return None if root is None else root if values[0] >= 0 else -root
    match node.value:
        case "sqrt":
            return exact_root(values[0], 2) if values[0] >= 0 else None
        case "floor":
            return Fraction(math.floor(values[0]))
        case "ceil":
            return Fraction(math.ceil(values[0]))
        case "min":
            return min(values) if _small(*values) else None
        case "max":
            return max(values) if _small(*values) else None
        case "mod" if values[1]:
            return values[0] % values[1] if _small(*values) else None
        case "gcd" | "lcm":
            if all(value.denominator == 1 for value in values) and _small(*values):
                combine = math.gcd if node.value == "gcd" else math.lcm
                return Fraction(combine(*(value.numerator for value in values)))
        case "re":
            return values[0]
    return None


def _series(node: Node) -> Fraction | None:
    body, lower, upper = node.args
    first, last = _value(lower), _value(upper)
    if first is None or last is None or first.denominator != 1 or last.denominator != 1:
        return None
    if (last - first + 1) * body.size > 10 * MAX_TERMS or has_op(body, frozenset({"sum", "prod"})):
        return None
    if first > last:
        return Fraction(0 if node.op == "sum" else 1)
    spend(int(last - first + 1) * body.size >> 1)
    terms = [substitute(body, {node.value: number(k)}) for k in range(int(first), int(last) + 1)]
    return _folded(Node("add" if node.op == "sum" else "mul", tuple(terms)))
