"""Detects answers that repeat the question's own expression without evaluating it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from verifiers.extract.numerals import language_of
from verifiers.extract.stated_sentence import values_of_question
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.mathexpr.answers import Answer
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.nodes import Node, symbols
from verifiers.mathexpr.normal import normal
from verifiers.mathexpr.options import options

_MAX_PROMPT, _MAX_ASKED, _MAX_EXPRESSION = 20_000, 2000, 200
_CONSTANTS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(100))  # of formulas
_NUMBERS = lazy_pattern(r"\d+")
_GROUPED = lazy_pattern(r"(?<=\d)(?:[.,\s]|\{,\}|\\,)(?=\d{3})")
_LETTER = r"[^\W\u3040-\u9fff\uac00-\ud7af]"  # of a script with spaces between words, or a digit
_NEAR = 40  # characters between a verb and the number to convert
_CONVERT = any_case(
    r"\b(?:convert|write|rewrite|express|change|turn|simplify|reduce|factori[sz]e|factor|decompose|wandle|schreib[et]?"
    r"|gib|rechne|zerlege|kürze|écri(?:s|re|vez)|converti[rsz]*|exprime[rz]?|simplifie[rz]?|décompose[rz]?"
    r"|convierte|escrib[ea]|expresa|simplifica|descompón|converta|escreva|expresse|simplifique|decomponha"
    r"|converti|scrivi|esprimi|semplifica|scomponi|schrijf|herleid|skriv|omvandla|zapisz|zamień)\b[^.?!]*$"
    r"|(?<!\w)(?:запиши\w*|представь\w*|переведи\w*|разложи\w*|преобразуй\w*|сократи\w*)[^.?!]*$|[把将將][^。？！]*$"
)
_CONVERT_BEHIND = lazy_pattern(
    r"\s*(?:を[^。？]*(?:表し|直し|なおし|書き|変換|素因数分解|約分)|(?:化成|化为|写成|改写|换算|表示为|分解)"
    r"|[을를][^.?]*(?:나타내|바꾸|변환|소인수분해|쓰))"
)
_FRACTION = lazy_pattern(r"\\[dt]?frac\s*\{?(\d+)\}?\s*\{?(\d+)\}?")
_SPELLINGS = (("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("\\left", ""), ("\\right", ""), ("\\times", "*"),
              ("\\cdot", "*"), ("×", "*"), ("·", "*"), ("−", "-"), ("\\,", " "), ("\\!", ""), ("{", ""), ("}", ""),
              ("$", " "), ("\\text", ""), ("\\mathrm", ""), ("\\%", "%"))  # fmt: skip


def restates(prompt: str, gold: Answer, answer: Answer, text: str, gold_text: str) -> bool:
    """Returns whether the answer is an expression of the prompt that is still to be evaluated or converted."""
    if gold.kind != "scalar" or answer.kind != "scalar" or gold.node is None or answer.node is None:
        return False
    if len(text) > _MAX_EXPRESSION:
        return False
    if _is_literal(answer.node):
        return _numbers(text) != _numbers(gold_text) and _is_to_be_converted(prompt, gold, answer, text)
    if not _has_work_left(gold.node, answer.node):
        return False
    if "mod" in text and _NUMBERS.findall(text) and set(_NUMBERS.findall(text)) <= set(_NUMBERS.findall(prompt)):
        return True  # the question's "a mod b" without its value
    if options(prompt):
        return False
    return _calculates_with(prompt, gold.node, answer.node) or _occurs(text, prompt) is not None


def _occurs(text: str, prompt: str) -> re.Match[str] | None:
    """Returns the match of the answer in the plain text of the prompt, whatever the blanks in it, or None."""
    wanted, asked = _plain(text), _plain(prompt[-_MAX_PROMPT:])
    letters = "".join(wanted.split())
    if not letters or letters not in "".join(asked.split()):
        return None
    found = r"\s*".join(map(re.escape, letters))
    return re.search(rf"(?<![.^\\+*/-])(?<!{_LETTER}){found}(?!{_LETTER}|[\^+*/!-]|\.\d)", asked)


def _is_to_be_converted(prompt: str, gold: Answer, answer: Answer, text: str) -> bool:
    """Returns whether the answer is a number that the question asks to convert: 1.5 km to metres, 60 to primes."""
    found = _occurs(text, prompt)
    if found is None or options(prompt):
        return False
    before, after = found.string[: found.start()], found.string[found.end() :]
    other_unit = answer.unit is not None and (gold.unit is None or gold.unit.scale != answer.unit.scale)
    return other_unit or bool(_CONVERT.search(before[-_NEAR:]) or _CONVERT_BEHIND.match(after[:_NEAR]))


def _numbers(text: str) -> list[str]:
    return [number.lstrip("0") for number in _NUMBERS.findall(_GROUPED.sub("", text))]


def _calculates_with(prompt: str, gold: Node, answer: Node) -> bool:
    """Returns whether the answer is a calculation with numbers of the question whose result is not given."""
    value = rational(gold)
    if gold.op not in ("num", "dec", "neg") or value is None or (answer.op == "div" and value.denominator != 1):
        return False
    numbers = list(_operands(answer))
    if len(numbers) < 2 or None in numbers:
        return False
    asked = values_of_question(prompt[-_MAX_ASKED:], language_of(prompt[-_MAX_ASKED:]))
    given = {quantity.value for quantity in asked if quantity.value is not None}
    given |= {value / 100 for value in given}
    return not given.isdisjoint(numbers) and given.union(_CONSTANTS).issuperset(numbers)


def _operands(node: Node) -> Iterator[Fraction | None]:
    """Yields the numbers that a sum or product is calculated from, and None for any other operation."""
    if node.op in ("add", "mul", "div") and not _is_literal(node):
        for arg in node.args:
            yield from _operands(arg)
    elif node.op == "neg":
        yield from _operands(node.args[0])
    else:
        yield abs(value) if _is_literal(node) and (value := rational(node)) is not None else None


def _plain(text: str) -> str:
    text = _FRACTION.sub(r"\1/\2", text)
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
