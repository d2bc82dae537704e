"""Rewrites what Python and SymPy print as LaTeX: sets, intervals, fractions, equations, matrices.

A text is rewritten only if all of it is one call, such as `FiniteSet(1, 2)`, whose arguments are clear.
"""

from __future__ import annotations

import re

from verifiers.lazy_pattern import lazy_pattern

_CALL = lazy_pattern(
    r"(Eq|FiniteSet|Interval(?:\.(?:open|Lopen|Ropen))?|Union|Rational|Fraction|(?:Mutable|Immutable)?(?:Dense)?Matrix"
    r"|(?:np\.)?array|set|frozenset)\((.*)\)",
    re.DOTALL,
)
_STARTS = ("Eq(", "Fin", "Int", "Uni", "Rat", "Fra", "Mat", "Mut", "Imm", "np.", "arr", "set(", "froz", "[[")
_BRACKETS = {"Interval": "[]", "Interval.open": "()", "Interval.Lopen": "(]", "Interval.Ropen": "[)"}
_OPEN, _CLOSE = "([{", ")]}"
_MOST_NESTED = 3  # nested calls: a union of intervals with fractions as ends


def from_python(text: str, depth: int = 0) -> str:
    """Returns the text in LaTeX if it is one such call or a list of rows, else unchanged."""
    if not text.startswith(_STARTS) or depth > _MOST_NESTED:
        return text
    if text.startswith("[["):
        return _matrix(text) or text
    call = _CALL.fullmatch(text)
    args = _arguments(call[2]) if call else None
    if call is None or not args:
        return text
    name = call[1]
    if name in ("set", "frozenset"):
        inside = args[0]
        whole = len(args) == 1 and len(inside) > 2 and inside[0] + inside[-1] in ("[]", "()", "{}")
        return rf"\{{{inside[1:-1]}\}}" if whole else text
    if name.endswith(("Matrix", "array")):
        return (_matrix(args[0]) if len(args) == 1 else "") or text
    args = [from_python(arg, depth + 1) for arg in args]
    if name == "FiniteSet":
        return rf"\{{{', '.join(args)}\}}"
    if name == "Union":
        return r" \cup ".join(args)
    if name in _BRACKETS and len(args) == 2:
        brackets = _BRACKETS[name]
        low = "(" if args[0] == "-oo" else brackets[0]  # infinite ends are open, whatever SymPy prints
        high = ")" if args[1] == "oo" else brackets[1]
        return f"{low}{args[0]}, {args[1]}{high}"
    if name in ("Rational", "Fraction") and len(args) == 2:
        return rf"\frac{{{args[0]}}}{{{args[1]}}}"
    return f"{args[0]} = {args[1]}" if name == "Eq" and len(args) == 2 else text


def _matrix(text: str) -> str:
    """Returns `[[1, 2], [3, 4]]` as a LaTeX matrix; "" unless all rows are lists of one length."""
    if text[:1] + text[-1:] != "[]":
        return ""
    rows = _arguments(text[1:-1]) or []
    if not all(row[:1] + row[-1:] == "[]" for row in rows):
        return ""
    cells = [_arguments(row[1:-1]) for row in rows]
    lengths = {len(row) if row else 0 for row in cells}
    if len(lengths) != 1 or not lengths.isdisjoint({0}):
        return ""
    return r"\begin{pmatrix}" + r" \\ ".join(" & ".join(row) for row in cells if row) + r"\end{pmatrix}"


def _arguments(text: str) -> list[str] | None:
    """Splits at commas outside of brackets; None if a part is empty or the brackets do not match."""
    parts, start, stack = [], 0, ""
    for index, char in enumerate(text):
        if char in _OPEN:
            stack += _CLOSE[_OPEN.index(char)]
        elif char in _CLOSE:
            if not stack.endswith(char):
                return None
            stack = stack[:-1]
        elif char == "," and not stack:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return None if stack or not all(parts) else parts
