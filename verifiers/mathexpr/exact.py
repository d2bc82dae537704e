"""Exact rational values of constant expressions, with the size of every result estimated before it is made."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from verifiers.mathexpr.limits import MAX_BITS, MAX_TERMS
from verifiers.mathexpr.nodes import Node, has_op, number, replace, symbol, walk


def rational(node: Node) -> Fraction | None:
    """The value if it is rational and of at most MAX_BITS bits, else None (irrational, symbolic, too big)."""
    match node.op:
        case "num":
            return node.value if isinstance(node.value, Fraction) else None
        case "dec":
            return Fraction(node.value[0])
        case "base":
            return Fraction(int(*node.value))
        case "add":
            return _folded(node, Fraction(0))
        case "mul":
            return _folded(node, Fraction(1))
        case "neg":
            inner = rational(node.args[0])
            return None if inner is None else -inner
        case "percent":
            inner = rational(node.args[0])
            return None if inner is None else inner / 100
        case "abs":
            inner = rational(node.args[0])
            return None if inner is None else abs(inner)
        case "conj":
            return rational(node.args[0])
        case "div":
            top, bottom = rational(node.args[0]), rational(node.args[1])
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
    return sum(map(_bits, values)) <= MAX_BITS


def _folded(node: Node, start: Fraction) -> Fraction | None:
    total = start
    for arg in node.args:
        value = rational(arg)
        if value is None or not _small(total, value):
            return None
        total = total + value if node.op == "add" else total * value
    return total


def _power(node: Node) -> Fraction | None:
    base, exponent = rational(node.args[0]), rational(node.args[1])
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
    if abs(exponent) * _bits(base) > MAX_BITS:
        return None
    return Fraction(base**exponent.numerator)


def exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The rational root of a non-negative rational, if it has one."""
    top, bottom = _integer_root(value.numerator, degree), _integer_root(value.denominator, degree)
    return None if top is None or bottom is None else Fraction(top, bottom)


def _integer_root(value: int, degree: int) -> int | None:
    if degree == 2:
        root = math.isqrt(value)
        return root if root * root == value else None
    if value.bit_length() > 2000 or degree < 1:
        return None
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < value:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == value else None


def integer(value: Fraction | None, most: int) -> int | None:
    """The value as an integer from 0 to `most`."""
    return value.numerator if value is not None and value.denominator == 1 and 0 <= value <= most else None


@functools.lru_cache(maxsize=64)
def _factorial(count: int) -> int:
    return math.factorial(count)


@functools.lru_cache(maxsize=64)
def _binomial(n: int, k: int) -> int:
    return math.comb(n, k)


def _function(node: Node) -> Fraction | None:
    values = [rational(arg) for arg in node.args]
    if any(value is None for value in values):
        return None
    found = [value for value in values if value is not None]
    if node.op == "fact":
        count = integer(found[0], 1000)
        return None if count is None else Fraction(_factorial(count))
    if node.op == "binom":
        n, k = integer(found[0], 2000), integer(found[1], 2000)
        return None if n is None or k is None else Fraction(_binomial(n, k))
    if node.op == "root":
        degree = integer(found[1], 64)
        if not degree or (found[0] < 0 and degree % 2 == 0):
            return None
        root = exact_root(abs(found[0]), degree)
        return None if root is None else root if found[0] >= 0 else -root
    match node.value:
        case "sqrt":
            return exact_root(found[0], 2) if found[0] >= 0 else None
        case "floor":
            return Fraction(math.floor(found[0]))
        case "ceil":
            return Fraction(math.ceil(found[0]))
        case "min":
            return min(found)
        case "max":
            return max(found)
        case "mod" if found[1]:
            return found[0] % found[1] if _small(*found) else None
        case "gcd" | "lcm":
            if all(value.denominator == 1 for value in found) and _small(*found):
                combine = math.gcd if node.value == "gcd" else math.lcm
                return Fraction(combine(*(value.numerator for value in found)))
        case "re":
            return found[0]
    return None


def _series(node: Node) -> Fraction | None:
    body, lower, upper = node.args
    first, last = rational(lower), rational(upper)
    if first is None or last is None or first.denominator != 1 or last.denominator != 1:
        return None
    size = sum(1 for _ in walk(body))
    if (last - first + 1) * size > 10 * MAX_TERMS or has_op(body, frozenset({"sum", "prod"})):
        return None
    terms = [replace(body, symbol(node.value), number(k)) for k in range(int(first), int(last) + 1)]
    return rational(Node("add" if node.op == "sum" else "mul", tuple(terms)))
