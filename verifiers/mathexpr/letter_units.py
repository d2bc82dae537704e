r"""Reads the letters after a value as its unit: 5m, 20m/s, 2.7\frac{g}{cm^3}."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed

from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.nodes import Node, symbols
from verifiers.units.reading import AMBIGUOUS, NO_UNIT, Unit, lookup


def quantity(answer: Answer) -> Answer:
    """Returns an answer whose letters after the value are a unit ("5 m", "20m/s") as a quantity; others unchanged."""
    parts = None if answer.node is None else _value_and_unit(answer.node)
    return answer if parts is None else changed(answer, node=parts[0], unit=parts[1])


def _value_and_unit(node: Node) -> tuple[Node, Unit] | None:
    if node.op == "neg":
        parts = _value_and_unit(node.args[0])
        return parts and (Node("neg", (parts[0],)), parts[1])
    if node.op == "div" and symbols(node.args[1]):
        below = _unit_of(node.args[1])
        top = _value_and_unit(node.args[0])
        return None if below is None or top is None else (top[0], top[1].times(below, -1))
    factors = _factors(node)
    first = next((index for index, factor in enumerate(factors) if symbols(factor)), 0)
    unit = _unit_of(Node("mul", factors[first:])) if first else None
    return None if unit is None else (factors[0] if first == 1 else Node("mul", factors[:first]), unit)


def _factors(node: Node) -> tuple[Node, ...]:
    if node.op != "mul":
        return (node,)
    return tuple(factor for arg in node.args for factor in _factors(arg))


def _unit_of(node: Node) -> Unit | None:
    """Returns the unit of a product, quotient or power of letters, such as "kg m/s^2"; None for any other node."""
    if node.op == "div":
        top, below = map(_unit_of, node.args)
        return None if top is None or below is None else top.times(below, -1)
    total, at = NO_UNIT, 0
    factors = _factors(node)
    while at < len(factors):
        if factors[at].op == "div":
            unit, count, power = _unit_of(factors[at]), 1, 1
        else:
            unit, count, power = _letters_of_unit(factors[at : at + 3])
        if unit is None:
            return None
        total, at = total.times(unit, power), at + count
    return total


def _letters_of_unit(factors: Sequence[Node]) -> tuple[Unit | None, int, int]:
    """Returns the unit that the first letters spell ("cm"), how many they are, and their power."""
    for count in range(len(factors), 0, -1):
        last, power = factors[count - 1], 1
        if last.op == "pow" and last.args[1].op == "num" and 0 < abs(last.args[1].value) < 5:
            last, power = last.args[0], int(last.args[1].value)
        letters = (*factors[: count - 1], last)
        name = "".join(str(letter.value) for letter in letters if letter.op == "sym")
        unit = lookup(name) if len(name) == count and (count > 1 or name in AMBIGUOUS) else None
        if unit is not None and not (name == "ms" and power < 0):  # metres per second, not per millisecond
            return unit, count, power
    return None, 0, 0
