"""Answers as Python and SymPy print them, and other spellings of one answer that look like several."""

from __future__ import annotations

import pytest

from verifiers import Completion, Problem, resolve
from verifiers.mathexpr.pythonic import from_python

SAME = [
    (r"x = 5", "Eq(x, 5)"),
    (r"5", "Eq(x, 5)"),
    (r"y = 2x + 1", "Eq(y, 2*x + 1)"),
    (r"\{1, 2\}", "FiniteSet(2, 1)"),
    (r"\{1, 2\}", "set([1, 2])"),
    (r"\{\frac12, 2\}", "FiniteSet(Rational(1, 2), 2)"),
    (r"[0, 1)", "Interval.Ropen(0, 1)"),
    (r"[0, \infty)", "Interval(0, oo)"),
    (r"(-\infty, \infty)", "Interval(-oo, oo)"),
    (r"(-\infty, 1) \cup (2, \infty)", "Union(Interval.open(-oo, 1), Interval.open(2, oo))"),
    (r"\frac{1}{2}", "Fraction(1, 2)"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1, 2], [3, 4]]"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "Matrix([[1, 2], [3, 4]])"),
    (r"(1,2),(3,4)", "[(3, 4), (1, 2)]"),
    (r"(1,2),(3,4)", "(1,2), (3,4), (1,2)"),
    (r"1, 2, 3", "[1, 2, 3]"),
    (r"B", "B不是 A"),
    (r"B", "B, not A"),
    ("Anna and the answer is\n(C) Cecile", "C"),
    ("185\\", "185"),
]
DIFFERENT = [
    (r"5", "Eq(x, 6)"),
    (r"\{1, 2\}", "FiniteSet(1, 2, 3)"),
    (r"[0, 1)", "Interval(0, 1)"),
    (r"[0, 1)", "Interval.Lopen(0, 1)"),
    (r"[0, \infty)", "Interval.open(0, oo)"),
    (r"\frac{1}{2}", "Fraction(2, 1)"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1, 3], [2, 4]]"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1, 2, 3, 4]]"),
    (r"(1,2),(3,4)", "[(2, 1), (3, 4)]"),
    (r"(1,2),(3,4)", "(1,2), (3,4), (5,6)"),
    (r"(1,2),(3,4)", "(1,2), (1,2)"),
    (r"1, 2, 3", "[1, 2, 3, 4]"),
    (r"1, 2", "1, 2, 2"),
    (r"A", "B不是 A"),
    (r"A", "不是 A"),
    (r"A", "B, not A"),
]


@pytest.mark.parametrize(("gold", "text", "score"), [(*row, 1.0) for row in SAME] + [(*row, 0.0) for row in DIFFERENT])
def test_in_a_box(gold: str, text: str, score: float) -> None:
    assert resolve("math")(Problem("", gold), Completion(f"\\boxed{{{text}}}")).score == score


@pytest.mark.parametrize(
    "text",
    ["[[1, 2], [3]]", "[[1,2],[3,4]] + x", "[[]]", "Eq(x)", "Eq(x, 1) + (2)", "set(1)", "Union(", "Interval(1,)"],
)
def test_what_is_no_such_call_stays(text: str) -> None:
    assert from_python(text) == text


def test_nesting_is_bounded() -> None:
    text = "Union(" * 500 + "1" + ")" * 500
    assert len(from_python(text)) <= len(text)
