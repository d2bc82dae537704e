"""The `math` verifier: does the completion's final answer say the same as the gold?"""

from __future__ import annotations

import contextlib
import functools
import re
from dataclasses import dataclass, field

from verifiers.core import Completion, GoldError, Problem, Verdict, VerifierError
from verifiers.extract import Found, Span, find
from verifiers.mathexpr.answers import Answer, type_name
from verifiers.mathexpr.calculus import done, unevaluated
from verifiers.mathexpr.clean import clean
from verifiers.mathexpr.compare import Policy, compared
from verifiers.mathexpr.forms import text_words
from verifiers.mathexpr.limits import MAX_ANSWER_CHARS, Budget, TooHard, Unreadable
from verifiers.mathexpr.nodes import number
from verifiers.mathexpr.options import option_of
from verifiers.mathexpr.reading import read

REASONS = {
    "equal": "the same answer",
    "different": "an answer of the gold's type with another value",
    "imprecise": "right as far as it goes, but with too few digits for an exact gold",
    "type_clash": "an answer of another type (a set for a number, a point for an interval)",
    "unit_clash": "a unit or noun that contradicts the gold's",
    "unsolved": "an inequality or set whose variable does not stand alone",
    "hedged": "several answers where the gold is one",
    "no_answer": "no final answer: none given, unclosed reasoning, several answer blocks, negated or asked",
    "unparseable": "a final answer that can't be read",
    "too_long": "a final answer or completion beyond the caps",
    "too_hard": "deciding would cost more than the budget allows",
}  # the closed set of reasons
MAX_CHARS = 1_000_000
_CHOICES = {"percent": ("either", "value"), "units": ("drop", "require"), "multiple_choice": ("auto", "letter")}
_INTEGER = re.compile(r"\s*\$?\s*([+-]?)\s*(\d{1,3}(?:,\d{3}){1,5}|\d{1,18})(?:\.0{1,6})?\s*\$?\s*\.?\s*", re.ASCII)
_GOLD_BOX = re.compile(r"\s*\$*\\(?:boxed|fbox)\s*\{(.*)\}\$*\s*\.?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Gold:
    """A gold that was understood, or why it was not."""

    answer: Answer | None
    type: str = ""
    integer: int | None = None
    error: str = ""
    text: str = ""


@dataclass(slots=True)
class Explanation:
    """Every step of one decision, for `python -m verifiers math --explain`."""

    steps: list[tuple[str, str]] = field(default_factory=list)


class MathVerifier:
    """1 if the completion's final answer is the same as `Problem.answer`, else 0.

    The gold is a number, plain text, LaTeX, or a worked solution that ends in `#### N`. Its type decides what counts
    as the same: sets and intervals are compared as sets, tuples in order, equations up to scale, quantities by
    dimension and size, decimals at the gold's last place, exact golds exactly. Work is bounded by caps and a budget
    of steps, so any completion of up to 1 MB takes at most about 50 ms, in any thread. Reasons: see REASONS.

    Args:
        strict: only what stands in the one `<answer>` block counts, and no decimal stands for an exact gold.
        precision: significant digits with which a correctly rounded decimal may stand for an exact gold that is no
            integer; 0 = never. Default 6, or 0 if strict.
        percent: "either": 50% is 0.5, and 50 where the gold or the question is about percent; "value": 0.5 only.
        units: "drop": a unit may be missing on one side; "require": it must be there on both.
        multiple_choice: "auto": the text of an option of the prompt may stand for its letter; "letter": it may not.

    Raises (when called): GoldError if the gold can't be understood.
    """

    version = "2"

    def __init__(
        self,
        *,
        strict: bool = False,
        precision: int | None = None,
        percent: str = "either",
        units: str = "drop",
        multiple_choice: str = "auto",
    ) -> None:
        given = {"percent": percent, "units": units, "multiple_choice": multiple_choice}
        for name, value in given.items():
            if value not in _CHOICES[name]:
                raise ValueError(f"{name} must be one of {', '.join(_CHOICES[name])}; got {value!r}")
        if precision is not None and precision < 0:
            raise ValueError(f"precision must be 0 or more significant digits; got {precision}")
        self.strict = strict
        self.precision = precision if precision is not None else 0 if strict else 6
        self.percent = percent
        self.units = units
        self.multiple_choice = multiple_choice

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        return self.judge(problem, completion, None)

    def judge(self, problem: Problem, completion: Completion, explanation: Explanation | None) -> Verdict:
        """The verdict; with an explanation, every step is noted in it."""
        gold = self.gold(problem)
        text = completion.text
        if len(text) > MAX_CHARS:
            return Verdict(0.0, "too_long", f"completion of {len(text)} characters", gold_type=gold.type)
        found = find(text, strict=self.strict)
        if explanation is not None:
            where = "" if found.span is None else f" at {found.span}: {text[slice(*found.span)][:200]!r}"
            explanation.steps.append(("extract", found.source + where))
        if found.span is None:
            return Verdict(0.0, "no_answer", found.source, gold_type=gold.type)
        if gold.integer is not None and not found.others and not found.joint and explanation is None:
            match = _INTEGER.fullmatch(text, *found.span)
            if match is not None:
                value = int(match[2].replace(",", ""))
                same = (-value if match[1] == "-" else value) == gold.integer
                reason = "equal" if same else "different"
                answer = text[found.span[0] : found.span[1]].strip()
                return Verdict(float(same), reason, "", answer, found.span, gold.type, "rational")
        try:
            return self._decide(problem, gold, text, found, explanation)
        except TooHard as error:
            reason, detail = "too_hard", str(error)
        except RecursionError:  # the caller's own stack was nearly full
            reason, detail = "too_hard", "no room on the stack"
        answer = text[found.span[0] : found.span[1]].strip()[:MAX_ANSWER_CHARS]
        return Verdict(0.0, reason, detail, answer, found.span, gold.type)

    def gold(self, problem: Problem) -> _Gold:
        """The problem's gold, read. Raises GoldError."""
        name = f"problem {problem.id or problem.prompt[:60]!r}"
        if problem.answer is None:
            raise GoldError(f"{name} has no answer to compare with")
        try:
            gold = read_gold(str(problem.answer))
        except RecursionError as error:  # the caller's own stack was nearly full: nothing is wrong with the gold
            raise VerifierError(f"{name}: no room on the stack to read its gold") from error
        if gold.answer is None:
            raise GoldError(f"{name}: can't understand the gold {str(problem.answer)[:200]!r}: {gold.error}")
        return gold

    def check_gold(self, problem: Problem) -> str:
        """The type of the problem's gold, after it was read and found equal to itself.

        Raises: GoldError that names the problem and says why the gold can't be used.
        """
        gold = self.gold(problem)
        found = self(problem, Completion(f"<answer>{gold.text}</answer>"))
        if found.score != 1.0:
            name = f"problem {problem.id or problem.prompt[:60]!r}"
            told = f"{found.reason} {found.detail}".strip()
            raise GoldError(f"{name}: the gold {str(problem.answer)[:200]!r} is not equal to itself: {told}")
        return gold.type

    def _policy(self, problem: Problem) -> Policy:
        prompt = problem.prompt
        asks = not prompt or "percent" in prompt.lower() or "%" in prompt
        return Policy(self.precision, self.percent, self.units, asks)

    def _decide(
        self, problem: Problem, gold: _Gold, text: str, found: Found, explanation: Explanation | None
    ) -> Verdict:
        assert gold.answer is not None
        assert found.span is not None
        budget = Budget()
        budget.trace = [] if explanation is not None else None
        policy = self._policy(problem)
        answer = text[found.span[0] : found.span[1]].strip(" \n\r")  # a tab may be what is left of "\\text"
        if len(answer) > MAX_ANSWER_CHARS:
            return Verdict(0.0, "too_long", f"answer of {len(answer)} characters", None, found.span, gold.type)
        reason, detail = "", ""
        span = found.span
        if found.joint:
            joined = " , ".join(text[slice(*part)] for part in found.joint)
            alternatives = bool(found.others)
            if alternatives or gold.answer.kind not in ("list", "set", "tuple"):
                values = {text[slice(*part)].strip() for part in found.joint}
                if len(values) > 1 and (alternatives or not self._agree(gold, text, found.joint, policy, budget)):
                    return Verdict(0.0, "hedged", "several boxes", answer, span, gold.type)
            else:
                span = (found.joint[0][0], found.joint[-1][1])
                if not (
                    joined.count(",") == len(found.joint) - 1
                    and self._reason(gold, answer, problem, policy, budget, None)[0] == "equal"
                ):
                    answer = joined
        elif found.others and not self._agree(gold, text, (*found.others, span), policy, budget):
            return Verdict(0.0, "hedged", "several final answers", answer, span, gold.type)
        reason, detail = self._reason(gold, answer, problem, policy, budget, explanation)
        if reason in ("unparseable", "type_clash") and found.source in ("answer", "anchor", "hashes", "box"):
            inner = _embedded(text, found, gold)
            if inner is not None and inner != found.span:
                retried, note = self._reason(gold, text[slice(*inner)], problem, policy, budget, explanation)
                if retried not in ("unparseable", "type_clash"):
                    reason, detail, answer, span = retried, note, text[slice(*inner)].strip(), inner
        if found.source == "whole" and reason in ("type_clash", "unparseable") and not _MATHS_SIGN.search(answer):
            return Verdict(0.0, "no_answer", "words only", gold_type=gold.type)
        if explanation is not None and budget.trace is not None:
            explanation.steps.extend(budget.trace)
        return Verdict(float(reason == "equal"), reason, detail, answer, span, gold.type, budget.rung)

    def _agree(self, gold: _Gold, text: str, spans: tuple[Span, ...], policy: Policy, budget: Budget) -> bool:
        """Do all the final answers say the same?"""
        try:
            answers = [read(text[slice(*span)]) for span in spans]
        except Unreadable:
            return False
        return all(compared(answers[-1], other, policy, budget) == "equal" for other in answers[:-1])

    def _reason(
        self,
        gold: _Gold,
        text: str,
        problem: Problem,
        policy: Policy,
        budget: Budget,
        explanation: Explanation | None,
    ) -> tuple[str, str]:
        """(reason, detail) for one text taken as the final answer."""
        assert gold.answer is not None
        try:
            answer = read(text)
        except Unreadable as error:
            if gold.answer.kind == "text" and same_words(gold.answer, text):
                return "equal", ""
            if explanation is not None:
                explanation.steps.append(("read", f"unparseable: {error}"))
            return "unparseable", str(error)
        if explanation is not None:
            explanation.steps.append(("read", f"{type_name(answer)}: {text[:200]!r}"))
        if gold.answer.kind == "text" or answer.kind == "text":
            budget.rung = "text"
            if same_words(gold.answer, text, gold.text):
                return "equal", ""
        try:
            reason = compared(gold.answer, answer, policy, budget)
            if reason != "equal" and self.multiple_choice == "auto" and problem.prompt:
                other = option_of(problem.prompt, gold.answer, answer)
                if other is not None and compared(other[0], other[1], policy, budget) == "equal":
                    budget.rung = "option"
                    return "equal", "by the option's text"
        except Unreadable as error:
            return "type_clash", str(error)
        return reason, ""


def same_words(gold: Answer, text: str, gold_text: str = "") -> bool:
    """The same words, or the one name or adjective that a sentence says of its subject."""
    words = text_words(clean(text))
    wanted = gold.words if gold.kind == "text" else text_words(clean(gold_text)) if gold_text else ()
    if not wanted or not words:
        return False
    if words == wanted:
        return True
    if gold.kind != "text" or len(words) != 1 or len(words[0]) < 3 or not words[0].isalpha():
        return False
    if {"not", "no", "neither", "nor", "never", "or", "and"} & set(wanted):
        return False
    if len(wanted) > 2 and wanted[0] == words[0] and wanted[1] in ("will", "wins", "can", "is", "has", "won", "was"):
        return True  # "Petya" for "Petya will win"
    return len(wanted) > 2 and wanted[-1] == words[0] and wanted[-2] in ("is", "are", "be", "was")


def _embedded(text: str, found: Found, gold: _Gold) -> Span | None:
    """The answer inside a sentence that was given as the answer: its announced part, or its only number."""
    if gold.answer is None or gold.answer.kind in ("text", "choice", "truth") or found.span is None:
        return None
    part = text[slice(*found.span)]
    inner = find(part)
    if inner.span is None or inner.others or inner.joint:
        return None
    if inner.source == "number" and len(_ANY_NUMBER.findall(part)) != 1:
        return None
    if inner.source not in ("anchor", "maths", "number") or _TURNING.search(part):
        return None
    return found.span[0] + inner.span[0], found.span[0] + inner.span[1]


_MATHS_SIGN = re.compile(r"[\d\\^=<>$]")
_ANY_NUMBER = re.compile(r"\d+")
_TURNING = re.compile(
    r"\b(?:not|no|never|without|less|more|greater|larger|bigger|smaller|higher|lower|exceed\w*|within|fewer|least|most|over|under|below|above|minus|negative|half|twice"
    r"|either|or|except|but|cannot|wrong|incorrect|between|and)\b|[?^_=<>]|\\(?!text|\(|\)|\[|\])",
    re.IGNORECASE,
)


def _one_of(answer: Answer) -> Answer:
    """A gold that offers spellings of one value ("3/4 or 0.75") is that value."""
    if answer.kind != "list" or answer.joined_by != "or" or len(answer.items) > 4:
        return answer
    first, *others = answer.items
    policy = Policy(2, "value", "drop")
    try:
        same = all(first.kind == "scalar" and compared(first, item, policy, Budget()) == "equal" for item in others)
    except TooHard:
        same = False
    return first if same else answer


@functools.lru_cache(maxsize=8192)
def read_gold(text: str) -> _Gold:
    """The gold, read once; a group of completions shares it."""
    if "####" in text:
        text = text.rpartition("####")[2]
    boxed = _GOLD_BOX.fullmatch(text[: MAX_ANSWER_CHARS + 50])
    if boxed:
        text = boxed[1]
    plain = _INTEGER.fullmatch(text) if len(text) < 60 and "$" not in text else None
    if plain is not None:
        value = int(plain[2].replace(",", "")) * (-1 if plain[1] == "-" else 1)
        if "." not in text:
            return _Gold(Answer("scalar", number(value)), "integer", value, text=text)
    try:
        answer = read(text)
    except Unreadable as error:
        return _Gold(None, error=str(error))
    except TooHard as error:
        return _Gold(None, error=f"too hard: {error}")
    answer = _one_of(answer)
    if answer.node is not None and unevaluated(answer.node):
        with contextlib.suppress(TooHard):
            done(answer.node)  # once for every gold, so that no completion waits for it
    return _Gold(answer, type_name(answer), text=text)
