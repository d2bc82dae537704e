"""The `math` verifier: compares the completion's final answer with the gold."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from verifiers.core import Completion, GoldError, Problem, Verdict, VerifierError
from verifiers.extract import (
    Extraction,
    Span,
    after_thinking,
    find,
    hedge,
    original,
    repeats_prompt,
    restated,
    sole_value,
    squeezed,
    turned,
)
from verifiers.extract.claims import claimed
from verifiers.extract.enumerations import enumerated
from verifiers.extract.last_sentences import closing
from verifiers.extract.neutral import neutral, without_struck
from verifiers.extract.numerals import language_of
from verifiers.extract.operands import total_of
from verifiers.extract.overruling import final_claims, is_claim
from verifiers.extract.quantities import in_digits
from verifiers.extract.remarks import without_remarks
from verifiers.extract.statements import stated
from verifiers.extract.truths import said_truth
from verifiers.extract.understood import not_understood
from verifiers.extract.wordings import NO_SOLUTION_SAID, says_no_solution
from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.answers import Answer, type_name
from verifiers.mathexpr.calculus import evaluated
from verifiers.mathexpr.clean import clean, trim
from verifiers.mathexpr.compare import Policy, compared
from verifiers.mathexpr.echo import restates
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.forms import plain_words, said_first, text_words, whole_form
from verifiers.mathexpr.guard import same_but_for_values, variants
from verifiers.mathexpr.halves import quantity_with_half
from verifiers.mathexpr.limits import GUARD_BUDGET, MAX_ANSWER_CHARS, Budget, TooHard, Unreadable, current
from verifiers.mathexpr.local import grouped_by_points
from verifiers.mathexpr.naming import nodes_of
from verifiers.mathexpr.nodes import Node, number
from verifiers.mathexpr.options import option_of, other_option
from verifiers.mathexpr.reading import read
from verifiers.mathexpr.weekdays import weekday, without_copula
from verifiers.units.words import respelled, without_units

REASONS = {
    "equal": "the same answer",
    "different": "an answer of the gold's type with another value",
    "imprecise": "correct as far as it goes, but with too few digits for an exact gold",
    "type_clash": "an answer of another type (a set for a number, a point for an interval)",
    "unit_clash": "a unit or noun that contradicts the gold's",
    "unsolved": "an inequality that is not solved for its variable, or the question's own expression",
    "hedged": "several answers where the gold is one, or words beside the answer that may change it",
    "no_answer": "no final answer: none given, unclosed reasoning, several answer blocks, a negation or a question",
    "unparseable": "a final answer that can't be read",
    "too_long": "a final answer or completion above the length limits",
    "too_hard": "the comparison would exceed the budget of work",
}  # the closed set of reasons
MAX_CHARS = 1_000_000
_CHOICES = {"percent": ("either", "value"), "units": ("drop", "require"), "multiple_choice": ("auto", "letter")}
_INTEGER = lazy_pattern(
    r"\s*\$?\s*([+-]?)\s*([1-9]\d{0,2}(?:,\d{3}){1,5}|\d{1,18})(?:\.0{1,6})?\s*\$?\s*\.?\s*", re.ASCII
)
_BETWEEN_BOXES = lazy_pattern(r"[\s$}{,;&\\]*(?:text\s*\{)?[\s,]*(?:and|or)?[\s$}{,;&\\]*\\f?boxe?d?\s*\{?")
_LONGEST_WORDED = 200  # characters; a longer text that begins with "Yes" is not taken as an answer
_WORDED = 400  # characters at the end of a text in which numbers in words are turned into digits
_WORKED = 150  # characters; a longer gold may be a solution that ends in its answer
_FLOAT = lazy_pattern(r"[+-]?(?=[\d.]{17,19}$)\d+\.\d+")  # a printed float, such as 0.1 + 0.2 or 200 / 3


@dataclass(frozen=True, slots=True)
class _Gold:
    """A gold that was read, or the error that says why it can't be."""

    answer: Answer | None
    type: str = ""
    integer: int | None = None
    error: str = ""
    text: str = ""
    evaluated: Mapping[Node, Node] = field(default_factory=dict)


@dataclass(slots=True)
class Explanation:
    """The steps of one decision, for `python -m verifiers math --explain`."""

    steps: list[tuple[str, str]] = field(default_factory=list)


class MathVerifier:
    """1 if the completion's final answer is the same as `Problem.answer`, else 0.

    The gold is a number, plain text, LaTeX, or a worked solution that ends in `#### N` or boxes its answer. Its type
    decides what counts as the same: sets and intervals are compared as sets, tuples in order, equations up to scale,
    quantities by dimension and size, decimals at the gold's last place, exact golds exactly. Caps and a budget of
    work bound the cost, so a completion of up to 1 MB takes at most about 130 ms on a slow core, in any thread.
    Reasons: see REASONS.

    Args:
        strict: only a single `<answer>` block counts, and no decimal is accepted for an exact gold.
        precision: significant digits at which a correctly rounded decimal is accepted for an exact gold that is no
            integer; 0 = never. Default 6, or 0 if strict.
        percent: "either": 50% is 0.5, and 50 where the gold or the question is about percent; "value": 0.5 only.
        units: "drop": a unit may be missing on one side; "require": it must be on both.
        multiple_choice: "auto": the text of an option of the prompt is accepted for its letter; "letter": it is not.

    Raises:
        ValueError: an option has an unsupported value.
        GoldError: (when called) the problem has no gold, or one that can't be understood.
    """

    version = "13"

    def __init__(
        self,
        *,
        strict: bool = False,
        precision: int | None = None,
        percent: str = "either",
        units: str = "drop",
        multiple_choice: str = "auto",
    ) -> None:
        choices = {"percent": percent, "units": units, "multiple_choice": multiple_choice}
        for name, value in choices.items():
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
        """Returns the verdict and appends every step to `explanation`, if there is one. Raises GoldError."""
        problem, completion = _with_capital_labels(problem, completion)
        gold = self.gold(problem)
        if len(completion.text) > MAX_CHARS:
            return Verdict(0.0, "too_long", f"completion of {len(completion.text)} characters", gold_type=gold.type)
        text, cuts = squeezed(without_struck(completion.text))
        verdict = self._judge(problem, gold, text, explanation)
        if verdict.reason in ("no_answer", "hedged") and not self.strict:
            plain = without_remarks(text)
            other = self._overruling(problem, gold, plain, verdict, explanation)
            verdict = other or self._counting(problem, gold, plain, explanation) or verdict
        if verdict.reason in ("no_answer", "hedged") and not self.strict:
            low = max(0, len(text) - _WORDED)
            language = language_of(f"{problem.prompt[-_WORDED:]} {text[low:]}")
            plain = in_digits(neutral(text), low, len(text), language)
            other = self._judge(problem, gold, plain, explanation) if plain != text else verdict
            verdict = other if other.score == 1.0 or verdict.detail == "nothing" else verdict
        return replace(verdict, span=original(verdict.span, cuts)) if cuts and verdict.span is not None else verdict

    def _judge(self, problem: Problem, gold: _Gold, text: str, explanation: Explanation | None) -> Verdict:
        text = without_remarks(text)
        extraction = self._found(problem.prompt, gold, text)
        if explanation is not None:
            where = "" if extraction.span is None else f" at {extraction.span}: {text[slice(*extraction.span)][:200]!r}"
            explanation.steps.append(("extract", extraction.source + where))
        if extraction.span is None:
            return Verdict(0.0, "no_answer", extraction.source, gold_type=gold.type)
        if problem.prompt and extraction.source != "answer" and repeats_prompt(problem.prompt, text, extraction):
            return Verdict(0.0, "no_answer", "the prompt repeated", gold_type=gold.type)
        single = not (extraction.others or extraction.joint or extraction.said)
        if gold.integer is not None and single and explanation is None:
            match = _INTEGER.fullmatch(text, *extraction.span)
            if match is not None:
                value = int(match[2].replace(",", ""))
                same = (-value if match[1] == "-" else value) == gold.integer
                reason = "equal" if same else "different"
                answer = text[extraction.span[0] : extraction.span[1]].strip()
                verdict = Verdict(float(same), reason, "", answer, extraction.span, gold.type, "rational")
                return self._unless_doubted(verdict, problem, gold, text, extraction)
        try:
            with Budget(evaluated=gold.evaluated) as budget:
                verdict = self._decide(problem, gold, text, extraction, budget, explanation)
                return self._unless_doubted(verdict, problem, gold, text, extraction)
        except TooHard as error:
            reason, detail = "too_hard", str(error)
        except RecursionError:  # the caller's own stack was nearly full
            reason, detail = "too_hard", "no room on the stack"
        answer = text[extraction.span[0] : extraction.span[1]].strip()[:MAX_ANSWER_CHARS]
        return Verdict(0.0, reason, detail, answer, extraction.span, gold.type)

    def _found(self, prompt: str, gold: _Gold, text: str) -> Extraction:
        """Finds the answer; one in words is looked for where the gold is in words and at most a value was found."""
        extraction = find(text, strict=self.strict, prompt=prompt)
        if self.strict or gold.answer is None:
            return extraction
        kind = gold.answer.kind
        if extraction.span is None or (kind == "truth" and not _may_say_truth(text, extraction)):
            extraction = _worded(text, prompt, gold.answer) or extraction
        if kind == "text" and _may_be_working(text, extraction):
            extraction = _claimed(text, prompt, gold.text) or extraction
        return extraction

    def _overruling(
        self, problem: Problem, gold: _Gold, text: str, refused: Verdict, explanation: Explanation | None
    ) -> Verdict | None:
        """Returns the verdict on a final claim that is right by itself although the whole text is refused, or None."""
        start = after_thinking(text)
        if start is None:
            return None
        for position in final_claims(text, start, problem.prompt, refused.detail):
            alone = " " * position + text[position:]
            if is_claim(text, start, position, find(alone, prompt=problem.prompt), problem.prompt):
                verdict = self._judge(problem, gold, alone, explanation)
                if verdict.score == 1.0:
                    return verdict
        return None

    def _counting(self, problem: Problem, gold: _Gold, text: str, explanation: Explanation | None) -> Verdict | None:
        """Returns the verdict on a count, or on the list that follows it if the gold is none, or None without these."""
        counted = enumerated(text, after_thinking(text) or 0, problem.prompt)
        if counted is None:
            return None
        verdict = self._judge(problem, gold, counted[0 if gold.integer is not None else 1], explanation)
        return None if verdict.span is None else verdict

    def _unless_doubted(
        self, verdict: Verdict, problem: Problem, gold: _Gold, text: str, extraction: Extraction
    ) -> Verdict:
        """Returns the verdict, or "hedged" if it would pay an answer beside a word that is not understood."""
        if verdict.score != 1.0 or verdict.span is None or self.strict or extraction.source in ("statement", "truth"):
            return verdict
        assert gold.answer is not None
        checked = functools.partial(
            not_understood,
            span=verdict.span,
            prompt=problem.prompt,
            gold=gold.text,
            states_itself=extraction.source in ("box", "answer", "hashes") and verdict.span == extraction.span,
            in_words=gold.answer.kind in _IN_WORDS,
        )
        if gold.answer.kind == "empty":
            text = NO_SOLUTION_SAID.sub(lambda match: " " * len(match[0]), text)
        word = checked(text)
        if word:
            without = without_units(text, verdict.span[0], verdict.span[1])
            word = checked(without) if without != text else word
        if not word or self._states_it(verdict, problem, text, extraction):
            return verdict
        return replace(verdict, score=0.0, reason="hedged", detail=f"{word!r} beside the answer is not understood")

    def _states_it(self, verdict: Verdict, problem: Problem, text: str, extraction: Extraction) -> bool:
        """Returns whether the last sentence states the answer. Every word of that sentence was then understood."""
        if extraction.source != "anchor" or extraction.others:
            return False
        statement, span = stated(text, after_thinking(text) or 0, len(text), problem.prompt), verdict.span
        if statement is None or statement.span is None or span is None:
            return False
        return span[0] <= statement.span[0] and statement.span[1] <= span[1]

    def gold(self, problem: Problem) -> _Gold:
        """Reads the problem's gold. Raises GoldError if it is missing or can't be understood."""
        name = f"problem {problem.name!r}"
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
        """Checks that the gold can be read, equals itself, and differs from itself with a number changed.

        Returns:
            The type of the gold, such as "integer".

        Raises:
            GoldError: the gold can't be used; the message names the problem and says why.
        """
        gold = self.gold(problem)
        verdict = self(problem, Completion(f"<answer>{gold.text}</answer>"))
        name = f"problem {problem.name!r}: the gold {str(problem.answer)[:200]!r}"
        if verdict.score != 1.0:
            raise GoldError(f"{name} is not equal to itself: {f'{verdict.reason} {verdict.detail}'.strip()}")
        ignored = None if gold.integer is not None else self._ignored_number(problem, gold)
        if ignored is not None:
            raise GoldError(
                f"{name} would also be equal with another number in place of its '{ignored}': part of it is not"
                " understood; write it as plain maths"
            )
        return gold.type

    def _ignored_number(self, problem: Problem, gold: _Gold) -> str | None:
        """Returns a number of the gold that can change without changing the verdict, or None."""
        assert gold.answer is not None
        policy = self._policy(problem)
        with Budget(GUARD_BUDGET) as budget:
            for digits, texts in variants(gold.text):
                for text in texts:
                    try:
                        reason, _ = self._reason(gold, text, problem, policy, budget, None)
                        if reason != "equal" or same_but_for_values(gold.answer, read(text)):
                            break
                    except Unreadable:  # equal as words, but not readable as maths
                        break
                    except TooHard:
                        if budget.left < 0:  # the other numbers of a very long gold are not tried
                            return None
                        break
                else:
                    return digits
        return None

    def _policy(self, problem: Problem) -> Policy:
        return Policy(self.precision, self.percent, self.units, problem.prompt, str(problem.answer))

    def _decide(
        self,
        problem: Problem,
        gold: _Gold,
        text: str,
        extraction: Extraction,
        budget: Budget,
        explanation: Explanation | None,
    ) -> Verdict:
        assert gold.answer is not None
        assert extraction.span is not None
        budget.trace = [] if explanation is not None else None
        policy = self._policy(problem)
        # Tabs are kept: one may be the remainder of a damaged "\\text".
        answer = extraction.said or text[slice(*extraction.span)].strip(" \n\r")
        if len(answer) > MAX_ANSWER_CHARS:
            return Verdict(0.0, "too_long", f"answer of {len(answer)} characters", None, extraction.span, gold.type)
        reason, detail = "", ""
        span = extraction.span
        if extraction.joint:
            joined = " , ".join(text[slice(*part)] for part in extraction.joint)
            alternatives = bool(extraction.others)
            if alternatives or gold.answer.kind not in ("list", "set", "tuple"):
                values = {text[slice(*part)].strip() for part in extraction.joint}
                if len(values) > 1 and (alternatives or not self._agree(text, extraction.joint, policy, budget)):
                    return Verdict(0.0, "hedged", "several boxes", answer, span, gold.type)
            else:
                span = (extraction.joint[0][0], extraction.joint[-1][1])
                if not (
                    joined.count(",") == len(extraction.joint) - 1
                    and self._reason(gold, answer, problem, policy, budget, None)[0] == "equal"
                ):
                    answer = joined
        elif extraction.others and not self._agree(text, (*extraction.others, span), policy, budget):
            return Verdict(0.0, "hedged", "several final answers", answer, span, gold.type)
        point = _NAMED_POINT.fullmatch(answer) if gold.answer.kind in ("tuple", "list") else None
        answer = f"({point[1]}, {point[2]})" if point else answer
        answer = _total(answer) or answer
        ratio = _RATIO_IN_WORDS.fullmatch(answer) if _RATIO.fullmatch(gold.text) else None
        answer = f"{ratio[1]}:{ratio[2]}" if ratio else answer
        contrast = _ONE_NOT_THE_OTHER.fullmatch(answer) if gold.answer.kind == "choice" else None
        answer = contrast[1] if contrast and contrast[1] != contrast[2] else answer
        if gold.answer.kind == "truth":
            answer = said_first(answer) or answer
        doubt = hedge(answer)
        if (
            doubt
            and not hedge(gold.text)
            and not says_no_solution(answer)
            and (extraction.source != "whole" or _CHOSEN_OR_MATHS.search(answer))
        ):
            return Verdict(0.0, "hedged", f"{doubt!r} in the answer", answer[:200], span, gold.type)
        if _ORDINAL.search(answer) and gold.answer.kind != "date" and not _ORDINAL.search(gold.text):
            return Verdict(0.0, "type_clash", "an ordinal number", answer, span, gold.type)
        if (
            turned(answer) and not turned(gold.text) and turned(respelled(answer))
            and not quantity_with_half(plain_words(clean(answer)))
        ):  # fmt: skip
            return Verdict(0.0, "type_clash", "words that negate or change the value", answer, span, gold.type)
        if _refers_to_itself(answer) and "=" not in gold.text:
            return Verdict(
                0.0, "type_clash", "an equation that defines a name in terms of itself", answer, span, gold.type
            )
        parts = restated(answer, one=gold.answer.kind == "scalar")
        if parts:
            if _names_unit(parts):
                answer = " ".join(parts)
            elif _same_values(parts, policy, budget):
                answer = parts[0]
            else:
                return Verdict(0.0, "hedged", "a restatement with another value", answer, span, gold.type)
        context = f"{problem.prompt[-600:]} {text[-600:]}"
        grouped = grouped_by_points(str(problem.answer)) != str(problem.answer)
        gold = _grouped_gold(gold, problem.prompt) if gold.type == "decimal" and problem.prompt else gold
        answer = _without_points(gold, answer, context, grouped=grouped)
        gold, answer = _with_decimal_comma(gold, answer, context)
        reason, detail = self._reason(gold, answer, problem, policy, budget, explanation)
        if reason in ("unparseable", "type_clash") and extraction.source in ("answer", "anchor", "hashes", "box"):
            for inner in _embedded(text, extraction, gold):
                retried, note = self._reason(gold, text[slice(*inner)], problem, policy, budget, explanation)
                if retried not in ("unparseable", "type_clash"):
                    reason, detail, answer, span = retried, note, text[slice(*inner)].strip(), inner
                    break
        if extraction.source in ("whole", "anchor") and reason in ("unparseable", "type_clash") and problem.prompt:
            said = stated(text, after_thinking(text) or 0, len(text), problem.prompt)
            if said is not None and said.span is not None and said.span[0] >= extraction.span[0]:
                whole = said.said or text[slice(*said.span)].strip()
                retried, note = self._reason(gold, whole, problem, policy, budget, explanation)
                if retried not in ("unparseable", "type_clash"):
                    reason, detail, answer, span = retried, note, whole, said.span
        if extraction.source == "whole" and reason in ("type_clash", "unparseable") and not _MATHS_SIGN.search(answer):
            return Verdict(0.0, "no_answer", "words only", gold_type=gold.type)
        if explanation is not None and budget.trace is not None:
            explanation.steps.extend(budget.trace)
        return Verdict(float(reason == "equal"), reason, detail, answer, span, gold.type, budget.rung)

    def _agree(self, text: str, spans: tuple[Span, ...], policy: Policy, budget: Budget) -> bool:
        """Returns whether all final answers have the same value; a sentence has that of its only number."""
        parts = [text[slice(*span)] for span in spans]
        if _same_values((parts[-1], *parts[:-1]), policy, budget):
            return True
        soles = [sole_value(text, span) for span in spans]
        parts = [part if sole is None else text[slice(*sole)] for part, sole in zip(parts, soles, strict=True)]
        return any(soles) and _same_values((parts[-1], *parts[:-1]), policy, budget)

    def _reason(
        self,
        gold: _Gold,
        text: str,
        problem: Problem,
        policy: Policy,
        budget: Budget,
        explanation: Explanation | None,
    ) -> tuple[str, str]:
        """Returns (reason, detail) for a text that is taken as the final answer."""
        assert gold.answer is not None
        try:
            answer = read(text)
        except Unreadable as error:
            if gold.answer.kind == "text" and same_words(gold.answer, text):
                return "equal", ""
            if explanation is not None:
                explanation.steps.append(("read", f"unparseable: {error}"))
            return "unparseable", str(error)
        budget.rung = "type"  # reading an equation may have compared its two sides
        if explanation is not None:
            explanation.steps.append(("read", f"{type_name(answer)}: {text[:200]!r}"))
        if gold.answer.kind == "text" or answer.kind == "text":
            budget.rung = "text"
            if same_words(gold.answer, text, gold.text):
                return "equal", ""
        try:
            if problem.prompt and other_option(problem.prompt, answer):
                return "different", "the letter of one option with the text of another"
            reason = compared(gold.answer, answer, policy, budget)
            if reason == "equal" and problem.prompt and restates(problem.prompt, gold.answer, answer, text):
                return "unsolved", "the question's own expression"
            if reason != "equal" and self.multiple_choice == "auto" and (problem.prompt or len(gold.answer.words) > 1):
                other = option_of(problem.prompt, gold.answer, answer)
                if other is not None and compared(other[0], other[1], policy, budget) == "equal":
                    budget.rung = "option"
                    return "equal", "by the option's text"
        except Unreadable as error:
            return "type_clash", str(error)
        return reason, ""


def _total(answer: str) -> str:
    """Returns the result of a calculation with units that comes out right ("60 € − 12 € = 48 €"), or ""."""
    found = _TOTAL.fullmatch(answer)
    left, right = (_UNITS.sub("", part).replace(",", ".") for part in found.groups()) if found else ("", "")
    measured = found is not None and _UNITS.search(found[1]) is not None
    return found[2] if found and measured and total_of(left.replace(":", "/")) == Fraction(right.strip(" .")) else ""


def _with_capital_labels(problem: Problem, completion: Completion) -> tuple[Problem, Completion]:
    """Writes the labels of options a), b), ... as capitals in question, gold and completion, if the gold is a label."""
    label = _SMALL_LABEL.fullmatch(str(problem.answer)) if len(str(problem.answer)) < 4 else None
    if label is None or len(_SMALL_OPTION.findall(problem.prompt)) < 2 or len(completion.text) > MAX_CHARS:
        return problem, completion
    prompt = _SMALL_OPTION.sub(lambda match: match[0].upper(), problem.prompt)
    text = _SMALL_CHOICE.sub(lambda match: match[0].upper(), completion.text)
    return replace(problem, answer=label[1].upper(), prompt=prompt), replace(completion, text=text)


_SMALL_LABEL = lazy_pattern(r"\(?([a-e])\)?")
_SMALL_OPTION = lazy_pattern(r"(?:^|(?<=\s))\(?[a-e][).](?=\s)", re.MULTILINE)
_SMALL_CHOICE = lazy_pattern(
    r"(?<![\w\\$'’.])(?:\([a-e]\)|[a-e]\)|[a-e](?=[*_$}]*[.\s]*(?:</answer>\s*)?$)|(?<=boxed\{)[a-e](?=\}))"
)


def _without_points(gold: _Gold, answer: str, context: str, *, grouped: bool) -> str:
    """Reads "86.400" as 86400, if the gold has a thousand or more and digits are grouped by points.

    They are if the gold's text does so (`grouped`), or if question and completion (`context`) are in such a language.
    """
    match = _GROUPED.match(answer) if gold.integer is not None and abs(gold.integer) >= 1000 else None
    if match is None or not (grouped or language_of(context) in _WITH_POINTS):
        return answer
    return answer[: match.end()].replace(".", "") + answer[match.end() :]


def _with_decimal_comma(gold: _Gold, answer: str, context: str) -> tuple[_Gold, str]:
    """Returns gold and answer with decimal points, if the comma of a gold such as "0,25" is a decimal comma.

    It may also separate a list. It is a decimal comma if the gold begins with "0," or the language writes decimals so,
    and the answer, such as `0{,}25` or "2,5 m", is a single value.
    """
    price = _PRICE.fullmatch(answer)
    if price is not None and (price[1] or price[4]):
        answer = f"{price[1] or ''}{price[2]}.{price[3]}{price[4] or ''}"
        return (read_gold(gold.text.replace(",", ".")) if _LIST_OR_DECIMAL.fullmatch(gold.text) else gold), answer
    listed = _LIST_OR_DECIMAL.fullmatch(gold.text)
    one = listed or (gold.answer is not None and gold.answer.kind == "scalar")
    assigned = _ASSIGNED_COMMA.fullmatch(answer) if one and "," in answer else None
    if assigned and language_of(context) in _WITH_DECIMAL_COMMA:  # "x = 3,5"
        point = f"{assigned[1]}.{assigned[2]}{assigned[3]}"
        return (read_gold(gold.text.replace(",", ".")) if listed else gold), point
    if not listed:
        return gold, answer
    in_language = language_of(context) in _WITH_DECIMAL_COMMA
    decimal = in_language or gold.text.lstrip("-").startswith("0,")
    as_decimals = functools.partial(read_gold, gold.text.replace(",", "."))
    if decimal and _ONE_VALUE.fullmatch(answer):
        return as_decimals(), answer
    if (in_language or (decimal and len(gold.text) > 3)) and _POINT_DECIMAL.fullmatch(answer):
        return as_decimals(), answer
    comma = _DECIMAL_COMMA.fullmatch(answer)
    same_money = comma is not None and f"{comma[1]},{comma[2]}" == gold.text and _MONEY.match(comma[3])
    if comma is None or not (decimal or same_money):
        return gold, answer
    return as_decimals(), f"{comma[1]}.{comma[2]}{comma[3]}"


def _grouped_gold(gold: _Gold, prompt: str) -> _Gold:
    """Reads a gold "1.500" as 1500, if the question's language groups so and the question contains such numbers."""
    if not _GROUPED.fullmatch(gold.text) or language_of(prompt) not in _WITH_POINTS:
        return gold
    shown = _OF_POINTS.search(prompt) and not _SHORT_DECIMAL.search(prompt)
    return read_gold(gold.text.replace(".", "")) if shown else gold


def _may_say_truth(text: str, extraction: Extraction) -> bool:
    """Returns whether what was found may be a yes or no, as it is announced or begins with one."""
    if extraction.source == "statement":
        return extraction.span is not None and bool(said_first(text[slice(*extraction.span)]))
    return extraction.source not in ("number", "maths", "whole")


def _may_be_working(text: str, extraction: Extraction) -> bool:
    """Returns whether no word was found as the answer, but at most a number."""
    if extraction.span is None:
        return extraction.source in ("unsure", "nothing", "prose")
    stated_value = extraction.said or any(char.isdigit() for char in text[slice(*extraction.span)])
    return extraction.source in ("number", "maths") or (extraction.source == "statement" and bool(stated_value))


def _claimed(text: str, prompt: str, gold: str) -> Extraction | None:
    """Returns the word of the gold's class that the text claims, or None."""
    start = after_thinking(text)
    if start is None:
        return None
    _, sentences, wanted, language = closing(text, start, len(text), prompt)
    return claimed(text, sentences, prompt, wanted, language, gold) if sentences else None


def _worded(text: str, prompt: str, gold: Answer) -> Extraction | None:
    """Finds an answer in a text that announces none.

    The whole text is an answer in words ("all real numbers"), or begins with it ("Yes, they are parallel.").
    """
    start = after_thinking(text)
    if start is not None and gold.kind == "truth":
        return said_truth(text, start, len(text), prompt)
    if start is None or len(text) - start > 400:
        return None
    part = text[start:].strip(" \n\t*_.!。$")
    if not part or len(part) > _LONGEST_WORDED:
        return None
    begin = text.index(part, start)
    form = whole_form(trim(clean(part))) if len(part) < 60 and not _MATHS_SIGN.search(part) else None
    known = form is not None and form.kind in ("empty", "undefined", "region", "scalar")
    return Extraction((begin, begin + len(part)), "worded") if known else None


def _same_values(parts: tuple[str, ...], policy: Policy, budget: Budget) -> bool:
    """Returns whether all parts have the value of the first; a decimal may be rounded."""
    try:
        first, *others = [read(part) for part in parts]
        return all(
            compared(first, other, policy, budget) == "equal" or compared(other, first, policy, budget) == "equal"
            for other in others
        )
    except Unreadable:  # a part, or the text of the option in it ("A: ^")
        return False


def _names_unit(parts: tuple[str, ...]) -> bool:
    """Returns whether the parts are a number and its unit, as in "42 (dollars)", not a value stated twice."""
    if len(parts) != 2 or not parts[1].isalpha():
        return False
    try:
        bare, named = read(parts[0]), read(" ".join(parts))
    except Unreadable:
        return False
    return bare.unit is None and named.unit is not None


def same_words(gold: Answer, text: str, gold_text: str = "") -> bool:
    """Returns whether the words are the gold's, or the one name or adjective that a gold sentence states."""
    words = text_words(clean(text))
    wanted = gold.words if gold.kind == "text" else text_words(clean(gold_text)) if gold_text else ()
    if not wanted or not words:
        return False
    if [word for word in words if word != "and"] == [word for word in wanted if word != "and"]:
        return True
    if gold.kind == "text" and _names(wanted) and _names(wanted) == _names(words):
        return True  # "Boris and Anna"
    if gold.kind == "text" and weekday(wanted) is not None:
        return weekday(wanted) == weekday(words)
    if gold.kind == "text" and len(words) == 1 and len(wanted[0]) > 2 and (without_copula(words[0]),) == wanted:
        return True
    if gold.kind != "text" or len(words) != 1 or len(words[0]) < 3 or not words[0].isalpha():
        return False
    if {"not", "no", "neither", "nor", "never", "or", "and"} & set(wanted):
        return False
    if len(wanted) > 2 and wanted[0] == words[0] and wanted[1] in ("will", "wins", "can", "is", "has", "won", "was"):
        return True  # "Petya" for "Petya will win"
    return len(wanted) > 2 and wanted[-1] == words[0] and wanted[-2] in ("is", "are", "be", "was")


def _names(words: tuple[str, ...]) -> list[str]:
    """Returns the sorted names of "Anna, Boris and Carl"; [] if the words may be more than a list of names."""
    kept = sorted(word for word in words if word != "and")
    listed = words[-2:-1] == ("and",) and len(kept) < 8 and all(word.isalpha() and len(word) > 2 for word in kept)
    return kept if listed and words[1::2] == ("and",) * (len(words) // 2) else []


def _embedded(text: str, extraction: Extraction, gold: _Gold) -> list[Span]:
    """Finds the answer within a sentence that was given as the answer: the announced part, or the only value."""
    if gold.answer is None or gold.answer.kind in ("text", "choice", "truth") or extraction.span is None:
        return []
    part = text[slice(*extraction.span)]
    if _TURNING.search(_FORMULA.sub(" ", part)):
        return []
    inner = find(part) if not _TURNING.search(part) else Extraction(None, "turned")
    spans = []
    if inner.source in ("anchor", "maths") and inner.span is not None and not inner.others:
        spans.append((extraction.span[0] + inner.span[0], extraction.span[0] + inner.span[1]))
    sole = sole_value(text, extraction.span)
    return [span for span in (*spans, sole) if span is not None and span != extraction.span]


def _refers_to_itself(answer: str) -> bool:
    """Returns whether the answer defines a name in terms of itself, as in "x = x"."""
    match = _ASSIGNED.fullmatch(answer)
    return match is not None and re.search(rf"(?<![A-Za-z\\]){match[1]}(?![A-Za-z_({{])", match[2]) is not None


_ONE_VALUE = lazy_pattern(
    r"[\s$]*-?(?:\d{1,9}\s?/\s?\d{1,9}|\\[dt]?frac\{\d{1,9}\}\{\d{1,9}\})[\s$.]*"
)  # a fraction, no list
_LIST_OR_DECIMAL = lazy_pattern(r"-?\d{1,9},\d{1,9}")
_WITH_DECIMAL_COMMA = frozenset("de fr es pt it nl sv pl ru tr vi id".split())
_WITH_POINTS = frozenset("de es pt it nl tr vi id".split())
_GROUPED = lazy_pattern(r"\s*\$?[-+−]?[1-9]\d{0,2}(?:\.\d{3}){1,5}(?![\d.,]*\d)", re.ASCII)
_PRICE = lazy_pattern(  # "€ 57,60", "85,00 €"
    r"\s*([€£₽₺]\s?|R\$\s?)?(\d{1,9}),(\d\d)(\s?(?:[€£₽₺]|EUR|[Ee]uros?|kr|zł|TL|PLN))?\s*", re.ASCII
)
_DECIMAL_COMMA = lazy_pattern(
    r"\s*\$?([-+−]?\d{1,9})(?:\{,\}|,(?=\d{1,9}(?:\s?[^\W\d]|\s?(?:[€£₹₽₺%°]|\\%)"
    r"|\s?\\text)))(\d{1,9})(\s?[^,;]{0,30})",
    re.ASCII,
)
_ASSIGNED_COMMA = lazy_pattern(
    r"([\s$]*(?:\\?[A-Za-zα-ω]{1,6}(?:_\w)?)\s*[=≈]\s*[-+−]?\d{1,9})(?:\{,\}|,)(\d\d?"
    r"|\d{4,9})(?![\d,])(\s?[^,;]{0,30})",
    re.ASCII,
)
_MONEY = lazy_pattern(r"[\s~{]*(?:\\text\{\s?)?(?:[€£₹₽₺%]|\\%|EUR|[Ee]uros?\b|PLN|zł)")
_POINT_DECIMAL = lazy_pattern(r"[\s$]*-?\d{1,9}\.\d{1,9}[\s$.]*")
_OF_POINTS = lazy_pattern(r"(?<![\d.,])(?:\d{1,9},\d{1,2}|[1-9]\d{0,2}(?:\.\d{3})*\.\d00)(?![\d,]|\.\d)")
_SHORT_DECIMAL = lazy_pattern(r"\d\.\d{1,2}(?!\d)")  # in a question that writes decimals as in English
_IN_WORDS = ("text", "truth", "choice", "empty", "undefined", "region")
_ASSIGNED = lazy_pattern(r"[\s$]*([A-Za-z])\s*=([^=<>]{1,200})")
_FORMULA = lazy_pattern(r"\$[^$]{1,200}\$|\\[dt]?frac\{[^{}]{1,40}\}\{[^{}]{1,40}\}|\\\([^()]{1,200}\\\)")
_NAMED_POINT = lazy_pattern(  # "V(3, 2)", "S(2\\mid 5)"
    r"[\s$]*[A-Z]?\s*=?\s*(?:\\left)?\(\s*([-−]?[\d./]+)\s*(?:[,;|]|\\mid\b)\s*([-−]?[\d./]+)\s*(?:\\right)?\)[\s$.]*"
)
_UNITS = lazy_pattern(r"[€£₽₺%$]|[^\W\d_]{2,8}|\s")
_AMOUNT = r"[$€£]?\d{1,9}(?:[.,]\d{1,2})?\s?(?:[€£₽₺%]|[^\W\d_]{2,8})?"
_TOTAL = lazy_pattern(rf"\s*({_AMOUNT}(?:\s?[-+−–*·×/:÷]\s?{_AMOUNT}){{1,6}})\s?=\s*({_AMOUNT})")
_RATIO = lazy_pattern(r"\s*\$?(\d+)\s*:\s*(\d+)\$?\s*")
_RATIO_IN_WORDS = lazy_pattern(
    r"\s*(?:\\text\{)?\s*(\d+)\s*(?:\\text\{)?\s*(?:to|à|zu|a|к)\s*\}?\s*(\d+)\s*\}?\s*", re.I
)  # "8 to 3"
_ONE_NOT_THE_OTHER = lazy_pattern(
    r"\(?([A-J])\)?(?:\s*[,，]\s*|\s*)(?:而?不是|而非|(?<=[\s,)])not)\s*\(?([A-J])\)?[\s.。]*"
)  # "B不是A", "B, not A"
_CHOSEN_OR_MATHS = lazy_pattern(r"[\d\\^=<>$]|^\W*[A-HJ]\b")
_MATHS_SIGN = lazy_pattern(r"[\d\\^=<>$]")
_ORDINAL = lazy_pattern(r"\d(?:st|nd|rd|th)\s+[a-z]{2}")
_TURNING = lazy_pattern(
    r"\b(?:not|no|never|without|less|more|greater|larger|bigger|smaller|higher|lower|exceed\w*|within|fewer|least"
    r"|most|over|under|below|above|minus|negative|half|twice"
    r"|either|or|except|but|cannot|wrong|incorrect|between|and|squared|cube|root"
    r"|square(?! (?:units?|(?:centi|milli|kilo|deci)?met(?:er|re)s?|inch(?:es)?|feet|foot|yards?|miles?|[ckm]?m)\b)"
    r"|double|triple|times"
    r"|multiple|factor|divisor|divisible|power|successor|predecessor"
    r"|far|unlikely|likely|depends?|starts?|begins?|ends?|digits?|mentions?|appears?|such|example|question|problem"
    r"|see|try|give|gave)\b|[?^_=<>]|\\(?!text|\(|\)|\[|\])",
    re.IGNORECASE,
)


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


@functools.lru_cache(maxsize=8192)
def read_gold(text: str) -> _Gold:
    """Reads a gold. The result is cached, as the completions of a group share it; `error` says what went wrong."""
    text = text.rstrip("\\") if text.endswith("\\") else text  # remainder of an escaped quote that was cut off
    if "####" in text:
        text = text.rpartition("####")[2]
    text = grouped_by_points(text) if text.count(".") > 1 and len(text) < 60 else text
    if "boxed" in text or "fbox" in text or len(text) > _WORKED or "answer is" in text:
        text = _concluded(text)
    ratio = _RATIO_IN_WORDS.fullmatch(text) if len(text) < 60 else None
    text = f"{ratio[1]}:{ratio[2]}" if ratio else text
    plain = _INTEGER.fullmatch(text) if len(text) < 60 and "$" not in text else None
    if plain is not None:
        value = int(plain[2].replace(",", "")) * (-1 if plain[1] == "-" else 1)
        if "." not in text or text.strip(" +-").endswith(".0"):  # 27.0 is an integer that was stored as a float
            return _Gold(Answer("scalar", number(value)), "integer", value, text=text)
    try:
        with Budget():
            answer = _measured(_one_of(read(_as_stored(text.strip(" \n\r")))))
            kind = type_name(answer)
            values = evaluated(nodes_of(answer))
    except Unreadable as error:
        return _Gold(None, error=str(error))
    except TooHard as error:
        return _Gold(None, error=f"too hard: {error}")
    return _Gold(answer, kind, text=text, evaluated=values)
