"""Detects answers that repeat the question's own expression without evaluating it."""

from __future__ import annotations

import re

from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.nodes import Node, symbols
from verifiers.mathexpr.normal import normal
from verifiers.mathexpr.options import options

_MAX_PROMPT, _MAX_EXPRESSION = 20_000, 200
_NUMBERS = lazy_pattern(r"\d+")
_SPELLINGS = (("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("\\left", ""), ("\\right", ""), ("\\times", "*"),
              ("\\cdot", "*"), ("×", "*"), ("·", "*"), ("−", "-"), ("\\,", " "), ("\\!", ""), ("{", ""), ("}", ""),
              ("$", " "))  # fmt: skip


def restates(prompt: str, gold: Answer, answer: Answer, text: str) -> bool:
    """Returns whether the answer is an expression of the prompt that must still be evaluated to give the gold."""
    if gold.kind != "scalar" or answer.kind != "scalar" or gold.node is None or answer.node is None:
        return False
    if len(text) > _MAX_EXPRESSION or _is_literal(answer.node) or not _has_work_left(gold.node, answer.node):
        return False
    if "mod" in text and _NUMBERS.findall(text) and set(_NUMBERS.findall(text)) <= set(_NUMBERS.findall(prompt)):
        return True  # the question's "a mod b" without its value
    wanted, asked = _plain(text), _plain(prompt[-_MAX_PROMPT:])
    letters = "".join(wanted.split())
    if not letters or letters not in "".join(asked.split()):
        return False
    match = re.search(r"(?<![\w.^\\+*/-])" + r"\s*".join(map(re.escape, letters)) + r"(?![\w^+*/!-]|\.\d)", asked)
    return match is not None and not options(prompt)


def _plain(text: str) -> str:
    for spelling, plain in _SPELLINGS:
        text = text.replace(spelling, plain)
    return text


def _is_literal(node: Node) -> bool:
    """Returns whether the node is a number or a name in its final form: 5, -2.5, 3/4 in lowest terms, 50%, x."""
    if node.op in ("num", "dec", "sym", "const", "base"):
        return True
    if node.op in ("neg", "percent", "deg"):
        return _is_literal(node.args[0])
    if node.op == "div" and all(arg.op == "num" for arg in node.args):
        value = rational(node)
        return value is not None and value.denominator == node.args[1].value
    return False


def _has_work_left(gold: Node, answer: Node) -> bool:
    """Returns whether the answer is an operation where the gold is a number, or another form of an expression."""
    if _is_literal(gold):
        return not symbols(answer)
    return normal(gold) != normal(answer)
