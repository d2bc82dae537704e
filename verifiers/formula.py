"""Reward formulas: parsed without `eval` and checked, with a known range."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

# `rm:` is followed by a path. The path ends at a space or at a character that no path in a formula contains.
_NAME = re.compile(r"rm:[^\s()*+]+|(?:sandboxed:)?[A-Za-z_][\w.]*(?::[A-Za-z_][\w.]*)?")
_OWN = " (your own reward is written MODULE:FUNCTION, without folders and .py)"
_MAX_CHARS = 2000  # keeps the formula within Python's own parser limits
_MAX_WORK = 200_000  # names in all products of the expansion and of its steps; some 20 ms
_MAX_CORNERS = 12  # up to this many verifiers, all 2^n combinations of extreme scores are tried
_TINY = 1e-12
_SMALLEST, _LARGEST = 1e-9, 1e9
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)

Terms = dict[tuple[str, ...], float]  # a polynomial: product of names -> its coefficient


class Formula:
    """An expression over verifiers' names: `+ - * /`, parentheses and numbers.

    A part that abstains adds nothing and gates nothing: a sum leaves out terms that abstain, a product such factors,
    and an expression abstains if all its verifiers do.

    Raises (when created): ValueError if it can't be parsed, or if a name in it can't change its value.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._tree, self.names = _parse(text)
            self.terms = _expanded(self._tree, text)
        except RecursionError:  # 2,000 signs in a row
            raise ValueError(f"can't read the reward formula '{text[:80]}...': it is nested too deeply") from None
        if any(abs(weight) > _LARGEST for weight in self.terms.values()):
            raise ValueError(f"reward formula '{text}': a weight is too large; at most {_LARGEST:g}")
        used = {name for product in self.terms for name in product}
        for name in self.names:
            if name not in used:
                raise ValueError(
                    f"reward formula '{text}': '{name}' can't change the reward; remove it or its weight 0"
                )

    def value(self, scores: Mapping[str, float | None]) -> float | None:
        """Returns the formula's value; None if it abstains."""
        return _value(self._tree, scores)

    @property
    def is_exact(self) -> bool:
        """True if `range` is attained, False if it is only an outer bound."""
        return len(self.names) <= _MAX_CORNERS and all(len(set(product)) == len(product) for product in self.terms)

    @functools.cached_property
    def range(self) -> tuple[float, float]:
        """Lowest and highest value over all scores in [0, 1], if no verifier abstains."""
        if self.is_exact:  # linear in each name, so the extremes are at corners
            bits = {name: 1 << place for place, name in enumerate(self.names)}
            values = [0.0] * (1 << len(bits))
            for product, c in self.terms.items():
                values[sum(bits[name] for name in product)] = c
            # The value at a corner is the sum of the terms whose names are all 1 there, summed up name by name.
            for bit in bits.values():
                for corner in range(len(values)):
                    if corner & bit:
                        values[corner] += values[corner ^ bit]
            return round(min(values), 12) + 0.0, round(max(values), 12) + 0.0  # 0.0 in place of -0.0
        constant = self.terms.get((), 0.0)
        others = [c for product, c in self.terms.items() if product]
        return constant + sum(c for c in others if c < 0), constant + sum(c for c in others if c > 0)

    def pays_alone(self, name: str, correctness: Sequence[str]) -> bool:
        """True if a higher score of `name` can raise the value while every verifier of `correctness` gives 0."""
        return any(
            c > _TINY for product, c in self.terms.items() if name in product and not {*product} & {*correctness}
        )

    def __str__(self) -> str:
        low, high = self.range
        return f"{self.text}  (from {low:g} to {high:g}{'' if self.is_exact else ' at most'})"


def _parse(formula: str) -> tuple[ast.expr, list[str]]:
    if len(formula) > _MAX_CHARS:
        raise ValueError(f"reward formula has {len(formula)} characters; at most {_MAX_CHARS} are read")
    if not formula.isascii():  # Python normalises some other letters to ASCII
        raise ValueError(f"can't read the reward formula '{formula}': only ASCII characters are allowed")
    names: list[str] = []

    def stand_in(match: re.Match[str]) -> str:  # `module:attr` is not a Python name
        if match[0] not in names:
            names.append(match[0])
        return f"v{names.index(match[0])}_"

    # Numbers such as 1e-3 contain a letter, so they are matched first.
    number = r"\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?"
    source = re.sub(
        rf"(?P<number>{number})|{_NAME.pattern}",
        lambda match: match[0] if match["number"] else stand_in(match),
        formula,
    )
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        bare = re.search(r"(?:^|[\s(])(\d+\.?\d*|\.\d+)\s+([A-Za-z]\w*)", formula)
        hint = f" (a weight is written {bare[1]}*{bare[2]})" if bare else _OWN if ":" in formula else ""
        if formula.rstrip().endswith(("+", "-", "*", "/")):
            hint = f"; a term is missing after its last {formula.rstrip()[-1]}"
        raise ValueError(f"can't read the reward formula '{formula}': {getattr(error, 'msg', error)}{hint}") from error
    tree = _checked(tree, names, formula)
    if not names:
        raise ValueError(f"the reward formula '{formula}' names no verifier")
    return tree, names


def _checked(node: ast.expr, names: list[str], formula: str) -> ast.expr:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            _checked(left, names, formula)
            _checked(right, names, formula)
            if isinstance(op, ast.Div) and not (isinstance(right, ast.Constant) and right.value):
                hint = _OWN if ":" in formula else ""
                raise ValueError(f"reward formula '{formula}': divide only by a number other than 0{hint}")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _checked(operand, names, formula)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if value and not _SMALLEST <= value <= _LARGEST:  # so that sums and products of these stay finite
                raise ValueError(
                    f"reward formula '{formula}': a number is too large or too small (0, {_SMALLEST:g} to {_LARGEST:g})"
                )
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
    """Value if one side abstained: the other side's, unless that consists of constants only, which judge nothing."""
    side, value = (left, a) if b is None else (right, b)
    if value is None or not any(isinstance(node, ast.Name) for node in ast.walk(side)):
        return None
    return -value if isinstance(op, ast.Sub) and b is value and a is None else value


def _expanded(tree: ast.expr, formula: str) -> Terms:
    """Returns the formula as a polynomial; terms that cancel are left out. Raises ValueError if that takes too long."""
    spent = 0

    def expanded(node: ast.expr) -> Terms:
        nonlocal spent
        found: Iterable[tuple[tuple[str, ...], float]]
        match node:
            case ast.Name(id=name):
                found = [((name,), 1.0)]
            case ast.Constant(value=value):
                found = [((), float(value))]  # type: ignore[arg-type]  # _checked lets only numbers through
            case ast.UnaryOp(op=op, operand=operand):
                sign = -1 if isinstance(op, ast.USub) else 1
                found = ((product, sign * c) for product, c in expanded(operand).items())
            case ast.BinOp(left=left, op=op, right=right):
                a, b = expanded(left), expanded(right)
                if isinstance(op, ast.Add | ast.Sub):
                    sign = 1 if isinstance(op, ast.Add) else -1
                    found = itertools.chain(a.items(), ((product, sign * c) for product, c in b.items()))
                elif isinstance(op, ast.Div):
                    found = ((product, c / b[()]) for product, c in a.items())
                else:
                    pairs = itertools.product(a.items(), b.items())
                    found = ((tuple(sorted((*p, *q))), c * d) for (p, c), (q, d) in pairs)
            case _:
                raise AssertionError(ast.dump(node))
        terms: Terms = {}
        for product, c in found:
            spent += 1 + len(product)
            if spent > _MAX_WORK:
                raise ValueError(f"reward formula '{formula}': too many products; write it with fewer parentheses")
            terms[product] = terms.get(product, 0.0) + c
        return {product: c for product, c in terms.items() if abs(c) > _TINY}

    return expanded(tree)
