"""Evaluates expressions over any kind of number: a `Field` supplies the arithmetic."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.limits import MAX_TERMS, Budget
from verifiers.mathexpr.nodes import Node, has_op, number, substitute, symbols

Value = Any  # a number of the field, or a Matrix of them
_CONJUGATE = Node("conj", (Node("sym", (), "?"),))
_MATRIX = frozenset({"matrix"})
OPAQUE = frozenset({"int", "lim", "deriv", "apply", "prime", "star", "forall", "group", "chain", "set", "builder"})


class Undefined(Exception):
    """The expression has no value here: a division by zero, a pole, a point outside the domain."""


class Unsupported(Exception):
    """This field can't evaluate the expression; another rung may."""


class Field(Protocol):
    """Arithmetic of one rung."""

    cost: int  # units of the budget per operation
    heavy: int  # further units per function or power

    def number(self, value: Fraction) -> Value: ...
    def constant(self, name: str) -> Value: ...
    def add(self, a: Value, b: Value) -> Value: ...
    def mul(self, a: Value, b: Value) -> Value: ...
    def inverse(self, a: Value) -> Value: ...
    def power(self, node: Node, walk: Walk) -> Value: ...
    def function(self, name: str, values: list[Value], node: Node) -> Value: ...
    def opaque(self, node: Node, walk: Walk) -> Value: ...


class Matrix:
    """A matrix of field values, row by row."""

    def __init__(self, cells: list[Value], columns: int) -> None:
        self.cells = cells
        self.columns = columns
        self.rows = len(cells) // columns

    def at(self, row: int, column: int) -> Value:
        return self.cells[row * self.columns + column]

    def transposed(self) -> Matrix:
        return Matrix([self.at(r, c) for c in range(self.columns) for r in range(self.rows)], self.rows)


class Walk:
    """Evaluates nodes in `field`; `point` returns the value of a free symbol."""

    def __init__(self, field: Field, point: Callable[[str], Value], budget: Budget) -> None:
        self.field = field
        self.point = point
        self.budget = budget
        self.bound: dict[str, Value] = {}

    def value(self, node: Node) -> Value:
        """Returns the value of a node. Raises Undefined, Unsupported or TooHard."""
        self.budget.spend(self.field.cost)
        field = self.field
        match node.op:
            case "num":
                return field.number(node.value)
            case "sym":
                return self.bound[node.value] if node.value in self.bound else self.point(node.value)
            case "add":
                return self._folded(node, self._add)
            case "mul":
                return self._folded(node, self._mul)
            case "neg":
                return self._mul(field.number(Fraction(-1)), self.value(node.args[0]))
            case "div":
                return self._mul(self.value(node.args[0]), self._inverse(self.value(node.args[1])))
            case "pow":
                return self._power(node)
            case "dec":
                return field.number(node.value[0])
            case "const":
                return field.constant(node.value)
            case "base":
                return field.number(Fraction(int(*node.value)))
            case "percent":
                return self._mul(self.value(node.args[0]), field.number(Fraction(1, 100)))
            case "deg":
                return self._mul(
                    self.value(node.args[0]), self._mul(field.constant("pi"), field.number(Fraction(1, 180)))
                )
            case "matrix":
                cells = [self.value(arg) for arg in node.args]
                if any(isinstance(cell, Matrix) for cell in cells):
                    raise Unsupported("matrix of matrices")
                return Matrix(cells, node.value)
            case "sum" | "prod":
                return self._series(node)
            case "star" | "prime":
                inner = self.value(node.args[0])
                if isinstance(inner, Matrix):
                    return self._each(inner.transposed(), "conj") if node.op == "star" else inner.transposed()
                return field.opaque(node, self)
            case "fn" | "fact" | "binom" | "root" | "abs" | "conj":
                return self._function(node)
        if node.op in OPAQUE:
            return field.opaque(node, self)
        raise Unsupported(node.op)

    def _folded(self, node: Node, combine: Callable[[Value, Value], Value]) -> Value:
        total = self.value(node.args[0])
        for arg in node.args[1:]:
            total = combine(total, self.value(arg))
        return total

    def _add(self, a: Value, b: Value) -> Value:
        if isinstance(a, Matrix) and isinstance(b, Matrix):
            if (a.rows, a.columns) != (b.rows, b.columns):
                raise Undefined
            self.budget.spend(len(a.cells) * self.field.cost)
            return Matrix([self.field.add(x, y) for x, y in zip(a.cells, b.cells, strict=True)], a.columns)
        if isinstance(a, Matrix) or isinstance(b, Matrix):
            raise Undefined
        return self.field.add(a, b)

    def _mul(self, a: Value, b: Value) -> Value:
        if isinstance(a, Matrix) and isinstance(b, Matrix):
            if a.columns != b.rows:
                raise Undefined
            self.budget.spend(a.rows * a.columns * b.columns * self.field.cost)
            return Matrix([self._dot(a, b, r, c) for r in range(a.rows) for c in range(b.columns)], b.columns)
        if isinstance(a, Matrix):
            self.budget.spend(len(a.cells) * self.field.cost)
            return Matrix([self.field.mul(x, b) for x in a.cells], a.columns)
        if isinstance(b, Matrix):
            self.budget.spend(len(b.cells) * self.field.cost)
            return Matrix([self.field.mul(a, x) for x in b.cells], b.columns)
        return self.field.mul(a, b)

    def _dot(self, a: Matrix, b: Matrix, row: int, column: int) -> Value:
        total = self.field.mul(a.at(row, 0), b.at(0, column))
        for k in range(1, a.columns):
            total = self.field.add(total, self.field.mul(a.at(row, k), b.at(k, column)))
        return total

    def _inverse(self, a: Value) -> Value:
        if not isinstance(a, Matrix):
            return self.field.inverse(a)
        if a.rows != a.columns or a.rows > 4:
            raise Unsupported("inverse")
        scale = self.field.inverse(self.determinant(a))
        cells = [self._cofactor(a, c, r) for r in range(a.rows) for c in range(a.rows)]
        return Matrix([self.field.mul(scale, cell) for cell in cells], a.rows)

    def _cofactor(self, a: Matrix, row: int, column: int) -> Value:
        if a.rows == 1:
            return self.field.number(Fraction(1))
        minor = [a.at(r, c) for r in range(a.rows) for c in range(a.rows) if r != row and c != column]
        value = self.determinant(Matrix(minor, a.rows - 1))
        return value if (row + column) % 2 == 0 else self.field.mul(self.field.number(Fraction(-1)), value)

    def determinant(self, a: Matrix) -> Value:
        """Returns the determinant, expanded by the first row. Raises Undefined if not square or larger than 6 x 6."""
        if a.rows != a.columns or a.rows > 6:
            raise Undefined
        self.budget.spend(a.rows * self.field.cost)
        if a.rows == 1:
            return a.cells[0]
        total = self.field.number(Fraction(0))
        for c in range(a.rows):
            total = self.field.add(total, self.field.mul(a.at(0, c), self._cofactor(a, 0, c)))
        return total

    def _each(self, a: Matrix, function: str) -> Matrix:
        self.budget.spend(len(a.cells) * self.field.cost)
        return Matrix([self.field.function(function, [x], _CONJUGATE) for x in a.cells], a.columns)

    def _power(self, node: Node) -> Value:
        base, exponent = node.args
        self.budget.spend(self.field.heavy)
        if has_op(exponent, _MATRIX):
            raise Unsupported("a matrix as exponent")
        if not has_op(base, _MATRIX):
            return self.field.power(node, self)
        value = self.value(base)
        if not isinstance(value, Matrix):
            return self.field.power(node, self)
        if exponent.op in ("sym", "const") and exponent.value in ("T", "top", "intercal"):
            return value.transposed()
        power = rational(exponent)
        if power is None or power.denominator != 1 or abs(power) > 20 or value.rows != value.columns:
            raise Unsupported("matrix power")
        if power < 0:
            value, power = self._inverse(value), -power
        size = range(value.rows)
        total: Value = Matrix([self.field.number(Fraction(int(r == c))) for r in size for c in size], value.rows)
        for _ in range(int(power)):
            total = self._mul(total, value)
        return total

    def _function(self, node: Node) -> Value:
        self.budget.spend(self.field.heavy)
        if node.op == "fact":
            count = min(abs(rational(node.args[0]) or Fraction(0)), Fraction(5000))
            self.budget.spend(count.numerator // count.denominator // 10)
        values = [self.value(arg) for arg in node.args]
        name = node.value if node.op == "fn" else node.op
        first = values[0] if values else None
        if isinstance(first, Matrix):
            if name in ("det", "abs"):
                return self.determinant(first)
            if name == "conj":
                return self._each(first, "conj")
            if name == "tr" and first.rows == first.columns:
                total = first.cells[0]
                for k in range(1, first.rows):
                    total = self.field.add(total, first.at(k, k))
                return total
            raise Unsupported(name)
        if any(isinstance(value, Matrix) for value in values):
            raise Unsupported(name)
        return self.field.function(name, values, node)

    def _series(self, node: Node) -> Value:
        body, lower, upper = node.args
        first, last = self.whole(lower), self.whole(upper)
        if first is None or last is None or last - first >= MAX_TERMS:
            return self.field.opaque(node, self)
        combine = self._add if node.op == "sum" else self._mul
        total = self.field.number(Fraction(0 if node.op == "sum" else 1))
        before = self.bound
        self.budget.spend(10 + (2 + 2 * self.field.cost) * max(0, last - first))
        for k in range(first, last + 1):
            self.bound = {**before, node.value: self.field.number(Fraction(k))}
            total = combine(total, self.value(body))
        self.bound = before
        return total

    def whole(self, node: Node) -> int | None:
        """Returns the node as an integer below 10^6 in size, else None; symbols need a point with integer values."""
        value = rational(node)
        if value is None:
            integers: Callable[[str], int] | None = getattr(self.point, "integer", None)
            if integers is None:
                return None
            self.budget.spend(15)
            value = rational(substitute(node, {name: number(integers(name)) for name in symbols(node)}))
        return value.numerator if value is not None and value.denominator == 1 and abs(value) < 10**6 else None


def seed(*parts: object) -> int:
    """Hashes printable objects to a 62-bit number that is the same in every process."""
    text = "\x1f".join(map(str, parts)).encode()
    return (zlib.crc32(text) << 30) ^ zlib.crc32(b"r1" + text[::-1])
