"""Compares solutions that run over all integers: pi/2 + n pi is the same as -pi/2 + k pi, and as +-pi/2 + 2 n pi."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from verifiers.lazy_pattern import any_case
from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.naming import free, is_period, letters
from verifiers.mathexpr.nodes import PI, Node, number, substitute, symbols
from verifiers.units.reading import DEGREE

Value = tuple[Fraction, Fraction]  # p + q pi
Progression = tuple[Value, Value]  # first value, step

_INTEGERS = frozenset({"integer", "integers", "setz", "z"})
_NOT_ALL = frozenset("positive nonnegative non-negative negative natural setn n > >= < <= ≥ ≤ != odd even".split())
_TRIGONOMETRY = any_case(r"\b(?:arc)?(?:sin|cos|tan|cot|sec|csc|tg|ctg)(?![a-z])|trigonom")
_MOST = 48  # residues of one side
_TRIED = (0, 1, 2, 3, 4, 5, -1, -2, -3, 100, 101)  # integers at which values are compared with the progressions


def same_families(gold: Answer, answer: Answer, prompt: str) -> bool:
    """Returns whether both are progressions a + k d over all integers k, and have the same values.

    Assignments to several names are the points of a line: x = 2 + 5t, y = -1 - 3t. One of both must say that k is an
    integer, or the question be one of trigonometry.
    """
    if not (gold.bound or answer.bound or (free(gold) and _TRIGONOMETRY.search(prompt))):
        return False
    if gold.kind == answer.kind == "tuple" and gold.brackets != answer.brackets:
        return False  # intervals, open and closed
    sides = []
    for side, other in ((gold, answer), (answer, gold)):
        items = side.items if side.kind in ("list", "set", "tuple") else (side,)
        index = _index(side) if side.bound else _unsaid_index(side, other, prompt)
        progressions = [_progressions(item, index) for item in items] if index else []
        if not all(progressions) or not progressions:
            return False
        sides.append(sorted(zip((item.name for item in items), progressions, strict=True), key=lambda pair: pair[0]))
    ours, theirs = ([name for name, _ in side] for side in sides)
    if len(set(ours)) == len(ours) > 1:
        return ours == theirs and _same_line(*([parts for _, parts in side] for side in sides))
    return _same_values(*([part for _, parts in side for part in parts] for side in sides))


def _index(answer: Answer) -> str:
    """Returns the name that stands for any integer, or "" if there is none."""
    words = set(answer.condition.casefold().split()) - set(answer.bound)
    if len(set(answer.bound)) != 1 or not words & _INTEGERS or words & _NOT_ALL:
        return ""
    return answer.bound[0]


def _unsaid_index(answer: Answer, other: Answer, prompt: str) -> str:
    """Returns the k of "pi/6 + k pi" alone; "" if the question gives it another meaning, or there is none."""
    names = free(answer)
    if len(names) != 1 or answer.condition or (prompt and not other.bound and names & letters(prompt)):
        return ""
    (name,) = names
    return name if is_period(answer, name) else ""


def _progressions(item: Answer, index: str) -> list[Progression]:
    """Returns the progressions of the values at even and at odd integers, negative ones too; [] if they are none."""
    node = item.node
    if item.kind != "scalar" or node is None or symbols(node) != {index}:
        return []
    degrees = item.unit is not None and item.unit.dimension == DEGREE.dimension
    found = [_value(substitute(node, {index: number(at)}), degrees=degrees) for at in _TRIED]
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        return []
    parts = [(values[at], _minus(values[at + 2], values[at])) for at in range(2)]
    line = (_plus(parts[at % 2][0], _times(parts[at % 2][1], at // 2)) for at in _TRIED)
    return parts if any(parts[0][1]) and any(parts[1][1]) and values == list(line) else []


def _value(node: Node, *, degrees: bool) -> Value | None:
    """Returns a constant as p + q pi; None if it is none or can't be written so."""
    found = [rational(_with_pi(node, at)) for at in (0, 1, 2)]
    values = [value for value in found if value is not None]
    if len(values) < 3 or values[2] - values[1] != values[1] - values[0]:
        return None
    constant, factor = values[0], values[1] - values[0]
    return (Fraction(0), constant / 180) if degrees and not factor else (constant, factor)


def _with_pi(node: Node, value: int) -> Node:
    if node == PI:
        return number(value)
    args = tuple(_with_pi(arg, value) for arg in node.args)
    if node.op == "deg":
        return Node("mul", (*args, number(Fraction(value, 180))))
    return node.with_args(args) if args else node


def _minus(a: Value, b: Value) -> Value:
    return a[0] - b[0], a[1] - b[1]


def _plus(a: Value, b: Value) -> Value:
    return a[0] + b[0], a[1] + b[1]


def _times(value: Value, factor: Fraction | int) -> Value:
    return value[0] * factor, value[1] * factor


def _quotient(value: Value, step: Value) -> Fraction | None:
    """Returns the number by which the step is multiplied to give the value, or None."""
    at = 0 if step[0] else 1
    quotient = value[at] / step[at]
    return quotient if _times(step, quotient) == value else None


def _same_values(ours: Sequence[Progression], theirs: Sequence[Progression]) -> bool:
    first = ours[0][1]
    ratios = [_quotient(step, first) for _, step in (*ours, *theirs)]
    parts = [abs(ratio) for ratio in ratios if ratio is not None]
    if len(parts) < len(ratios):
        return False
    together = math.lcm(*(part.numerator for part in parts)), math.gcd(*(part.denominator for part in parts))
    period = _times(first, Fraction(*together))
    residues = [_residues(side, period) for side in (ours, theirs)]
    return all(residues) and all(
        any(_is_multiple(_minus(value, other), period) for other in others)
        for some, others in (residues, residues[::-1])
        for value in some
    )


def _is_multiple(value: Value, step: Value) -> bool:
    quotient = _quotient(value, step)
    return quotient is not None and quotient.denominator == 1


def _residues(side: Sequence[Progression], period: Value) -> list[Value]:
    """Returns the values of progressions within a period; [] if these are too many."""
    found: list[Value] = []
    for first, step in side:
        times = abs(int(_quotient(period, step) or 0))
        if len(found) + times > _MOST:
            return []
        found += [_minus(first, _times(step, -at)) for at in range(times)]
    return found


def _same_line(ours: Sequence[list[Progression]], theirs: Sequence[list[Progression]]) -> bool:
    """Returns whether the points (x, y, ...) of one parametrisation are those of the other."""
    if any(even[1] != odd[1] or _times(_line([even, odd])[1], 2) != even[1] for even, odd in (*ours, *theirs)):
        return False  # even and odd integers give points of two lines
    starts, steps = zip(*(_line(parts) for parts in ours), strict=True)
    others, other_steps = zip(*(_line(parts) for parts in theirs), strict=True)
    if other_steps not in (steps, tuple(_times(step, -1) for step in steps)):
        return False
    shifts = {_quotient(_minus(b, a), step) for a, b, step in zip(starts, others, steps, strict=True)}
    return len(shifts) == 1 and all(shift is not None and shift.denominator == 1 for shift in shifts)


def _line(parts: list[Progression]) -> Progression:
    return parts[0][0], _minus(parts[1][0], parts[0][0])
