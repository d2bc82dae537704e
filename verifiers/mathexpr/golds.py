"""Reads golds: a number, LaTeX, words, or a worked solution that ends in its answer."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from verifiers.extract import find, squeezed
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.mathexpr.answers import Answer, type_name
from verifiers.mathexpr.calculus import evaluated
from verifiers.mathexpr.compare import Policy, compared
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.limits import Budget, TooHard, Unreadable, current
from verifiers.mathexpr.local import grouped_by_points
from verifiers.mathexpr.naming import nodes_of
from verifiers.mathexpr.nodes import Node, number
from verifiers.mathexpr.placeholders import no_answer
from verifiers.mathexpr.reading import read

INTEGER = lazy_pattern(
    r"\s*+\$?\s*+([+-]?)\s*+([1-9]\d{0,2}(?:,\d{3}){1,5}|\d{1,18})(?:\.0{1,6})?\s*+\$?\s*+\.?\s*+", re.ASCII
)
_TO = r"\s*+(?:\\text\{)?\s*+(?:to|à|zu|a|para|staat tot|tot|till|do|к|[比対对대])\s*+\}?\s*+"
RATIO_IN_WORDS = any_case(rf"\s*+(?:\\text\{{)?\s*+\d+(?:{_TO}\d+){{1,3}}\s*+\}}?\s*+")  # "8 to 3"
_BETWEEN_BOXES = lazy_pattern(
    r"(?:[\s$}{,;&]|\\(?!f?box))*+(?:text\s*+\{)?[\s,]*+(?:and|or)?(?:[\s$}{,;&]|\\(?!f?box))*+\\f?boxe?d?\s*+\{?"
)
_WORKED = 150  # characters; a longer gold may be a solution that ends in its answer
_FLOAT = lazy_pattern(r"[+-]?(?=[\d.]{17,19}$)\d+\.\d+")  # a printed float, such as 0.1 + 0.2 or 200 / 3


@dataclass(frozen=True, slots=True)
class Gold:
    answer: Answer
    type: str  # such as "integer"
    text: str  # the gold without the working before it
    integer: int | None = None
    evaluated: Mapping[Node, Node] = field(default_factory=dict)


@functools.lru_cache(maxsize=8192)
def read_gold(text: str) -> Gold | str:
    """Returns a gold, or why it can't be read. The result is cached, as the completions of a group share it."""
    text = text.rstrip("\\") if text.endswith("\\") else text  # remainder of an escaped quote that was cut off
    if "####" in text:
        text = text.rpartition("####")[2]
    text = grouped_by_points(text) if text.count(".") > 1 and len(text) < 60 else text
    if "boxed" in text or "fbox" in text or len(text) > _WORKED or "answer is" in text:
        text = _concluded(squeezed(text)[0])  # a long run of blanks would take quadratic time
    ratio = RATIO_IN_WORDS.fullmatch(text) if len(text) < 60 else None
    text = ":".join(re.findall(r"\d+", ratio[0])) if ratio else text
    plain = INTEGER.fullmatch(text) if len(text) < 60 and "$" not in text else None
    if plain is not None:
        value = int(plain[2].replace(",", "")) * (-1 if plain[1] == "-" else 1)
        if "." not in text or text.strip(" +-").endswith(".0"):  # 27.0 is an integer that was stored as a float
            return Gold(Answer("scalar", number(value)), "integer", text, value)
    try:
        with Budget():
            answer = _measured(_one_of(read(_as_stored(text.strip(" \n\r")))))
            why = no_answer(text, nodes_of(answer))
            if why is not None:
                return why
            kind = type_name(answer)
            values = evaluated(nodes_of(answer))
    except Unreadable as error:
        return str(error)
    except TooHard as error:
        return f"too hard: {error}"
    return Gold(answer, kind, text, evaluated=values)


def _one_of(answer: Answer) -> Answer:
    """Returns the first of the spellings of one value ("3/4 or 0.75"); any other gold unchanged."""
    if answer.kind != "list" or answer.joined_by != "or" or len(answer.items) > 4:
        return answer
    first, *others = answer.items
    policy = Policy(2, "value", "drop")
    try:
        same = all(first.kind == "scalar" and compared(first, item, policy, current()) == "equal" for item in others)
    except Unreadable:
        same = False
    return first if same else answer


def _measured(answer: Answer) -> Answer:
    """Returns one and a half for the gold "1,5 m", which would be a list without its unit; any other gold unchanged."""
    point = answer.comma
    if point is None or point.unit is None or not point.unit.dimension or point.node is None:
        return answer
    return point if (rational(point.node) or Fraction(1)).denominator != 1 else answer


def _concluded(text: str) -> str:
    """Returns the boxed or announced answer of a worked solution; any other text unchanged."""
    extraction = find(text)
    if extraction.span is None or extraction.source not in ("box", "anchor"):
        return text
    last = text[slice(*extraction.span)]
    if any(text[slice(*span)].strip() != last.strip() for span in extraction.others):
        return text
    gaps = (text[before[1] : after[0]] for before, after in itertools.pairwise(extraction.joint))
    if any(not _BETWEEN_BOXES.fullmatch(gap) for gap in gaps):
        return text  # words stand between the boxes, so the boxes alone are not the gold
    return ", ".join(text[slice(*span)] for span in extraction.joint or (extraction.span,))


def _as_stored(text: str) -> str:
    """Rounds a printed float of sixteen or more digits to the fifteen that are certain."""
    if not _FLOAT.fullmatch(text):
        return text
    whole, _, decimals = text.lstrip("+-").partition(".")
    kept = 15 - len((whole + decimals).lstrip("0")) + len(decimals)
    return f"{Decimal(text):.{kept}f}" if len((whole + decimals).lstrip("0")) > 15 and kept > 0 else text
