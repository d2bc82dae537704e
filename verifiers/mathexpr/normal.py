"""A canonical form that is cheap to compute: signs, quotients and roots as products and powers, flattened, sorted."""

from __future__ import annotations

from fractions import Fraction

from verifiers.mathexpr.exact import exact_root
from verifiers.mathexpr.limits import MAX_BITS, spend
from verifiers.mathexpr.nodes import MINUS_ONE, Node, digest, has_op, number

_MATRIX = frozenset({"matrix"})
_HALF = number(Fraction(1, 2))
_FOLD_BITS = MAX_BITS // 8


def normal(node: Node) -> Node:
    """Returns the canonical form. Equal forms imply equal values; unequal forms imply nothing. Raises TooHard."""
    spend(1 + (node.size >> 1))
    return _normal(node)


def _normal(node: Node) -> Node:
    if not node.args:
        return number(node.value[0]) if node.op == "dec" else node
    args = tuple(map(_normal, node.args))
    match node.op:
        case "neg":
            return _collect("mul", (MINUS_ONE, *args))
        case "div":
            return _collect("mul", (args[0], _power(args[1], MINUS_ONE)))
        case "add" | "mul":
            return _collect(node.op, args)
        case "pow":
            return _power(*args)
        case "root" if args[1].op == "num" and args[1].value:
            return Node("root", args)
        case "fn" if node.value == "sqrt":
            return _power(args[0], _HALF)
        case "union" | "cap":
            return Node(node.op, tuple(sorted(args, key=digest)))
        case "fn" if node.value in ("min", "max", "gcd", "lcm"):
            return Node("fn", tuple(sorted(args, key=digest)), node.value)
        case "percent":
            return _collect("mul", (args[0], number(Fraction(1, 100))))
    return node.with_args(args)


def _power(base: Node, exponent: Node) -> Node:
    if base.op == exponent.op == "num" and abs(exponent.value) < 64:
        power = exponent.value
        if power.denominator == 1 and (base.value or power > 0):
            bits = base.value.numerator.bit_length() + base.value.denominator.bit_length()
            if bits * abs(power) < _FOLD_BITS:
                return number(base.value**power.numerator)
        if power == Fraction(1, 2) and base.value >= 0:
            root = exact_root(base.value, 2)
            if root is not None:
                return number(root)
    if exponent == number(1):
        return base
    return Node("pow", (base, exponent))


def _collect(op: str, args: tuple[Node, ...]) -> Node:
    """Returns a sum or product flattened, with its numbers combined and the rest sorted."""
    unit = Fraction(0) if op == "add" else Fraction(1)
    total, rest = unit, []
    for arg in args:
        for part in arg.args if arg.op == op else (arg,):
            if part.op == "num" and part.value.numerator.bit_length() + part.value.denominator.bit_length() < 2000:
                total = total + part.value if op == "add" else total * part.value
            else:
                rest.append(part)
    given = list(rest)
    if op == "mul" and total == 0:
        return number(0) if not rest else Node("mul", (number(0), *sorted(rest, key=digest)))
    rest.sort(key=digest)
    if op == "mul" and any(has_op(part, _MATRIX) for part in rest):  # matrices stay in their order, behind the scalars
        rest = [part for part in rest if not has_op(part, _MATRIX)] + [part for part in given if has_op(part, _MATRIX)]
    if total != unit or not rest:
        rest.insert(0, number(total))
    return rest[0] if len(rest) == 1 else Node(op, tuple(rest))
