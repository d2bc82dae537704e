"""Countdown: reach a target with each of the given numbers."""

from __future__ import annotations

import collections
import dataclasses
import re
from fractions import Fraction
from typing import Any

from verifiers.core import Completion, GoldError, Problem, Verdict
from verifiers.extract import final_answer

REASONS = {
    "equal": "an expression of the given numbers that equals the target",
    "different": "its value is not the target",
    "wrong_numbers": "it does not use each given number exactly once",
    "division_by_zero": "it divides by zero",
    "unparseable": "not an expression of numbers, + - * / and parentheses",
    "no_answer": "no answer: none, several answer blocks, unclosed thinking",
    "too_long": "more characters or digits than any solution needs",
}  # the closed set of reasons
_MAX_CHARS, _MAX_DIGITS, _MAX_DEPTH = 2000, 15, 60
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|(.))", re.DOTALL)
_PLAIN_NUMBER = re.compile(r"[+-]?\d{1,100}(?:\.\d{1,100})?(?:/\d{1,100})?", re.ASCII)
_SIGNS = {"×": "*", "·": "*", "∙": "*", "⋅": "*", "÷": "/", "−": "-", "–": "-", "[": "(", "]": ")", "{": "(", "}": ")"}
_LATEX = [
    *((r"\times", "*"), (r"\cdot", "*"), (r"\div", "/"), (r"\left", ""), (r"\right", ""), ("$", ""), ("\\,", " ")),
    *((sign, " ") for sign in (r"\(", r"\)", r"\[", r"\]")),
]
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")


class Countdown:
    """1 if the answer is an expression that equals the target and uses each given number exactly once.

    Numbers come from `Problem.meta["numbers"]` (or "nums"), the target from `Problem.answer` or `meta["target"]`. A
    parser without `eval` reads the expression in exact fractions: + - * / (or × ÷ and LaTeX), parentheses and a sign.
    "= target" may follow, and must be true. Reasons: see REASONS. It never abstains.
    Known limits: no powers, no joining of digits (given 4 and 2, 42 is a wrong number).

    Args:
        use_all: False allows numbers to be left unused.
        partial: score of an expression that uses the numbers correctly but misses the target (0 = nothing).

    Raises (when called): GoldError if numbers or target are missing or are not numbers.
    """

    version = "2"

    def __init__(self, *, use_all: bool = True, partial: float = 0.0) -> None:
        if not 0 <= partial < 1:
            raise ValueError(f"partial must be in [0, 1), got {partial}")
        self.use_all, self.partial = use_all, partial

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        numbers, target = _given(problem)
        span = final_answer(completion.text)
        text = completion.text[slice(*span)].strip() if span else ""
        return dataclasses.replace(self.judged(text, numbers, target), span=span) if text else Verdict(0.0, "no_answer")

    def judged(self, text: str, numbers: collections.Counter[Fraction], target: Fraction) -> Verdict:
        """Returns the verdict on an expression."""
        if len(text) > _MAX_CHARS:
            return Verdict(0.0, "too_long", f"{len(text)} characters")
        try:
            value, used = evaluate(text)
        except ZeroDivisionError:
            return Verdict(0.0, "division_by_zero", answer=text)
        except OverflowError as error:
            return Verdict(0.0, "too_long", str(error), text)
        except ValueError as error:
            return Verdict(0.0, "unparseable", str(error), text)
        left, extra = numbers - used, used - numbers
        if extra or (self.use_all and left):
            detail = f"{_listed(extra)} too many" if extra else f"{_listed(left)} not used"
            return Verdict(0.0, "wrong_numbers", detail, text)
        if value != target:
            return Verdict(self.partial, "different", f"it is {value}, not {target}", text)
        return Verdict(1.0, "equal", answer=text)


def evaluate(text: str) -> tuple[Fraction, collections.Counter[Fraction]]:
    """Returns (value, numbers used) of an arithmetic expression, or of the left side of a true equation.

    Raises: ValueError for anything else, ZeroDivisionError, OverflowError for numbers that are too long.
    """
    for old, new in _LATEX:
        text = text.replace(old, new)
    while (without := _FRACTION.sub(r"((\1)/(\2))", text)) != text:  # from the innermost fraction outwards
        text = without
    left, *rights = "".join(_SIGNS.get(char, char) for char in text).strip().rstrip(".").split("=")
    value, used = _Parser(left).read()
    for right in rights:
        if _Parser(right).read()[0] != value:
            raise ValueError("the equation does not hold")
    return value, used


class _Parser:
    """Recursive descent over + - * / and parentheses, in exact fractions."""

    def __init__(self, text: str) -> None:
        self.tokens = [match[1] or match[2] for match in _TOKEN.finditer(text.strip())]
        self.at = self.depth = 0
        self.used: collections.Counter[Fraction] = collections.Counter()

    def read(self) -> tuple[Fraction, collections.Counter[Fraction]]:
        value = self._sum()
        if self.at != len(self.tokens):
            raise ValueError(f"{self.tokens[self.at]!r} is not allowed there")
        return value, self.used

    def _next(self, *wanted: str) -> str:
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def _sum(self) -> Fraction:
        value = self._product()
        while sign := self._next("+", "-"):
            value = value + self._product() if sign == "+" else value - self._product()
        return value

    def _product(self) -> Fraction:
        value = self._atom()
        while sign := self._next("*", "/"):
            value = value * self._atom() if sign == "*" else value / self._atom()
        return value

    def _atom(self) -> Fraction:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ValueError("too many parentheses or signs")
        try:
            if sign := self._next("-", "+"):
                return -self._atom() if sign == "-" else self._atom()
            if self._next("("):
                value = self._sum()
                if not self._next(")"):
                    raise ValueError("a parenthesis is not closed")
                return value
        finally:
            self.depth -= 1
        if self.at == len(self.tokens):
            raise ValueError("the expression ends too early")
        token = self.tokens[self.at]
        if not (token[0].isascii() and token[0].isdigit()):
            raise ValueError(f"{token!r} is not allowed there")
        if len(token) > _MAX_DIGITS:
            raise OverflowError(f"a number of {len(token)} digits")
        self.at += 1
        value = Fraction(token)
        self.used[value] += 1
        return value


def _given(problem: Problem) -> tuple[collections.Counter[Fraction], Fraction]:
    name = problem.name
    numbers = problem.meta.get("numbers", problem.meta.get("nums"))
    target = problem.answer if problem.answer is not None else problem.meta.get("target")
    if numbers is None or target is None:
        raise GoldError(f"problem {name!r} needs meta['numbers'] and a target (its answer, or meta['target'])")
    return given(name, numbers, target)


def given(name: str, numbers: Any, target: Any) -> tuple[collections.Counter[Fraction], Fraction]:
    """Parses the numbers and the target of the problem `name`. Raises GoldError."""
    try:
        return collections.Counter(map(_number, numbers)), _number(target)
    except (ValueError, TypeError, ZeroDivisionError) as error:
        raise GoldError(f"problem {name!r}: numbers {numbers!r} or target {target!r} can't be read") from error


def _number(value: Any) -> Fraction:
    """Returns a number of a problem. Raises ValueError, also for 1e99999999, which would have as many digits."""
    text = str(value).strip()
    if not _PLAIN_NUMBER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no number")
    return Fraction(text)


def _listed(numbers: collections.Counter[Fraction]) -> str:
    return ", ".join(str(number) for number in sorted(numbers.elements())[:10])
