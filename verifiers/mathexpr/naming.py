"""Renames arbitrary names: bound variables, declared parameters, constants of integration."""

from __future__ import annotations

import re
from dataclasses import replace as changed

from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.answers import Answer, Piece
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.nodes import PI, Node, rename, symbols, walk
from verifiers.units.reading import DEGREE

_PARAMETERS = frozenset({"t", "s", "r", "u", "k", "lambda", "mu"})
_INDICES = frozenset("ijklmnpqz")  # letters for any integer
_FORMULA = lazy_pattern(r"(?s)\$[^$]{1,400}\$|\\\(.{1,400}?\\\)|\\\[.{1,400}?\\\]")
_SIGN = lazy_pattern(r"[=+*/^'(){}\d]|[A-Za-z]-|-[A-Za-z]")
_AROUND_SIGN = lazy_pattern(r"\s*([=+*/^-])\s*")
_COMMAND = lazy_pattern(r"\\[A-Za-z]+")


def nodes_of(answer: Answer) -> list[Node]:
    """Returns all expressions in the answer."""
    nodes = [node for node in (answer.node, answer.also) if node is not None]
    nodes += [end for piece in answer.pieces for end in (piece.low, piece.high)]
    return nodes + [node for item in answer.items for node in nodes_of(item)]


def free(answer: Answer) -> frozenset[str]:
    """Returns the free symbols of all expressions in the answer."""
    return frozenset().union(*map(symbols, nodes_of(answer)))


def renamed(answer: Answer, names: dict[str, str]) -> Answer:
    """Returns the answer with free symbols renamed."""
    return changed(
        answer,
        node=None if answer.node is None else rename(answer.node, names),
        items=tuple(renamed(item, names) for item in answer.items),
        pieces=tuple(
            Piece(rename(p.low, names), p.low_closed, rename(p.high, names), p.high_closed) for p in answer.pieces
        ),
    )


def aligned(gold: Answer, answer: Answer, prompt: str = "") -> Answer:
    """Returns the answer with its bound names replaced by the gold's, where no free name is captured.

    Args:
        prompt: the question, whose letters stand for nothing else.
    """
    if answer.kind != gold.kind and {"scalar", "text"} == {answer.kind, gold.kind}:
        return answer
    ours, theirs = free(gold), free(answer)
    if ours == theirs and gold.bound == answer.bound:
        return answer
    names: dict[str, str] = {}
    if len(gold.bound) == len(answer.bound) and gold.bound:
        pairs = zip(answer.bound, gold.bound, strict=True)
        names = {a: g for a, g in pairs if a != g and (g not in theirs or g in answer.bound)}
    only_gold, only_answer = ours - theirs - set(names.values()), theirs - ours - set(names)
    if len(only_gold) == len(only_answer) == 1:
        g, a = next(iter(only_gold)), next(iter(only_answer))
        if (_free_to_rename(gold, answer, g, a) and (a in answer.bound or a not in letters(prompt))) or (
            _is_parameter(gold, g, prompt) and _is_parameter(answer, a, prompt)
        ):
            names[a] = g
    return renamed(answer, names) if names else answer


def captured(gold: Answer, answer: Answer) -> bool:
    """Returns whether the gold's variable is free in the answer, which has its own: f(t) = x^2 for f(x) = x^2."""
    if len(gold.bound) != len(answer.bound):
        return False
    wanted = [g for g, a in zip(gold.bound, answer.bound, strict=True) if g != a and g not in answer.bound]
    return bool(wanted) and bool(free(answer).intersection(wanted))


def _free_to_rename(gold: Answer, answer: Answer, g: str, a: str) -> bool:
    if a in answer.bound or (g in gold.bound and gold.condition):
        return True
    if g.casefold() == a.casefold():
        return True
    if is_period(gold, g) and is_period(answer, a):
        return True
    return is_added_constant(gold, g) and is_added_constant(answer, a)


def letters(prompt: str) -> set[str]:
    """Returns the letters in the formulas of a question."""
    return set("".join(_COMMAND.sub("", formula[0]) for formula in _FORMULA.finditer(prompt)))


def _is_parameter(answer: Answer, name: str, prompt: str) -> bool:
    """Returns whether the name is the t of the points (1 + 4t, 2 - t) of a line, and no letter of the question."""
    items = answer.items if answer.kind in ("tuple", "list") else ()
    moving = [item.node for item in items if item.node is not None and name in symbols(item.node)]
    if name not in _PARAMETERS or len(moving) < 2 or (answer.kind == "list" and not all(item.name for item in items)):
        return False
    linear = all(_steps(node, name) for node in moving)
    return linear and re.search(rf"(?<![A-Za-z]){name}(?![A-Za-z])", prompt) is None


def letters_in_formulas(prompt: str) -> set[str]:
    """Returns the letters beside the signs of a question, in dollars or not; not those of "for constants A and B"."""
    together = _AROUND_SIGN.sub(r"\1", _COMMAND.sub(" ", prompt))
    return {letter for word in together.split() if _SIGN.search(word) for letter in word}


def is_period(answer: Answer, name: str) -> bool:
    """Returns whether the name is the n of "n pi" or "360 n degrees", which the letter of any index may replace.

    The letters of "pi r^2", "pi a b" and "pi/n" are given, and no other may stand for them.
    """
    nodes = nodes_of(answer)
    if name[0].casefold() not in _INDICES or not all(_steps(node, name) for node in nodes):
        return False
    in_degrees = answer.unit is not None and answer.unit.dimension == DEGREE.dimension
    return any(
        part.op in ("mul", "div")
        and name in symbols(part)
        and (in_degrees or any(inner == PI or inner.op == "deg" for inner in walk(part)))
        for node in nodes
        for part in walk(node)
    )


def _steps(node: Node, name: str) -> bool:
    """Returns whether equal steps of the name are equal steps of the value, besides the sign of a (-1)^n."""
    if node.op == "sym" or name not in symbols(node):
        return True
    inside = [index for index, arg in enumerate(node.args) if name in symbols(arg)]
    match node.op:
        case "mul":
            return len(inside) == 1 and _steps(node.args[inside[0]], name)
        case "div":
            return inside == [0] and _steps(node.args[0], name)
        case "pow":
            return rational(node.args[0]) == -1
        case "fn" | "root" | "abs" | "fact" | "binom":
            return False
    return all(_steps(arg, name) for arg in node.args)


def is_added_constant(answer: Answer, name: str) -> bool:
    """Returns whether the name is the C of "F(x) + C"."""
    node = answer.node
    if node is None or node.op != "add" or name[0] not in "CcKk":
        return False
    return sum(name in symbols(arg) for arg in node.args) == 1 and Node("sym", (), name) in node.args


def names_clash(gold: Answer, answer: Answer) -> bool:
    """Returns whether both are named, and differently, as x = 5 and y = 5. S_n, S(n) and y name the same function."""
    if not gold.name or not answer.name or gold.kind != answer.kind:
        return False
    if (
        gold.kind == "region"
        and len(gold.name) == len(answer.name) == 1
        and gold.name.islower() != answer.name.islower()
    ):
        return False  # x > 4 and S = (4, inf)
    first, second = (side.name.casefold().removeprefix("hat ") for side in (gold, answer))  # an estimate: \hat{y}
    if first == second or (first == "y" and answer.bound) or (second == "y" and gold.bound):
        return False
    longer, shorter = (first, second) if len(first) > len(second) else (second, first)
    index = longer.removeprefix(shorter + "_")
    return index == longer or not index.strip("{}").isalnum()  # x_1 is called x, but a_{n+1} = 2n is not a_n = 2n
