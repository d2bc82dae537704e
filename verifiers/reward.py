"""A reward is a formula over verifiers; its value comes with every part."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from verifiers.core import Completion, Problem, Verdict, Verifier
from verifiers.registry import resolve

_NAME = re.compile(r"[A-Za-z_][\w.]*(?::[A-Za-z_][\w.]*)?")
_MAX_CHARS = 2000  # keeps the formula within Python's own parser limits


@dataclass(frozen=True, slots=True)
class Score:
    """The reward of one completion, and what it is made of."""

    reward: float | None  # None = unscored: no verifier could judge, or a check could not be made
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)  # by the name used in the formula
    error: str = ""  # why a check could not be made


class Reward:
    """A formula such as `"math * (0.5 + 0.5*language) + 0.1*format"`, ready to score completions.

    Names are those `resolve` takes; `+ - * /`, parentheses and numbers join them. A part that abstains adds nothing
    and gates nothing: an expression abstains when all its verifiers do, a sum leaves such terms out, a product such
    factors.

    Args:
        formula: the text; read without `eval`.
        verifiers: ready verifiers by name, for names that are not to be resolved.
        options: keyword arguments for the verifiers to be resolved, by name.

    Raises:
        ValueError: the formula can't be read, or names something unknown.
    """

    def __init__(
        self,
        formula: str,
        *,
        verifiers: Mapping[str, Verifier] | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.formula = formula
        self._tree, names = _parse(formula)
        ready, options = dict(verifiers or {}), dict(options or {})
        unused = [name for name in (*ready, *options) if name not in names]
        if unused:
            raise ValueError(f"options for '{unused[0]}', which the reward '{formula}' does not use")
        self.verifiers: dict[str, Verifier] = {
            name: ready[name] if name in ready else resolve(name, **options.get(name, {})) for name in names
        }

    def __call__(self, problem: Problem, completion: Completion) -> Score:
        """Scores one completion. Raises VerifierError where a check can't be made."""
        verdicts = {name: _verdict(name, verify, problem, completion) for name, verify in self.verifiers.items()}
        return Score(_value(self._tree, {name: verdict.score for name, verdict in verdicts.items()}), verdicts)


def score_many(reward: Reward, pairs: Iterable[tuple[Problem, Completion]]) -> list[Score]:
    """Scores in order; a check that fails leaves its own completion unscored (reward None), never at 0."""
    return [_score_one(reward, problem, completion) for problem, completion in pairs]


def _score_one(reward: Reward, problem: Problem, completion: Completion) -> Score:
    try:
        return reward(problem, completion)
    except Exception as error:  # VerifierError, or a bug in a user's verifier: the one broad except
        return Score(None, {}, f"{type(error).__name__}: {error}")


def _verdict(name: str, verify: Verifier, problem: Problem, completion: Completion) -> Verdict:
    found: Any = verify(problem, completion)
    if isinstance(found, Verdict):
        return found
    if isinstance(found, bool | int | float):  # a user's plain function
        try:
            return Verdict(float(found), "ok" if found else "zero")
        except ValueError as error:
            raise ValueError(f"verifier '{name}' returned {found!r}; a score lies in [0, 1]") from error
    raise TypeError(f"verifier '{name}' returned {type(found).__name__}; it must return a Verdict, a float or a bool")


def _parse(formula: str) -> tuple[ast.expr, list[str]]:
    if len(formula) > _MAX_CHARS:
        raise ValueError(f"reward formula has {len(formula)} characters; at most {_MAX_CHARS} are read")
    names: list[str] = []

    def stand_in(match: re.Match[str]) -> str:  # `module:attr` is no Python name
        if match[0] not in names:
            names.append(match[0])
        return f"v{names.index(match[0])}_"

    # Numbers such as 1e-3 hold a letter, so they are stepped over first.
    number = r"\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?"
    source = re.sub(
        rf"(?P<number>{number})|{_NAME.pattern}",
        lambda match: match[0] if match["number"] else stand_in(match),
        formula,
    )
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"can't read the reward formula '{formula}': {getattr(error, 'msg', error)}") from error
    tree = _checked(tree, names, formula)
    if not names:
        raise ValueError(f"the reward formula '{formula}' names no verifier")
    return tree, names


_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def _checked(node: ast.expr, names: list[str], formula: str) -> ast.expr:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            _checked(left, names, formula)
            _checked(right, names, formula)
            if isinstance(op, ast.Div) and not (isinstance(right, ast.Constant) and right.value):
                raise ValueError(f"reward formula '{formula}': divide only by a number other than 0")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _checked(operand, names, formula)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if value - value != 0:
                raise ValueError(f"reward formula '{formula}': a number is too large")
        case ast.Name(id=name):
            node.id = names[int(name[1:-1])]
        case _:
            raise ValueError(
                f"reward formula '{formula}': only verifiers, numbers, + - * / and parentheses can be used; "
                f"not {type(node).__name__.lower()}"
            )
    return node


def _value(node: ast.expr, scores: Mapping[str, float | None]) -> float | None:
    match node:
        case ast.Name(id=name):
            return scores[name]
        case ast.Constant(value=value):
            return float(value)  # type: ignore[arg-type]  # _checked lets only numbers through
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, scores)
            return -value if value is not None and isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, scores), _value(right, scores)
            if a is None or b is None:
                return _without_abstaining(left, a, op, right, b)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case _:
                    return a / b
    raise AssertionError(ast.dump(node))


def _without_abstaining(
    left: ast.expr, a: float | None, op: ast.operator, right: ast.expr, b: float | None
) -> float | None:
    """One side abstained: the other speaks alone, unless it is only constants, which judge nothing."""
    side, value = (left, a) if b is None else (right, b)
    if value is None or not any(isinstance(node, ast.Name) for node in ast.walk(side)):
        return None
    return -value if isinstance(op, ast.Sub) and b is value and a is None else value
