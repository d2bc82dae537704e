"""Decides whether two expressions are equal, by a ladder of rungs: the cheapest that can decide does.

The rungs: normal form, exact rationals, values modulo primes, certified intervals, intervals at random exact points,
the terms of infinite sums and the integrands of integrals, and last the values of the gold's integrals, limits and
infinite sums, evaluated when the gold was read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from fractions import Fraction

from verifiers.mathexpr import intervals
from verifiers.mathexpr.evaluate import OPAQUE, Undefined, Unsupported, seed
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.intervals import Complex, Intervals
from verifiers.mathexpr.limits import BUDGET, Budget, TooHard, current
from verifiers.mathexpr.modular import fingerprint, residues
from verifiers.mathexpr.nodes import Node, has_op, is_calculus, number, symbols, unevaluated, walk
from verifiers.mathexpr.normal import normal
from verifiers.mathexpr.terms import term_pairs

_LOW, _HIGH = 192, 1024  # bits: most differences show at the first precision; the second confirms agreement
_LARGEST = 10_000  # bits before the point up to which agreement of constants is confirmed
_POINTS, _AGREEMENTS = 16, 5
_ONE = Fraction(1)
_FAR = (Fraction(10), Fraction(100), Fraction(10_000))
_SCALES = (_ONE, _ONE / 4, 3 * _ONE)
_INTEGERS = (Fraction(0), Fraction(4), *_FAR)
_MOST_CONSTANTS = 9
_MIXED, _FEW = 32, 8  # distant points: of several names at least; of sums, and where half of the budget is spent
_LONGEST = 20  # terms of a sum at such a point
_FUNCTION = frozenset({"fn"})
_WHOLE = frozenset({"fact", "binom", "sum", "prod"})
_SERIES = frozenset({"sum", "prod"})
_BENDING = frozenset({"abs", "root", "fact", "binom"})
_ANALYTIC = frozenset(
    "exp log ln lg lb logb sin cos tan cot sec csc sinh cosh tanh coth sech csch asinh re im tr det".split()
)


def equal(a: Node, b: Node, budget: Budget) -> bool:
    """Returns whether the expressions have the same value wherever both are defined. Raises TooHard."""
    same = _equal(a, b, budget)
    has_function = has_op(a, _FUNCTION) or has_op(b, _FUNCTION)
    # A bare log is natural or decimal; both readings are tried.
    if not same and has_function and _logs(a) | _logs(b) > {"log"}:
        same = _equal(decimal_logs(a), decimal_logs(b), budget)
    return same


def _equal(a: Node, b: Node, budget: Budget) -> bool:
    if a == b:
        return budget.decided("normal", True)
    x, y = rational(a), rational(b)
    if x is not None and y is not None:
        return budget.decided("rational", x == y)
    budget.spend(20)
    if normal(a) == normal(b):
        return budget.decided("normal", True)
    names = symbols(a) | symbols(b)
    exact = _modular(a, b, budget)
    if exact is not None:
        return budget.decided("modular", exact)
    same = _sampled(a, b, budget) if names else _constants(a, b, budget)
    if same is False and (has_op(a, OPAQUE) or has_op(b, OPAQUE) or unevaluated(a) or unevaluated(b)):
        same = None  # integrals and the like were replaced by unknowns: a difference proves nothing
    if same is not None:
        return budget.decided("points" if names else "interval", same)
    in_terms = term_pairs(a, b) if unevaluated(a) and unevaluated(b) else []
    if any(all(equal(*pair, budget) for pair in pairs) for pairs in in_terms):
        return budget.decided("terms", True)
    if budget.evaluated and (unevaluated(a) or unevaluated(b)):
        first, second = _evaluated(a, budget), _evaluated(b, budget)
        if (first, second) != (a, b):
            return budget.decided("sympy", _equal(first, second, budget))
    return budget.decided("points" if names else "interval", False, "(undecided)")


def _evaluated(node: Node, budget: Budget) -> Node:
    """Returns the node with the gold's integrals and the like replaced by their values."""
    if not unevaluated(node):
        return node
    if is_calculus(node) and node in budget.evaluated:
        return budget.evaluated[node]
    return node.with_args(tuple([_evaluated(arg, budget) for arg in node.args]))


def _modular(a: Node, b: Node, budget: Budget) -> bool | None:
    for which, moved in [(1, {}), *((0, moved) for moved in residues((a, b)))]:
        try:
            x, guessed = fingerprint(a, which, budget, moved)
            y, guessed_too = fingerprint(b, which, budget, moved)
        except (Undefined, Unsupported):
            return None
        if not isinstance(x, int) or not isinstance(y, int):
            if isinstance(x, int) or isinstance(y, int) or (x.rows, x.columns) != (y.rows, y.columns):
                return False
            x, y = x.cells, y.cells
        if x != y:
            return None if guessed or guessed_too else False
    return True


def _constants(a: Node, b: Node, budget: Budget) -> bool | None:
    precision = _LOW
    while True:
        try:
            x = intervals.evaluate(a, _no_symbols, precision, budget)
            y = intervals.evaluate(b, _no_symbols, precision, budget)
        except (Undefined, Unsupported):
            return None
        same = intervals.same(x, y, precision)
        if same is False or precision > _LOW:
            return same
        size = max(intervals.size(x), intervals.size(y))
        if size > _LARGEST:
            return None
        precision = _HIGH + 2 * max(0, size)


def _no_symbols(name: str) -> Complex:
    raise Unsupported(name)


class Point:
    """The `index`-th sampling point: gives each name an exact rational.

    Eight consecutive points give up to seven names signs and parities that differ for each pair of names: n must not
    be even, nor ab positive, at all of them by chance.

    Args:
        names: all of them, in order.
        whole: names that are given small integers, which are not negative unless `near` is given.
        near: sizes of which each name is given one with a sign, moved by less than 1 (`whole`: less than 4).
    """

    def __init__(
        self, index: int, names: Sequence[str], *, whole: Set[str], imaginary: bool, near: Sequence[Fraction] = (),
        precision: int = _LOW,
    ) -> None:  # fmt: skip
        self.index = index
        self.names = names
        self.whole = whole
        self.imaginary = imaginary
        self.near = near
        self.precision = precision
        self.field = Intervals(precision)

    def finer(self) -> Point:
        """Returns the same point with values of the high precision."""
        return Point(
            self.index, self.names, whole=self.whole, imaginary=self.imaginary, near=self.near, precision=_HIGH
        )

    def fraction(self, name: str) -> Fraction:
        chance, at = seed(name, self.index), self.names.index(name) if name in self.names else seed(name)
        share, bit = Fraction(chance % 9973 + 1, 9974), _bit(self.index, at)
        if self.near:
            size = self.near[(self.index // 2 if len(self.names) == 1 else chance >> 30) % len(self.near)]
            if name in self.whole:
                share = Fraction(math.floor(size) - size + 2 * (chance % 2) + _bit(self.index, at + 3))
            return (-1 if bit else 1) * (size + share)
        if name in self.whole:
            return Fraction(2 * (chance % (2 + self.index // 2)) + bit)
        scale = _SCALES[self.index // 4 % len(_SCALES)]
        match self.index % 4:
            case 0:
                return share
            case 1:
                return 1 + 3 * share
            case 2:
                return -scale * share
        return (1 if (self.index // 4 + at) % 2 else -1) * scale * share

    def integer(self, name: str) -> int:
        value = self.fraction(name)
        if value.denominator != 1:
            raise Unsupported("a bound that is no integer")
        return value.numerator

    def __call__(self, name: str) -> Complex:
        real = self.field.number(self.fraction(name))
        return Complex(real.re, self.field.number(self.fraction(name + "'")).re) if self.imaginary else real


def _sampled(a: Node, b: Node, budget: Budget) -> bool | None:
    """Compares at random points. Real values must agree; complex values count only if there are no real ones.

    Agreement near zero proves nothing beyond a bend, such as that of |x - 5|: then distant points are compared too.
    """
    names, bends = sorted(symbols(a) | symbols(b)), _bends(a) or _bends(b)
    whole = _counting(a) | _counting(b)
    imaginary = _wants_complex(a) or _wants_complex(b)
    real = complex_same = complex_different = 0
    agreed = None
    for index in range(_POINTS * (2 if whole else 1)):
        point = Point(index, names, whole=whole, imaginary=imaginary)
        try:
            same, is_real = _compared_at(point, a, b, budget)
        except Unsupported:
            return None
        if same is None:
            continue
        if is_real:
            if not same:
                return False
            if all(map(point.fraction, names)):  # zeros of a factor agree, whatever the others are
                real, agreed = real + 1, point
        elif same:
            complex_same += 1
        else:
            complex_different += 1
        if index >= (11 if bends else 7 if whole else 5) and real >= _AGREEMENTS:
            break
    few = real < _AGREEMENTS - 2
    if few or bends:
        series = has_op(a, _SERIES) or has_op(b, _SERIES)  # costly, so few and small points
        near = [size for size in _distant(a, b) if size <= _LONGEST or not series]
        count = _FEW if series else 2 * len(near) if len(names) == 1 else max(2 * len(near), _MIXED)
        points = [Point(index, names, whole=whole, imaginary=imaginary, near=near) for index in range(count)]
        if _differs_at_integers(a) or _differs_at_integers(b):
            every = set(names)
            integers = (
                Point(index, names, whole=every, imaginary=imaginary, near=_INTEGERS)
                for index in range(2 * len(_INTEGERS))
            )
            points = [*integers, *points]
        for tried, point in enumerate(points):
            if tried >= len(points) - count + _FEW and budget.left < BUDGET // 2:
                break
            try:
                same, is_real = _compared_at(point, a, b, budget)
            except Unsupported:
                continue
            except TooHard:  # a number too large for a float, or the budget is spent
                budget.spend(0)
                continue
            if is_real and same is False:
                return False
            if is_real and same:
                real, agreed = real + 1, point
    if real >= _AGREEMENTS - 2:
        # The values may differ by less than the first precision shows.
        return agreed is None or _compared_at(agreed.finer(), a, b, budget)[0] is not False
    if real + complex_same >= _AGREEMENTS - 1:
        return complex_different == 0
    return False if complex_different else None


def _bit(index: int, at: int) -> int:
    """Returns 0 or 1: over eight indices another pattern for each of seven names (Walsh functions)."""
    return (index & (at % 7 + 1)).bit_count() % 2


def _compared_at(point: Point, a: Node, b: Node, budget: Budget) -> tuple[bool | None, bool]:
    """Returns whether the values at a point are equal (None: undecided), and whether both count as real."""
    try:
        x = intervals.evaluate(a, point, point.precision, budget)
        y = intervals.evaluate(b, point, point.precision, budget)
    except Undefined:
        return None, False
    return intervals.same(x, y, point.precision), point.imaginary or (_is_real(x) and _is_real(y))


def _differs_at_integers(node: Node) -> bool:
    """Returns whether the expression has another value at integers, as a step has, or a value there only, as (-2)^n.

    Names under a root of any order, as in a^(1/n), are positive.
    """
    parts = list(walk(node))
    if any(part.op == "fn" and part.value in ("floor", "ceil") for part in parts):
        return True
    powers = [part for part in parts if part.op == "pow" and all(map(symbols, part.args))]
    divisors = [inner.args[1] for part in powers for inner in walk(part.args[1]) if inner.op == "div"]
    orders = [part.args[1] for part in parts if part.op == "root"]
    return bool(powers) and not any(map(symbols, (*divisors, *orders)))


def _bends(node: Node) -> bool:
    """Returns whether the expression may be analytic piece by piece only: two that agree here may differ elsewhere."""
    names = symbols(node) | {
        part.value for part in walk(node) if part.op in _SERIES and any(map(symbols, part.args[1:]))
    }
    return any(
        (
            part.op in _BENDING
            or (part.op == "fn" and part.value not in _ANALYTIC)
            or (part.op == "pow" and (rational(part.args[1]) or _ONE).denominator != 1)
        )
        and not symbols(part).isdisjoint(names)  # constants don't bend
        for part in walk(node)
    )


def _distant(a: Node, b: Node) -> list[Fraction]:
    """Returns sizes of points: on both sides of the constants, where expressions may bend, far away, and above zero.

    Those that show most come first, as costly expressions are compared at a few points only.
    """
    constants = {abs(part.value) for node in (a, b) for part in walk(node) if part.op == "num"}
    largest = sorted(constants, reverse=True)[:_MOST_CONSTANTS]
    below = [max(Fraction(0), size - 1) for size in largest]
    return list(dict.fromkeys([*largest[:1], _FAR[1], Fraction(0), *largest, *below, *_FAR]))


def _wants_complex(node: Node) -> bool:
    """Returns whether the node has a conjugate, real or imaginary part, which real points can't distinguish."""
    return any(part.op == "conj" or (part.op == "fn" and part.value in ("re", "im")) for part in walk(node))


def _is_real(value: object) -> bool:
    cells = [value] if isinstance(value, Complex) else getattr(value, "cells", [])
    return all(isinstance(cell, Complex) and cell.im is None for cell in cells)


def _counting(node: Node) -> frozenset[str]:
    """Returns the names that stand for integers: in factorials, bounds of sums, and powers such as (-1)^n."""
    found: set[str] = set()
    for part in walk(node):
        if part.op in _WHOLE:
            found = found.union(*map(symbols, part.args[part.op in _SERIES :]))
        elif part.op == "pow" and (names := symbols(part.args[1])) and _is_negative(part.args[0]):
            found |= names
    return frozenset(found)


def _is_negative(base: Node) -> bool:
    value = rational(base)
    if value is not None or base.op in ("sym", "const"):
        return (value or 0) < 0
    return order(base, number(0), current()) == -1


def _logs(node: Node) -> frozenset[str]:
    return frozenset(part.value for part in walk(node) if part.op == "fn" and part.value in ("log", "lg", "logb")) | (
        frozenset({"ten"}) if Fraction(10) in {part.value for part in walk(node) if part.op == "num"} else frozenset()
    )


def decimal_logs(node: Node) -> Node:
    """Returns the node with every bare log as a logarithm to base ten."""
    args = tuple(map(decimal_logs, node.args))
    if node.op == "fn" and node.value == "log":
        return Node("fn", args, "lg")
    return node.with_args(args) if args else node


def numeric_gap(a: Node, b: Node, most: Fraction, budget: Budget) -> bool:
    """Returns whether |a - b| <= most, for constants. Raises TooHard."""
    a, b = _evaluated(a, budget), _evaluated(b, budget)
    x, y = rational(a), rational(b)
    if x is not None and y is not None:
        return budget.decided("rational", abs(x - y) <= most, f"within {float(most):.3g}" if most < 10**300 else "")
    try:
        field = Intervals(_LOW)
        x_value = intervals.evaluate(a, _no_symbols, _LOW, budget, certain=True)
        y_value = intervals.evaluate(b, _no_symbols, _LOW, budget, certain=True)
        if not isinstance(x_value, Complex) or not isinstance(y_value, Complex):
            return False
        minus = field.mul(y_value, field.number(Fraction(-1)))
        gap = field.absolute(field.add(x_value, minus))
        within = intervals.at_most(gap, field.number(most))
    except (Undefined, Unsupported):
        return False
    return budget.decided("interval", within, "within the last place")


def order(a: Node, b: Node, budget: Budget) -> int | None:
    """Returns -1, 0 or 1 for the order of two constants, which may be infinite; None if it can't be decided."""
    ends = _infinite(a), _infinite(b)
    if ends != (0, 0):
        return (ends[0] > ends[1]) - (ends[0] < ends[1])
    x, y = rational(a), rational(b)
    if x is not None and y is not None:
        return (x > y) - (x < y)
    if symbols(a) or symbols(b):
        return None
    try:
        first, second = (intervals.evaluate(node, _no_symbols, _LOW, budget, certain=True) for node in (a, b))
    except (Undefined, Unsupported):
        return None
    if not isinstance(first, Complex) or not isinstance(second, Complex) or first.im or second.im:
        return None
    sign = intervals.compared(first, second)
    return 0 if sign is None and _constants(a, b, budget) else sign


def _infinite(node: Node) -> int:
    if node.op == "neg":
        return -_infinite(node.args[0])
    return 1 if node == Node("const", (), "inf") else 0
