"""Evaluation in real and complex intervals: values with disjoint intervals are certainly different."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mpmath.libmp import fone, from_int, fzero, mpf_cmp, mpf_floor, mpf_le, mpf_sub, to_int
from mpmath.libmp import libmpi as mpi

from verifiers.mathexpr.evaluate import Undefined, Unsupported, Value, Walk
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.limits import Budget, TooHard, spend
from verifiers.mathexpr.modular import Modular, small_seed
from verifiers.mathexpr.nodes import Node

Real = Any  # an mpi: (lowest, highest), two mpf tuples
_ZERO = (fzero, fzero)
_ONE = (fone, fone)
_MAX_MAGNITUDE = 300  # bits before the point of an argument of exp, sin, cos
_FLOOR_BITS = 400
_ordered = functools.cmp_to_key(mpf_cmp)


class Complex:
    """A rectangle: intervals of the real and the imaginary part; the latter is None if the number is certainly real."""

    __slots__ = ("im", "re")

    def __init__(self, re: Real, im: Real | None = None) -> None:
        self.re = re
        self.im = im


def _pair(a: Complex) -> Any:
    return a.re, a.im if a.im is not None else _ZERO


def _of(pair: Any) -> Complex:
    return Complex(pair[0], None if pair[1] == _ZERO else pair[1])


def _sign(a: Real) -> int | None:
    """Returns -1, 0, 1, or None if the interval contains zero and other numbers."""
    low, high = mpf_cmp(a[0], fzero), mpf_cmp(a[1], fzero)
    if low > 0:
        return 1
    if high < 0:
        return -1
    return 0 if low == high == 0 else None


def _magnitude(a: Real) -> int:
    """Returns the number of bits before the point of the larger end."""
    return max((end[2] + end[3] for end in a if end[1]), default=-10_000)


class Intervals:
    """Real and complex intervals of `precision` bits."""

    def __init__(self, precision: int, *, certain: bool = False) -> None:
        self.precision = precision
        self.certain = certain  # no made-up values for unknowns
        times = max(1, precision >> 10)
        self.cost, self.heavy = (3, 10) if precision < 300 else (10 * times, 40 * times)

    def number(self, value: Fraction) -> Complex:
        bits = value.numerator.bit_length() + value.denominator.bit_length()
        if bits > 1000:
            spend(bits >> 7)
        top = from_int(value.numerator)
        if value.denominator == 1:
            exact = (top, top)
            return Complex(mpi.mpi_pos(exact, self.precision) if value.numerator.bit_length() > 4000 else exact)
        bottom = from_int(value.denominator)
        return Complex(mpi.mpi_div((top, top), (bottom, bottom), self.precision))

    def constant(self, name: str) -> Complex:
        if name == "pi":
            return Complex(mpi.mpi_pi(self.precision))
        if name == "e":
            return Complex(mpi.mpi_exp(_ONE, self.precision))
        if name == "i":
            return Complex(_ZERO, _ONE)
        raise Unsupported(name)

    def add(self, a: Complex, b: Complex) -> Complex:
        re = mpi.mpi_add(a.re, b.re, self.precision)
        if a.im is None or b.im is None:
            return Complex(re, b.im if a.im is None else a.im)
        im = mpi.mpi_add(a.im, b.im, self.precision)
        return Complex(re, None if im == _ZERO else im)

    def mul(self, a: Complex, b: Complex) -> Complex:
        if a.im is None and b.im is None:
            return Complex(mpi.mpi_mul(a.re, b.re, self.precision))
        return _of(mpi.mpci_mul(_pair(a), _pair(b), self.precision))

    def inverse(self, a: Complex) -> Complex:
        if a.im is None:
            if _sign(a.re) in (0, None):
                raise Undefined
            return Complex(mpi.mpi_div(_ONE, a.re, self.precision))
        if _sign(a.im) in (0, None) and _sign(a.re) in (0, None):
            raise Undefined
        return _of(mpi.mpci_div((_ONE, _ZERO), _pair(a), self.precision))

    # -- powers and roots

    def power(self, node: Node, walk: Walk) -> Complex:
        base = walk.value(node.args[0])
        exact = rational(node.args[1])
        if isinstance(base, Complex) and exact is not None:
            if exact.denominator == 1:
                return self._whole_power(base, exact.numerator)
            if exact.denominator == 2 and abs(exact) < 1000:
                return self._whole_power(self.sqrt(base), exact.numerator)
        exponent = walk.value(node.args[1])
        if not isinstance(base, Complex) or not isinstance(exponent, Complex):
            raise Unsupported("power")
        low, high = exponent.re
        if exponent.im is None and low == high == mpf_floor(low, 60) and _magnitude(exponent.re) < 60:
            return self._whole_power(base, to_int(low))
        if base.im is None and _sign(base.re) == 0:
            if exponent.im is None and _sign(exponent.re) == 1:
                return Complex(_ZERO)
            raise Undefined
        return self.exp(self.mul(exponent, self.log(base)))

    def _whole_power(self, a: Complex, power: int) -> Complex:
        if power == 0:
            if a.im is None and _sign(a.re) in (0, None):
                raise Undefined
            return Complex(_ONE)
        if power < 0:
            return self.inverse(self._whole_power(a, -power))
        spend(power.bit_length() * (self.heavy >> (a.im is None)))
        if power.bit_length() > 64 or abs(_magnitude(a.re)) * power > 1 << 40:
            raise Unsupported("a power this large")
        if a.im is None:
            return Complex(mpi.mpi_pow_int(a.re, power, self.precision + 2 * power.bit_length()))
        if power > 1 << 20:
            raise Unsupported("a complex power this large")
        return _of(mpi.mpci_pow_int(_pair(a), power, self.precision + 2 * power.bit_length()))

    def sqrt(self, a: Complex) -> Complex:
        if a.im is not None:
            half = Complex(mpi.mpi_div(_ONE, (from_int(2), from_int(2)), self.precision))
            return self.exp(self.mul(half, self.log(a)))
        if mpf_cmp(a.re[0], fzero) >= 0:
            return Complex(mpi.mpi_sqrt(a.re, self.precision))
        if _sign(a.re) is None:
            raise Undefined
        return Complex(_ZERO, mpi.mpi_sqrt(mpi.mpi_neg(a.re), self.precision))

    def root(self, a: Complex, degree: Complex, node: Node) -> Complex:
        exact = rational(node.args[1])
        if exact is not None and exact.denominator == 1 and exact.numerator % 2 and a.im is None:
            sign = _sign(a.re)
            if sign == 0:
                return a
            if sign == -1:  # the radical sign means the real root of a negative number
                positive = self.root(Complex(mpi.mpi_neg(a.re)), degree, node)
                return Complex(mpi.mpi_neg(positive.re))
        if exact == 2:
            return self.sqrt(a)
        return self.exp(self.mul(self.inverse(degree), self.log(a)))

    # -- elementary functions

    def exp(self, a: Complex) -> Complex:
        if max(_magnitude(a.re), _magnitude(a.im) if a.im is not None else 0) > _MAX_MAGNITUDE:
            raise Unsupported("exp of a number this large")
        if a.im is None:
            return Complex(mpi.mpi_exp(a.re, self.precision))
        return _of(mpi.mpci_exp(_pair(a), self.precision))

    def log(self, a: Complex) -> Complex:
        if a.im is None:
            sign = _sign(a.re)
            if sign in (0, None):
                raise Undefined
            if sign == 1:
                return Complex(mpi.mpi_log(a.re, self.precision))
            return Complex(mpi.mpi_log(mpi.mpi_neg(a.re), self.precision), mpi.mpi_pi(self.precision))
        if _sign(a.im) is None and _sign(a.re) != 1:
            raise Undefined  # across the branch cut
        return _of(mpi.mpci_log(_pair(a), self.precision))

    def _trigonometric(self, a: Complex) -> tuple[Complex, Complex]:
        if max(_magnitude(a.re), _magnitude(a.im) if a.im is not None else 0) > _MAX_MAGNITUDE:
            raise Unsupported("sine of a number this large")
        if a.im is None:
            cos, sin = mpi.mpi_cos_sin(a.re, self.precision)
            return Complex(cos), Complex(sin)
        return _of(mpi.mpci_cos(_pair(a), self.precision)), _of(mpi.mpci_sin(_pair(a), self.precision))

    def _neg(self, a: Complex) -> Complex:
        return Complex(mpi.mpi_neg(a.re), None if a.im is None else mpi.mpi_neg(a.im))

    def _one_minus_square(self, a: Complex) -> Complex:
        result = self.add(Complex(_ONE), self._neg(self.mul(a, a)))
        if result.im is None and _sign(result.re) is None and mpf_le(fzero, result.re[1]):
            return Complex((fzero, result.re[1]))  # a is 1 or -1 within rounding
        return result

    def _asin(self, a: Complex) -> Complex:
        if a.im is None:
            inside = self._one_minus_square(a)
            if _sign(inside.re) != -1:
                return Complex(mpi.mpi_atan2(a.re, self.sqrt(inside).re, self.precision))
        i = self.constant("i")
        root = self.sqrt(self._one_minus_square(a))
        return self.mul(self._neg(i), self.log(self.add(self.mul(i, a), root)))

    def _atan(self, a: Complex) -> Complex:
        if a.im is None:
            return Complex(mpi.mpi_atan(a.re, self.precision))
        i, one = self.constant("i"), Complex(_ONE)
        ia = self.mul(i, a)
        difference = self.add(self.log(self.add(one, self._neg(ia))), self._neg(self.log(self.add(one, ia))))
        return self.mul(self.mul(i, self.number(Fraction(1, 2))), difference)

    def absolute(self, a: Complex) -> Complex:
        if a.im is None:
            return Complex(mpi.mpi_abs(a.re, self.precision))
        return Complex(mpi.mpci_abs(_pair(a), self.precision))

    def function(self, name: str, values: list[Value], node: Node) -> Complex:
        if node.op == "fact" or node.op == "binom":
            return self._counting(node.op, values)
        handler = _FUNCTIONS.get(name)
        if handler is None:
            raise Unsupported(name)
        return handler(self, values, node)

    def _counting(self, op: str, values: list[Complex]) -> Complex:
        whole = [self._integer(value) for value in values]
        exact = rational(Node(op, tuple(Node("num", (), Fraction(value)) for value in whole)))
        if exact is None:
            raise Undefined
        return self.number(exact)

    def _integer(self, a: Complex) -> int:
        if a.im is not None or _magnitude(a.re) > 40:
            raise Undefined
        low, high = to_int(mpf_floor(a.re[0], 80)), to_int(mpf_floor(a.re[1], 80))
        if low != high or a.re[0] != a.re[1] or from_int(low) != a.re[0]:
            raise Undefined
        return int(low)

    def opaque(self, node: Node, walk: Walk) -> Complex:
        """Returns a fixed number for a node that only the modular rung can distinguish from others."""
        if self.certain or node.op in ("prime", "star"):
            raise Unsupported(node.op)
        modular = Modular(0)
        inner = Walk(modular, modular.symbol, walk.budget)
        inner.bound = {name: modular.hashed("bound", name) for name in walk.bound}
        return self.number(small_seed(modular.opaque(node, inner)))


def _real(value: Complex) -> Real:
    if value.im is not None:
        raise Undefined
    return value.re


def _floor(field: Intervals, a: Complex, step: int) -> Complex:
    if _magnitude(_real(a)) > _FLOOR_BITS:  # floor would compute all its digits
        raise Undefined
    low, high = (to_int(mpf_floor(end, _FLOOR_BITS)) for end in _real(a))
    if low != high:
        raise Undefined
    exact = a.re[0] == a.re[1] == from_int(low)
    return field.number(Fraction(low + (0 if exact else step)))


def _extreme(a: list[Complex], largest: bool) -> Complex:
    best = _real(a[0])
    for value in a[1:]:
        other = _real(value)
        if mpf_le(best[1], other[0]):
            best = other if largest else best
        elif mpf_le(other[1], best[0]):
            best = best if largest else other
        else:
            best = (min(best[0], other[0], key=_ordered), max(best[1], other[1], key=_ordered))
    return Complex(best)


def _sgn(field: Intervals, a: Complex) -> Complex:
    sign = _sign(_real(a))
    if sign is None:
        raise Undefined
    return field.number(Fraction(sign))


def _half_of_sum(field: Intervals, a: Complex, sign: int) -> Complex:
    """Returns cosh (sign 1) or sinh (sign -1) of a."""
    up, down = field.exp(a), field.exp(field._neg(a))
    return field.mul(field.number(Fraction(1, 2)), field.add(up, down if sign == 1 else field._neg(down)))


def _quotient(field: Intervals, top: Complex, bottom: Complex) -> Complex:
    return field.mul(top, field.inverse(bottom))


def _logb(field: Intervals, v: list[Complex]) -> Complex:
    return _quotient(field, field.log(v[0]), field.log(v[1]))


def _area(field: Intervals, a: Complex, one: int) -> Complex:
    """Returns asinh (one 1) or acosh (one -1) of a."""
    root = field.sqrt(field.add(field.mul(a, a), field.number(Fraction(one))))
    return field.log(field.add(a, root))


def _atanh(field: Intervals, a: Complex) -> Complex:
    one = Complex(_ONE)
    ratio = _quotient(field, field.add(one, a), field.add(one, field._neg(a)))
    return field.mul(field.number(Fraction(1, 2)), field.log(ratio))


def _complement(field: Intervals, angle: Complex) -> Complex:
    """Returns pi/2 - angle."""
    return field.add(field.mul(field.constant("pi"), field.number(Fraction(1, 2))), field._neg(angle))


_FUNCTIONS: dict[str, Callable[[Intervals, list[Complex], Node], Complex]] = {
    "sqrt": lambda f, v, n: f.sqrt(v[0]),
    "root": lambda f, v, n: f.root(v[0], v[1], n),
    "log": lambda f, v, n: f.log(v[0]),
    "ln": lambda f, v, n: f.log(v[0]),
    "lg": lambda f, v, n: _logb(f, [v[0], f.number(Fraction(10))]),
    "lb": lambda f, v, n: _logb(f, [v[0], f.number(Fraction(2))]),
    "logb": lambda f, v, n: _logb(f, v),
    "sin": lambda f, v, n: f._trigonometric(v[0])[1],
    "cos": lambda f, v, n: f._trigonometric(v[0])[0],
    "tan": lambda f, v, n: _quotient(f, *reversed(f._trigonometric(v[0]))),
    "cot": lambda f, v, n: _quotient(f, *f._trigonometric(v[0])),
    "sec": lambda f, v, n: f.inverse(f._trigonometric(v[0])[0]),
    "csc": lambda f, v, n: f.inverse(f._trigonometric(v[0])[1]),
    "asin": lambda f, v, n: f._asin(v[0]),
    "acos": lambda f, v, n: _complement(f, f._asin(v[0])),
    "atan": lambda f, v, n: f._atan(v[0]),
    "acot": lambda f, v, n: _complement(f, f._atan(v[0])),
    "asec": lambda f, v, n: _complement(f, f._asin(f.inverse(v[0]))),
    "acsc": lambda f, v, n: f._asin(f.inverse(v[0])),
    "sinh": lambda f, v, n: _half_of_sum(f, v[0], -1),
    "cosh": lambda f, v, n: _half_of_sum(f, v[0], 1),
    "tanh": lambda f, v, n: _quotient(f, _half_of_sum(f, v[0], -1), _half_of_sum(f, v[0], 1)),
    "coth": lambda f, v, n: _quotient(f, _half_of_sum(f, v[0], 1), _half_of_sum(f, v[0], -1)),
    "sech": lambda f, v, n: f.inverse(_half_of_sum(f, v[0], 1)),
    "csch": lambda f, v, n: f.inverse(_half_of_sum(f, v[0], -1)),
    "asinh": lambda f, v, n: _area(f, v[0], 1),
    "acosh": lambda f, v, n: _area(f, v[0], -1),
    "atanh": lambda f, v, n: _atanh(f, v[0]),
    "asech": lambda f, v, n: _area(f, f.inverse(v[0]), -1),
    "acsch": lambda f, v, n: _area(f, f.inverse(v[0]), 1),
    "acoth": lambda f, v, n: _atanh(f, f.inverse(v[0])),
    "abs": lambda f, v, n: f.absolute(v[0]),
    "conj": lambda f, v, n: Complex(v[0].re, None if v[0].im is None else mpi.mpi_neg(v[0].im)),
    "re": lambda f, v, n: Complex(v[0].re),
    "im": lambda f, v, n: Complex(_ZERO if v[0].im is None else v[0].im),
    "sgn": lambda f, v, n: _sgn(f, v[0]),
    "floor": lambda f, v, n: _floor(f, v[0], 0),
    "ceil": lambda f, v, n: _floor(f, v[0], 1),
    "min": lambda f, v, n: _extreme(v, largest=False),
    "max": lambda f, v, n: _extreme(v, largest=True),
}


def same(a: Value, b: Value, precision: int) -> bool | None:
    """Returns False if certainly different, True if equal to half the precision, None if the intervals are too wide."""
    if not isinstance(a, Complex) or not isinstance(b, Complex):
        if isinstance(a, Complex) or isinstance(b, Complex) or (a.rows, a.columns) != (b.rows, b.columns):
            return False
        verdicts = [same(x, y, precision) for x, y in zip(a.cells, b.cells, strict=True)]
        return False if False in verdicts else None if None in verdicts else True
    parts = ((a.re, b.re), (a.im or _ZERO, b.im or _ZERO))
    if any(mpi.mpi_lt(x, y) or mpi.mpi_lt(y, x) for x, y in parts):
        return False
    least = 32 - precision // 2  # smaller values count as zero; sine and cosine lose a few bits there
    most = max(size(a), size(b), least) - precision // 2
    return True if all(_width(x) < most for pair in parts for x in pair) else None


def size(value: Value) -> int:
    """Returns the number of bits before the point of the largest part of a value."""
    cells = [value] if isinstance(value, Complex) else value.cells
    return max(_magnitude(part) for cell in cells for part in (cell.re, cell.im or _ZERO))


def _width(a: Real) -> int:
    gap = mpf_sub(a[1], a[0], 20, "u")
    return gap[2] + gap[3] if gap[1] else -1_000_000


def evaluate(
    node: Node, point: Callable[[str], Complex], precision: int, budget: Budget, *, certain: bool = False
) -> Value:
    """Returns the node's interval, of `precision` bits. Raises Undefined, Unsupported or TooHard.

    Args:
        certain: raise Unsupported for an integral or an unknown function, instead of using a made-up number.
    """
    try:
        return Walk(Intervals(precision, certain=certain), point, budget).value(node)
    except (ValueError, ZeroDivisionError, NotImplementedError) as error:  # mpmath's own limits
        raise Undefined from error
    except (OverflowError, MemoryError) as error:
        raise TooHard(str(error)) from error


def at_most(a: Complex, b: Complex) -> bool:
    """Returns whether a <= b, up to the rounding of the ends."""
    return bool(mpf_le(a.re[0], b.re[1]))


def compared(a: Complex, b: Complex) -> int | None:
    """Returns -1 or 1 if two reals certainly differ, else None."""
    if mpi.mpi_lt(a.re, b.re):
        return -1
    return 1 if mpi.mpi_lt(b.re, a.re) else None
