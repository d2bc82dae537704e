"""The types of a final answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.nodes import Node, has_op, symbols, walk
from verifiers.units.reading import Unit

_MOST_BITS = 10_000  # Python converts no integer of more than 4,300 digits to text


class Piece(NamedTuple):
    """An interval of the real line; a single point is [a, a]."""

    low: Node
    low_closed: bool
    high: Node
    high_closed: bool


@dataclass(slots=True, unsafe_hash=True)  # immutable by convention: frozen, construction would take three times as long
class Answer:
    """A final answer that was read. `kind` determines which fields are used.

    scalar (node), list / tuple / set (items), region (pieces), equation and relation (node), ratio (items), text
    (words), choice (words: letter; items: the option's text), truth, empty, undefined, clock, date (words),
    quantified (node).
    """

    kind: str
    node: Node | None = None
    items: tuple[Answer, ...] = ()
    brackets: str = ""
    pieces: tuple[Piece, ...] = ()
    words: tuple[str, ...] = ()
    unit: Unit | None = None
    label: tuple[str, ...] = ()  # words beside the value that are not its unit
    noun: bool = False  # the label names what is counted
    name: str = ""  # x of "x = 5", f of "f(t) = 2t"
    bound: tuple[str, ...] = ()  # t of "f(t) = 2t", n of "for some integer n"
    condition: str = ""
    also: Node | None = None  # the decimal given with an exact value: "1/3 = 0.33"
    comma: Answer | None = None  # the reading of the text if its comma is a decimal comma
    joined_by: str = ""  # "or" where alternatives were offered
    percent: bool = False


def type_name(answer: Answer) -> str:
    """Returns the name of the answer's type, as in `Verdict.gold_type`."""
    if answer.kind != "scalar":
        return answer.kind
    node = answer.node
    assert node is not None
    if answer.percent:
        return "percent"
    if answer.unit is not None and answer.unit.dimension:
        currency = len(answer.unit.dimension) == 1 and answer.unit.dimension[0][0].isupper()
        return "money" if currency else "quantity"
    if node.op == "base":
        return "base"
    if node.op == "matrix":
        return "matrix"
    if answer.bound:
        return "function"
    if symbols(node):
        return "expression"
    if as_decimal(node) is not None:
        return "decimal"
    value = rational(node)
    if value is not None:
        return "integer" if value.denominator == 1 else "rational"
    names = {part.value for part in walk(node) if part.op == "const"}
    if "inf" in names:
        return "infinity"
    return "complex" if "i" in names else "constant"


def as_decimal(node: Node) -> tuple[Fraction, Fraction] | None:
    """Returns (value, half a unit of the last place) of a decimal literal; None for any other node.

    The literal may be negated, in percent, or multiplied by a power of ten.
    """
    if node.op == "dec":
        return Fraction(node.value[0]), Fraction(node.value[1])
    if node.op in ("neg", "percent"):
        inner = as_decimal(node.args[0])
        if inner is None:
            return None
        return (-inner[0], inner[1]) if node.op == "neg" else (inner[0] / 100, inner[1] / 100)
    if node.op in ("mul", "div") and has_op(node, frozenset({"dec"})):
        inner = as_decimal(node.args[0])
        scale = Fraction(1)
        for arg in node.args[1:]:
            value = rational(arg)
            if value is None or not _power_of_ten(value):
                return None
            scale = scale * value if node.op == "mul" else scale / value
        return None if inner is None else (inner[0] * scale, inner[1] * scale)
    return None


def _power_of_ten(value: Fraction) -> bool:
    whole = value.numerator * value.denominator
    return value > 0 and whole.bit_length() < _MOST_BITS and re.fullmatch("10*", str(whole)) is not None


def significant_digits(value: Fraction, half: Fraction) -> int:
    """Returns the number of significant digits of a decimal literal; `half` is half a unit of its last place."""
    last = 2 * half
    count = abs(value) / last if last else Fraction(0)
    return len(str(int(count))) if count >= 1 else 0
